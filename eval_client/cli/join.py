"""`proctor join`."""

import os
import signal
import socket
import sys
import threading
from pathlib import Path

import click

from eval_client.cli.common import output_option, quiet_option, report_usage_errors, shards_option, store_option
from eval_client.cli.play import error_console, metrics_option, play, tell
from eval_client.core.progress import RunResult
from eval_client.execute import RunRequest, Served
from eval_client.plan import Plan
from eval_client.store.run_folders import find_run


@click.command()
@click.argument("run", metavar="RUN", default="latest")
@output_option
@store_option
@shards_option
@metrics_option
@quiet_option
@click.option("--controller", hidden=True, help="The controller that an earlier client of this machine has started.")
@click.option("--agents", hidden=True, help="The agent server that an earlier client of this machine has started.")
@click.option("--checked", is_flag=True, hidden=True, help="Do not ask the servers whether the tasks are the run's.")
@click.option("--with-stdin", is_flag=True, hidden=True, help="Die when standard input closes.")
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
    """Work on RUN beside the clients that work on it already: one more shard of it, on this machine.

    The run must be in PostgreSQL (--store, or PROCTOR_STORE), and its plan must name a controller that can be reached
    from here. The clients share all limits, and all end together, with the same report.
    """
    if with_stdin:
        threading.Thread(target=_die_with_stdin, daemon=True).start()
    with report_usage_errors():
        found, folder = find_run(run, store, output)
        manifest = found.manifest()
        over = found.is_over()
        plan = Plan.model_validate(manifest.plan)
    served = Served(controller, agents) if controller or agents else None
    request = RunRequest(
        plan,
        manifest.plan_path,
        found,
        folder,
        resume=False,
        joins=True,
        served=served,
        checked=checked,
        shards=shards,
    )
    if over:
        sys.exit(tell(request, RunResult(None, {}), error_console()))
    play(request, quiet=quiet, metrics=metrics)


def _die_with_stdin() -> None:
    """Whoever started this process holds its standard input open; when it dies, however it does, so do we."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
