"""The runs of a folder or a database server, with what they can be chosen by."""

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import click
import sqlalchemy as sa

from eval_client.store.connection import StoreError, connect, runs, sqlite_url
from eval_client.store.lock import is_worked_on
from eval_client.store.records import PairTotals
from eval_client.store.run_folders import run_folders
from eval_client.store.store import Store

UNREADABLE = "unreadable"
tags_option = click.option(
    "--tag", "tags", multiple=True, metavar="TAG", help="Only runs with this tag, or all these tags."
)
owner_option = click.option("--owner", metavar="NAME", help="Only runs that this person began.")


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
        begun = f", begun {self.created_at[:16].replace('T', ' ')}" if self.created_at else ""
        return (
            f"{self.run}: {self.state}, {self.trials}{begun}{f' by {self.owner}' if self.owner else ''}{tags}{parent}"
        )


@dataclass(frozen=True)
class RunFilter:
    """Which runs are chosen: by default all."""

    tags: Sequence[str] = ()
    owner: str | None = None
    since: datetime.datetime | None = None
    until: datetime.datetime | None = None

    def chooses(self, run: RunLine) -> bool:
        """Whether a run is chosen. One that can't be read is only where nothing is asked."""
        if self == RunFilter():
            return True
        if run.state == UNREADABLE:
            return False
        begun = datetime.datetime.fromisoformat(run.created_at)
        return (
            set(self.tags) <= set(run.tags)
            and self.owner in (None, run.owner)
            and (self.since is None or self.since <= begun)
            and (self.until is None or begun < self.until)
        )


def all_runs(store: str | None, output: Path) -> Iterator[tuple[Store, Path]]:
    """The runs of a database server or of a folder, with their folders, the oldest first. Raises StoreError."""
    if store is None:
        for folder in run_folders(output):
            yield Store(connect(sqlite_url(folder)), folder.name), folder
        return
    engine = connect(store)
    for name, _, _ in runs(engine):
        yield Store(engine, name), output / name


def listed(store: Store) -> RunLine:
    """What a list says about a run; never raises for a run that can't be read."""
    try:
        manifest = store.manifest()
        facts = run_state(store), trials_scored(store.pair_totals()), store.created_at()
        return RunLine(store.run, *facts, manifest.tags, manifest.owner, manifest.parent)
    except (StoreError, sa.exc.SQLAlchemyError) as error:
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
