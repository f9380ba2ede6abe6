"""The forms in which the whole trials of a run are written for other programs, by the names that `--format` takes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from eval_client.report.exports.write import write_inspect
from eval_client.store.store import Store
from proctor.plugins import TrialExport
from proctor.registry import EXPORTS, SEPARATE, entry_points


@dataclass(frozen=True)
class Export:
    """A form of export. Packages add forms under entry points of the group `proctor.exports`."""

    help: str
    """What it is, in a few words."""
    place: str
    """The name of its file, or of its folder, in the run's folder."""
    is_folder: bool
    write: Callable[..., str]
    """Writes the trials of a store to a path, with the values of the options by name; says how many of what there are.

    Raises StoreError, DatabaseError.
    """
    options: Sequence[click.Option] = ()
    """Options of `proctor export` for this form alone; none has a default but None, or () if it may be repeated."""


def _inspect(store: Store, folder: Path) -> str:
    trials, logs = write_inspect(store, folder)
    return f"{trials} trials in {logs} files"


INSPECT = Export("Inspect's logs", "inspect", is_folder=True, write=_inspect)


def exports() -> dict[str, Export | TrialExport]:
    """All forms that are installed, by name."""
    return {"inspect": INSPECT, **{entry.name: entry.load() for entry in entry_points(EXPORTS)}}


def separate_exports() -> list[str]:
    """The names of the forms that our own packages offer, installed or not."""
    return [name for offered in SEPARATE.values() for name in offered.get(EXPORTS, ())]
