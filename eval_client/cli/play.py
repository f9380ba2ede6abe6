"""Executes a run for the commands: screen, Ctrl-C, report, exit code."""

import asyncio
import contextlib
import functools
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from eval_client.cli.common import report_usage_errors
from eval_client.cli.ending import RunEnd
from eval_client.cli.main import say_step
from eval_client.cli.usage import UsageProblem
from eval_client.core.progress import RunResult, grouped_causes
from eval_client.run.context import RunContext
from eval_client.run.interrupts import STOPPED_BY_USER, Interrupts
from eval_client.run.preflight import PreflightError
from eval_client.run.request import RunRequest
from eval_client.run.screen import screen
from eval_client.run.servers import ServerProcessError
from eval_client.store.connection import Fenced, retry_until_available
from proctor import event_loop
from proctor.observability.descriptors import OutOfDescriptors
from proctor.observability.output import console
from task_server.wire.errors import TaskServerError

if TYPE_CHECKING:
    from rich.console import Console

    from eval_client.report.pair_report import RunReport

INTERRUPTED = 130


def _listen(_context: click.Context, _option: click.Parameter, where: str | None) -> socket.socket | None:
    if not where:
        return None
    from eval_client.run.metrics import listener  # FastAPI is loaded only here

    try:
        return listener(where)
    except ValueError as error:
        raise UsageProblem(str(error)) from error


metrics_option = click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    envvar="PROCTOR_METRICS",
    callback=_listen,
    help="Serve Prometheus metrics at /metrics during the run; any host but a loopback address needs PROCTOR_TOKEN.",
)


async def _guarded(interrupts: Interrupts) -> RunResult:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupts.pressed)
    return await interrupts.execute()


def error_console() -> "Console":
    """The console on standard error, for everything that is not a result."""
    return console(stderr=True)


def _exposed(played: RunContext, metrics: socket.socket | None) -> contextlib.AbstractContextManager[None]:
    """Serve the run's metrics while inside, if there is a socket for them."""
    if metrics is None:
        return contextlib.nullcontext()
    from eval_client.run.metrics import exposed  # FastAPI is loaded only here

    return exposed(played, metrics)


def play(
    request: RunRequest,
    *,
    quiet: bool,
    metrics: socket.socket | None = None,
    as_matrix: bool = False,
    begins: str = "",
) -> None:
    """Execute a run, show its report, and exit with the run's exit code. `metrics` is a socket to serve metrics on.

    `as_matrix`: show one table of tasks by agents in place of the report; `begins` is said once nothing refuses the
    run. Raises UsageProblem.
    """
    errors, begun = functools.cache(error_console), time.monotonic()
    request = replace(request, announce=say_step)
    end = RunEnd(request, errors)

    @contextlib.contextmanager
    def watched(played: RunContext) -> Iterator[None]:
        end.begun = True
        if begins:
            errors().print(begins, soft_wrap=True)
        with screen(played, None if quiet else errors()), _exposed(played, metrics):
            yield

    interrupts = Interrupts(request, watched, lambda text: errors().print(text, soft_wrap=True))
    with end:
        try:
            with report_usage_errors():
                ended = event_loop.run(_guarded(interrupts))
                end.stopped = ended.stopped or "; ".join(ended.refusals())
                code = show_result(request, ended, errors(), time.monotonic() - begun if as_matrix else None)
        except (asyncio.CancelledError, KeyboardInterrupt):
            _print_how_to_resume(request, errors())
            sys.exit(INTERRUPTED)
        except (PreflightError, ServerProcessError, TaskServerError, Fenced, OutOfDescriptors) as error:
            raise UsageProblem(str(error)) from error
        sys.exit(code)


def show_result(request: RunRequest, ended: RunResult, errors: "Console", seconds: float | None = None) -> int:
    """Show the report of a run and how to resume it if it is unfinished; returns the exit code.

    With the seconds that it took, one table of tasks by agents stands in place of the report.
    """
    from eval_client.report.report import report
    from eval_client.report.run_tables import matrix_table, report_tables, took
    from eval_client.store.trials.trajectory import trial_to_read
    from proctor.tables.command import print_tables

    result = event_loop.run(retry_until_available(report, request.store, aside=False))
    print_tables(report_tables([result], full=False) if seconds is None else [matrix_table(result.pairs)], "text")
    if seconds is not None:
        click.echo(f"\n{took(result, seconds)}")
        errors.print(f"all tables, with validity and costs: proctor report {request.folder}", soft_wrap=True)
    all_scored = all(pair.scored + pair.declined == pair.planned for pair in result.pairs)
    why = None if any(pair.scored for pair in result.pairs) else _only_cause(ended, result)
    for refusal in ended.refusals() if why is None else ():
        errors.print(refusal, style="red", soft_wrap=True)
    if ended.stopped is not None:
        errors.print(f"stopped: {ended.stopped}", soft_wrap=True)
    if all_scored:
        errors.print(f"run: {request.folder}", soft_wrap=True)
    else:
        _print_how_to_resume(request, errors)
    lowest = event_loop.run(retry_until_available(trial_to_read, request.store, aside=False))
    if lowest is not None:
        errors.print(f"read the lowest-scored trial: proctor show {request.folder} {lowest}", soft_wrap=True)
        errors.print(f"look at all of them in a browser: proctor view {request.folder}", soft_wrap=True)
    for estimate in result.estimates:
        errors.print(estimate, soft_wrap=True)
    if why is not None:
        errors.print(f"nothing was scored: {why}", style="red", soft_wrap=True)
    if ended.stopped == STOPPED_BY_USER:
        return INTERRUPTED
    if ended.refused or why is not None:
        return 2
    return 0 if all_scored else 1


def _only_cause(ended: RunResult, result: "RunReport") -> str | None:
    """Why a run scored nothing, with what to do: why its agents stopped, or its most frequent fault."""
    if ended.refused:
        return "; ".join(ended.refusals())
    causes = grouped_causes(fault for pair in result.pairs for fault in pair.faults.items())
    if not causes:
        return None
    cause = max(causes, key=lambda each: causes[each])
    others = f" (and {len(causes) - 1} other causes, in the report's notes)" if len(causes) > 1 else ""
    return f"{cause}{others}; `proctor doctor` looks for what is wrong, `proctor resume` plays on"


def _print_how_to_resume(request: RunRequest, errors: "Console") -> None:
    where = "" if request.store.engine.dialect.name == "sqlite" else " (with PROCTOR_STORE or --store as now)"
    errors.print(f"resume with: proctor resume {request.folder}{where}", soft_wrap=True)
