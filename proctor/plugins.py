"""Commands that an environment's package adds: `proctor NAME ...`, a click group under an entry point of GROUP.

They generate data, or plot and convert recorded runs. Their click context object is an `OpenRun`.
"""

from collections.abc import Callable, Iterator
from importlib.metadata import entry_points

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


OpenRun = Callable[[str], Iterator[FinishedTrial]]
"""The finished trials of a run, in the run's order, by the run's folder, its name or `latest`."""


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
