"""`proctor stop`."""

import time
from pathlib import Path

import click

from eval_client.cli.common import output_option, report_usage_errors, run_argument, store_option
from eval_client.store.lock import is_worked_on
from eval_client.store.run_folders import find_run
from eval_client.store.runs.stop import request_stop

LOOK_S = 0.5


@click.command()
@run_argument
@output_option
@store_option
@click.option("--now", is_flag=True, help="Abandon the trials under way too, as Ctrl-C twice does.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Wait until the run's clients have ended.")
def stop(run: str, output: Path, store: str | None, now: bool, wait: bool) -> None:
    """Stop RUN (a folder, a name, or `latest`, the default), from any terminal or host that reaches its store.

    All clients of the run do what Ctrl-C does: they start no more trials, and play those under way to their end. The
    run can be resumed. A run that nobody plays is left alone.
    """
    with report_usage_errors():
        found, folder = find_run(run, store, output)
        found.manifest()
        if not is_worked_on(found):
            click.echo(f"{found.run} is not being played", err=True)
            return
        request_stop(found, "now" if now else "drain")
        how = "at once" if now else "once the trials under way are played"
        click.echo(f"{found.run} stops {how}", err=True)
        while wait and is_worked_on(found):
            time.sleep(LOOK_S)
    if wait:
        click.echo(f"{found.run} has stopped; resume with: proctor resume {folder}", err=True)
