"""Commands that an environment's package adds: `proctor NAME ...`, a click group under an entry point of GROUP.

They generate data, or plot and convert recorded runs. Their click context object is an `OpenRun`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence

import click

from proctor.entry_points import entry_points
from proctor.types import Finish, Value

GROUP = "proctor.commands"


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
    """A run in its store, read anew by each call. Its methods raise ClickException where it can't be read."""

    @abstractmethod
    def __iter__(self) -> Iterator[FinishedTrial]:
        """The finished trials, in the run's order."""

    @abstractmethod
    def trial(self, number: int) -> FinishedTrial:
        """One finished trial, by its number in the run."""

    @abstractmethod
    def pairs(self) -> Sequence[RecordedPair]:
        """All pairs of agent and task, those without a finished trial too."""


OpenRun = Callable[[str], RecordedRun]
"""Opens a run by its folder, its name or `latest`."""


def names() -> list[str]:
    """The names of all installed command groups, sorted; imports none of them."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(name: str) -> click.Command | None:
    """The command group of this name, or None. Raises ClickException where a package that it needs is missing."""
    for entry in entry_points(group=GROUP, name=name):
        try:
            group: click.Command = entry.load()
        except ImportError as error:
            raise click.ClickException(f"{error}; install what it needs: pip install 'proctor[{name}]'") from error
        return group
    return None
