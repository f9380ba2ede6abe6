"""What a package adds to `proctor export` and `proctor report`: forms of them, which read recorded runs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import click

from proctor.tables.table import ResultTable
from proctor.types import Finish, Value


class FinishedTrial(Value):
    """A trial that has ended, with a score or as a fault."""

    run: str
    agent: str
    task: str
    sample: str
    epoch: int
    finish: Finish


class RecordedPair(Value):
    """An agent on a task in a run: what is known beside its trials."""

    run: str
    agent: str
    task: str
    planned: int
    """The number of trials, ended or not."""
    comparable: str | None
    """Why its scores are not comparable with published ones; None where they are."""


class RecordedRun(ABC):
    """A run in its store, read anew by each call."""

    name: str

    @abstractmethod
    def __iter__(self) -> Iterator[FinishedTrial]:
        """The finished trials, in the run's order."""

    @abstractmethod
    def pairs(self) -> Sequence[RecordedPair]:
        """All pairs of agent and task, those without a finished trial too."""

    @abstractmethod
    def other(self, run: str) -> "RecordedRun":
        """Another run, by its folder, its name or `latest`."""


@dataclass(frozen=True)
class TrialExport:
    """A form of `proctor export` that reads finished trials; under an entry point of the group `proctor.exports`."""

    help: str
    """What it is, in a few words."""
    place: str
    """The name of its file, or of its folder, in the run's folder."""
    is_folder: bool
    write: Callable[..., str]
    """Writes what it takes of a RecordedRun to a path, with the values of the options by name; says how many of what
    there are. Raises ClickException, and of a store StoreError and DatabaseError."""
    options: Sequence[click.Option] = ()
    """Options of `proctor export` for such forms; none has a default but None, or () if it may be repeated."""
    of_store: bool = False
    """Whether `write` takes the run's store with all that was said, in place of a RecordedRun."""


PaperTables = Callable[[Sequence[FinishedTrial], Sequence[RecordedPair]], list[ResultTable]]
"""The tables of an environment's paper that have a row; under an entry point of the group `proctor.forms`."""
