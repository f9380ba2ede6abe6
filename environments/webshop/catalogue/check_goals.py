"""Checks that a catalogue's goals have the published indices."""

from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from environments.webshop.catalogue.make import DATABASE
from environments.webshop.catalogue.store import CatalogueStore
from proctor.config.wording import first_problem
from proctor.types import Value


class _Goal(Value):
    goal_index: int
    instruction: str
    """The instruction without the price limit."""


_LIST = TypeAdapter(list[_Goal])


class PublishedGoals(NamedTuple):
    """Published goals with their indices, and the path of their file."""

    path: Path
    goals: list[_Goal]


def read(path: Path) -> PublishedGoals:
    """A published list of `goal_index` and `instruction`. Raises OSError, and ValueError with file, entry and field."""
    try:
        return PublishedGoals(path, _LIST.validate_json(path.read_bytes()))
    except ValidationError as error:
        raise ValueError(f"{path}: {first_problem(error, 'the list')}; give [{{goal_index, instruction}}]") from error


def compare(catalogue: Path, published: PublishedGoals) -> None:
    """Raises ValueError with the first goal of a catalogue whose index is not the published one."""
    with closing(CatalogueStore(catalogue / DATABASE)) as store:
        for number, goal in enumerate(published.goals):
            if not 0 <= goal.goal_index < store.meta.goals:
                raise ValueError(
                    f"{published.path}: {number}.goal_index: no goal {goal.goal_index}; {catalogue} has "
                    f"{store.meta.goals}: the files are not the full published set"
                )
            found = store.goal(goal.goal_index).instruction
            if not found.startswith(goal.instruction):
                raise ValueError(
                    f"{catalogue}: goal {goal.goal_index} is {found!r}, not {goal.instruction!r}: the files are "
                    "not the full published set, or another version of it"
                )
