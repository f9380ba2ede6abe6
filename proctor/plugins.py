"""Commands that an environment brings along: `proctor NAME ...`, a click group under an entry point of this group.

They make data, draw or convert what runs recorded. They are given an `OpenRun` as click's context object.
"""

from collections.abc import Callable, Iterator
from importlib.metadata import entry_points

import click

from proctor.types import Finish, Value

GROUP = "proctor.commands"


class FinishedTrial(Value):
    """A trial of a run that has come to its end, faults included."""

    run: str
    agent: str
    task: str
    sample: str
    epoch: int
    finish: Finish


OpenRun = Callable[[str], Iterator[FinishedTrial]]
"""From a run's folder, name, or `latest` to its finished trials, in the run's order."""


def names() -> list[str]:
    """The names of all groups of commands that are installed, sorted; imports none of them."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def load(name: str) -> click.Command | None:
    """The group of this name, or None. Raises ClickException where what it needs is not installed."""
    for entry in entry_points(group=GROUP, name=name):
        try:
            group: click.Command = entry.load()
        except ImportError as error:
            raise click.ClickException(f"{error}; install what it needs: pip install 'proctor[{name}]'") from error
        return group
    return None
