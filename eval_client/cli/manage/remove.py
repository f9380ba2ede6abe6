"""`proctor rm` and `proctor prune`."""

import datetime
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from eval_client.cli.common import output_option, report_usage_errors, store_option
from eval_client.cli.manage.listed import RunFilter, RunLine, all_runs, listed, owner_option, tags_option
from eval_client.cli.manage.moments import age
from eval_client.cli.usage import UsageProblem
from eval_client.store.connection import StoreError
from eval_client.store.run_folders import find_run
from eval_client.store.runs.remove import remove_run
from eval_client.store.store import Store

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@output_option
@store_option
@yes_option
def rm(runs: tuple[str, ...], output: Path, store: str | None, yes: bool) -> None:
    """Remove each RUN (a folder, a name, or `latest`) for good: its trials, transcripts, logs and folder.

    Asks before it does. A run that is being played is refused.
    """
    with report_usage_errors():
        found = [find_run(run, store, output) for run in runs]
        _remove(found, [listed(each) for each, _ in found], yes)


@click.command()
@click.option("--older-than", callback=age, required=True, metavar="AGE", help="Of which age on: 12h, 30d, 8w.")
@tags_option
@owner_option
@output_option
@store_option
@click.option("--dry-run", is_flag=True, help="Print which runs would be removed, and remove none.")
@yes_option
def prune(
    older_than: datetime.timedelta,
    tags: tuple[str, ...],
    owner: str | None,
    output: Path,
    store: str | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Remove the runs that were begun, and last resumed, longer ago than AGE. Prints them and asks before it does.

    Runs that are being played or can't be read are left alone.
    """
    before = datetime.datetime.now(datetime.UTC) - older_than
    with report_usage_errors():
        runs = [(each, listed(each[0])) for each in all_runs(store, output)]
        chosen = RunFilter(tags, owner, until=before)
        old = [(each, line) for each, line in runs if chosen.chooses(line) and _is_at_rest_since(each[0], line, before)]
        if not old:
            click.echo("no run is that old", err=True)
        elif dry_run:
            click.echo("\n".join(line.line() for _, line in old))
        else:
            _remove([each for each, _ in old], [line for _, line in old], yes)


def _is_at_rest_since(store: Store, run: RunLine, before: datetime.datetime) -> bool:
    """Whether a run is not being played, and was last resumed before a moment."""
    resumed = store.manifest().resumed_at
    return run.state not in ("new", "running") and all(datetime.datetime.fromisoformat(at) < before for at in resumed)


def _remove(found: Sequence[tuple[Store, Path]], lines: Sequence[RunLine], yes: bool) -> None:
    """Remove runs after a confirmation. Raises UsageProblem, Abort, StoreError."""
    if not yes:
        for line in lines:
            click.echo(line.line(), err=True)
        if not sys.stdin.isatty():
            raise UsageProblem("nothing was removed, since there is no terminal to ask on; add --yes")
        click.confirm(f"Remove {'this run' if len(found) == 1 else f'these {len(found)} runs'} for good?", abort=True)
    for store, folder in found:
        try:
            remove_run(store, folder)
        except OSError as error:
            raise StoreError(f"run {store.run!r} can't be removed whole: {error}") from error
        click.echo(f"removed {store.run}")
