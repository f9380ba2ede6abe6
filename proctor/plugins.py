"""Commands that an environment's package adds: `proctor NAME ...`, a click group under an entry point of GROUP.

They generate data, or plot and convert recorded runs. Their click context object is an `OpenRun`.
"""

import functools
import importlib.metadata
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoints

import click

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


def entry_points(group: str, name: str | None = None) -> EntryPoints:
    """The entry points of a group; those of one name, if given. A process reads the packages' metadata once."""
    found = _by_group(tuple(sys.path)).get(group, EntryPoints())
    return found if name is None else found.select(name=name)


@functools.lru_cache
def _by_group(_path: tuple[str, ...]) -> Mapping[str, EntryPoints]:
    """The entry points of our groups that this import path leads to."""
    found = importlib.metadata.entry_points()
    return {group: found.select(group=group) for group in found.groups if group.startswith("proctor.")}


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
