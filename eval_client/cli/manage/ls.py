"""`proctor ls`, and what other commands choose runs by."""

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click

from eval_client.cli.common import json_option, output_option, report_usage_errors, store_option
from eval_client.store.connection import DatabaseError, StoreError, connect, file_url, runs
from eval_client.store.lock import is_worked_on
from eval_client.store.records import PairTotals
from eval_client.store.runs import owner_name, run_folders
from eval_client.store.store import Store
from proctor.observability.redaction import redacted

UNREADABLE = "unreadable"
BEGIN = "begin with `proctor demo`, which needs no key, or with a plan of your own: `proctor run PLAN`"
tags_option = click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="Only runs with this tag, or all these tags."
)
ANY = "any"


def chosen_owner(given: str | None) -> str | None:
    """The value of `--owner` as `RunFilter` takes it; says where it is not known who the user is."""
    owner = given or owner_name()
    if owner is None:
        click.echo(
            f"which runs are yours is not known, so all count; set PROCTOR_USER, or --owner NAME|{ANY}", err=True
        )
    return None if owner == ANY else owner or ""


owner_option = click.option(
    "--owner",
    metavar=f"NAME|{ANY}",
    help="Only runs that this person began, or those of all. Default: PROCTOR_USER, or this account.",
)


class RunLine(NamedTuple):
    """A run in a list."""

    run: str
    state: str
    trials: str
    """How many are scored; why the run can't be read where its state is `unreadable`."""
    created_at: str
    tags: tuple[str, ...]
    owner: str | None
    parent: str | None
    """The run whose answers it scores again."""

    def line(self) -> str:
        """The run on one line."""
        tags = f", tags {' '.join(self.tags)}" if self.tags else ""
        parent = f", re-scored from {self.parent}" if self.parent else ""
        begun = f", begun {self.created_at[:16].replace('T', ' ')} by {self.owner or '?'}" if self.created_at else ""
        return f"{self.run}: {self.state}, {self.trials}{begun}{tags}{parent}"


@dataclass(frozen=True)
class RunFilter:
    """Which runs are chosen: by default all."""

    tags: Sequence[str] = ()
    owner: str | None = None
    """None: of anybody; empty: of a person who is not known, and so of anybody."""
    unowned: bool = False
    """Whether runs that nobody is known to have begun, such as those of earlier versions, are chosen too."""
    until: datetime.datetime | None = None

    def chooses(self, run: RunLine) -> bool:
        """Whether a run is chosen. One that can't be read is where nothing is asked but whose it is."""
        if run.state == UNREADABLE:
            return not (self.tags or self.until)
        begun = datetime.datetime.fromisoformat(run.created_at)
        return (
            set(self.tags) <= set(run.tags)
            and (not self.owner or self.owner == run.owner or (self.unowned and run.owner is None))
            and (self.until is None or begun < self.until)
        )


def whose(runs: Iterable[RunLine]) -> str:
    """Of whom these runs are, with how many: `ann (2), ? (1)`."""
    return ", ".join(f"{owner} ({count})" for owner, count in Counter(run.owner or "?" for run in runs).most_common())


def all_runs(store: str | None, output: Path) -> Iterator[tuple[Store, Path]]:
    """The runs of a database server or of a folder, with their folders, the oldest first. Raises StoreError."""
    if store is None:
        for folder in run_folders(output):
            yield Store(connect(file_url(folder)), folder.name), folder
        return
    engine = connect(store, for_room=True)
    for name, _, _ in runs(engine):
        yield Store(engine, name), output / name


def listed(store: Store) -> RunLine:
    """What a list says about a run; never raises for a run that can't be read."""
    try:
        manifest = store.manifest()
        facts = run_state(store), trials_scored(store.pair_totals()), store.created_at()
        return RunLine(store.run, *facts, manifest.tags, manifest.owner, manifest.parent)
    except (StoreError, DatabaseError) as error:
        return RunLine(store.run, UNREADABLE, str(getattr(error, "orig", error)), "", (), None, None)


def run_state(store: Store) -> str:
    """The run's state; `stopped` where it is stored as new or running but no client holds it."""
    state = store.state()
    return "stopped" if state in ("new", "running") and not is_worked_on(store) else state


def trials_scored(pairs: list[PairTotals]) -> str:
    """How many of a run's trials are scored, and how many are left unscored, in words."""
    planned, scored = sum(pair.planned for pair in pairs), sum(pair.scored for pair in pairs)
    unscored = sum(pair.unscored for pair in pairs)
    return f"{scored}/{planned} trials scored" + (f", {unscored} unscored" if unscored else "")


@click.command()
@output_option
@store_option
@tags_option
@owner_option
@json_option
def ls(output: Path, store: str | None, tags: tuple[str, ...], owner: str | None, as_json: bool) -> None:
    """List the runs, the oldest first, with the time (UTC) and the person that began them, `?` if unknown, and tags."""
    chosen = RunFilter(tags, chosen_owner(owner), unowned=owner is None)
    with report_usage_errors():
        found = [listed(each) for each, _ in all_runs(store, output)]
    shown = [run for run in found if chosen.chooses(run)]
    if as_json:
        click.echo(json.dumps([run._asdict() for run in shown]))
        return
    for run in shown:
        click.echo(redacted(run.line()).replace("\n", r"\n"))
    if not found:
        click.echo(f"no runs {'in this store' if store else f'in {output}'} yet; {BEGIN}", err=True)
    elif others := [
        run
        for run in found
        if chosen.owner and run not in shown and run.owner != chosen.owner and run.state != UNREADABLE
    ]:
        click.echo(redacted(f"not {chosen.owner}'s: {whose(others)}; --owner {ANY} lists them too"), err=True)
    elif not shown:
        click.echo(f"none of {len(found)} runs is chosen by these options", err=True)
