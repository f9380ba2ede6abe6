"""`proctor join`."""

import os
import signal
import socket
import sys
import threading
from pathlib import Path

import click

from eval_client.cli.common import (
    output_option,
    quiet_option,
    report_usage_errors,
    run_argument,
    shards_option,
    store_option,
)
from eval_client.cli.play import error_console, metrics_option, play, show_result
from eval_client.cli.usage import UsageProblem
from eval_client.core.progress import RunResult
from eval_client.plan.load import recorded_plan
from eval_client.run_request import RunRequest, Served
from eval_client.store.run_folders import find_run


@click.command()
@run_argument
@output_option
@store_option
@shards_option
@metrics_option
@quiet_option
@click.option("--controller", hidden=True, help="The controller that another client on this machine has started.")
@click.option("--agents", hidden=True, help="The agent server that another client on this machine has started.")
@click.option("--checked", is_flag=True, hidden=True, help="Do not check that the servers' tasks are the run's.")
@click.option("--with-stdin", is_flag=True, hidden=True, help="Kill this process when standard input closes.")
def join(
    run: str,
    output: Path,
    store: str | None,
    shards: int,
    metrics: socket.socket | None,
    quiet: bool,
    controller: str | None,
    agents: str | None,
    checked: bool,
    with_stdin: bool,
) -> None:
    """Add a client (a shard) on this machine to RUN, which other clients are playing.

    The run must be in PostgreSQL (--store, or PROCTOR_STORE), and its plan must name a controller that this machine can
    reach. The clients share all limits, end together, and print the same report.
    """
    if with_stdin:
        threading.Thread(target=_die_with_stdin, daemon=True).start()
    with report_usage_errors():
        found, folder = find_run(run, store, output)
        manifest = found.manifest()
        over = found.is_over()
        plan = recorded_plan(manifest.plan)
        if not checked and any(endpoint.replicas_file is not None for endpoint in plan.endpoints):
            raise UsageProblem(
                "the run's `replicas_file` is read for a plan's own file alone; list the URLs in the plan"
            )
    served = Served(controller, agents) if controller or agents else None
    request = RunRequest(
        plan,
        manifest.plan_path,
        found,
        folder,
        resume=False,
        joins=True,
        served=served,
        started_by_client=checked,
        shards=shards,
    )
    if over:
        sys.exit(show_result(request, RunResult(None, {}), error_console()))
    play(request, quiet=quiet, metrics=metrics)


def _die_with_stdin() -> None:
    """Kill this process when its parent, which holds standard input open, ends for any reason."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
