"""`proctor note`, `proctor stop`, `proctor rm` and `proctor completion`."""

import datetime
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from eval_client.cli.common import output_option, report_usage_errors, run_argument, store_option
from eval_client.cli.manage.ls import (
    ANY,
    RunFilter,
    RunLine,
    all_runs,
    chosen_owner,
    listed,
    owner_option,
    tags_option,
)
from eval_client.cli.usage import UsageProblem
from eval_client.store.connection import StoreError
from eval_client.store.lock import is_worked_on
from eval_client.store.runs import find_run, remove_run
from eval_client.store.store import Store

LOOK_S = 0.5
HOW = {
    "bash": 'eval "$(proctor completion bash)"      in ~/.bashrc',
    "zsh": 'eval "$(proctor completion zsh)"       in ~/.zshrc',
    "fish": "proctor completion fish | source      in ~/.config/fish/config.fish",
}
UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@click.command()
@run_argument
@output_option
@store_option
@owner_option
@click.option("--now", is_flag=True, help="Abandon the trials under way too, as Ctrl-C twice does.")
def stop(run: str, output: Path, store: str | None, owner: str | None, now: bool) -> None:
    """Stop RUN (a folder, a name, or `latest`, the default), from any terminal or host that reaches its store.

    All clients of the run do what Ctrl-C does: they start no more trials, and play those under way to their end, which
    is waited for. The run can be resumed. A run that nobody plays, or that is another person's, is left alone.
    """
    owner = chosen_owner(owner)
    with report_usage_errors():
        runs = reversed(list(all_runs(store, output))) if run == "latest" and owner else ()
        own = (each for each in runs if listed(each[0]).owner == owner)
        found, folder = next(own, None) or find_run(run, store, output)
        if owner and (begun_by := found.manifest().owner) != owner:
            fix = f"stop it with --owner {begun_by or ANY}"
            raise UsageProblem(f"{found.run} was begun by {begun_by or '?'}, and you are {owner}; {fix}")
        if not is_worked_on(found):
            click.echo(f"{found.run} is not being played", err=True)
            return
        found.request_stop("now" if now else "drain")
        how = "at once" if now else "once the trials under way are played"
        click.echo(f"{found.run} stops {how}", err=True)
        while is_worked_on(found):
            time.sleep(LOOK_S)
    click.echo(f"{found.run} has stopped; resume with: proctor resume {folder}", err=True)


@click.command()
@click.argument("run", metavar="RUN")
@click.argument("text")
@output_option
@store_option
def note(run: str, text: str, output: Path, store: str | None) -> None:
    """Add TEXT to the notes of RUN (a folder, a name, or `latest`), also while it plays: its report and pages show it.

    Example: `proctor note latest "the endpoint was restarted at noon"`
    """
    if not text.strip():
        raise UsageProblem("TEXT is empty; write what is to be noted")
    with report_usage_errors():
        found, _ = find_run(run, store, output)
        found.manifest()
        found.note(text)
    click.echo(f"noted at {found.run}", err=True)


def _age(_context: click.Context, _option: click.Parameter, given: str | None) -> datetime.timedelta | None:
    if given is None:
        return None
    found = re.fullmatch(r"(\d{1,5})([mhdw])", given)
    if found is None:
        raise click.BadParameter(f"{given!r} is no age; write a number and m, h, d or w: 12h, 30d")
    return datetime.timedelta(**{UNITS[found[2]]: int(found[1])})


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option(
    "--older-than",
    callback=_age,
    metavar="AGE",
    help="Instead of RUN: the runs that were begun, and last resumed, longer ago than 12h, 30d, 8w.",
)
@tags_option
@owner_option
@output_option
@store_option
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def rm(
    runs: tuple[str, ...],
    older_than: datetime.timedelta | None,
    tags: tuple[str, ...],
    owner: str | None,
    output: Path,
    store: str | None,
    yes: bool,
) -> None:
    """Remove each RUN (a folder, a name, or `latest`) for good: its trials, transcripts, logs and folder.

    Prints them and asks before it does. A run that is being played is refused, and with --older-than left alone, as is
    one that can't be read; then it asks in spite of --yes where it is not known whose the runs are.
    """
    if bool(runs) == (older_than is not None):
        raise UsageProblem("name the runs to remove, or their age: --older-than 30d")
    if older_than is None and (tags or owner):
        raise UsageProblem("--tag and --owner choose among runs --older-than an age; leave them out")
    with report_usage_errors():
        if older_than is None:
            found = [find_run(run, store, output) for run in runs]
            _remove([(each, listed(each[0])) for each in found], yes)
            return
        before = datetime.datetime.now(datetime.UTC) - older_than
        chosen = RunFilter(tags, chosen_owner(owner), until=before)
        every = [(each, listed(each[0])) for each in all_runs(store, output)]
        old = [(each, line) for each, line in every if chosen.chooses(line) and _at_rest(each[0], line, before)]
        if not old:
            click.echo("no run is that old", err=True)
            return
        _remove(old, yes, unknown=chosen.owner == "" or not all(line.owner for _, line in old))


def _at_rest(store: Store, run: RunLine, before: datetime.datetime) -> bool:
    """Whether a run is not being played, and was last resumed before a moment."""
    resumed = store.manifest().resumed_at
    return run.state not in ("new", "running") and all(datetime.datetime.fromisoformat(at) < before for at in resumed)


def _remove(found: Sequence[tuple[tuple[Store, Path], RunLine]], yes: bool, *, unknown: bool = False) -> None:
    """Remove runs after a confirmation, also with `yes` where an owner is `unknown`.

    Raises UsageProblem, Abort, StoreError.
    """
    if not yes or unknown:
        for _, line in found:
            click.echo(line.line(), err=True)
        if not sys.stdin.isatty():
            fix = "whose all these are is not known: name them to `proctor rm`" if unknown else "add --yes"
            raise UsageProblem(f"nothing was removed, since there is no terminal to ask on; {fix}")
        click.confirm(f"Remove {'this run' if len(found) == 1 else f'these {len(found)} runs'} for good?", abort=True)
    for (store, folder), _ in found:
        try:
            remove_run(store, folder)
        except OSError as error:
            raise StoreError(f"run {store.run!r} can't be removed whole: {error}") from error
        click.echo(f"removed {store.run}")


@click.command(epilog="\b\n" + "\n".join(HOW.values()))
@click.argument("shell", type=click.Choice(list(HOW)))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands and options of `proctor` in a shell. To have it in each new shell:"""
    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "proctor", "_PROCTOR_COMPLETE").source())
