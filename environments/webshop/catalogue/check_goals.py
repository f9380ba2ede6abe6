"""Checks that a catalogue's goals have the published indices, and that they are the published ones."""

import re
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from environments.webshop.catalogue.make import DATABASE
from environments.webshop.catalogue.product import Goal
from environments.webshop.catalogue.store import CatalogueStore
from proctor.config.wording import first_problem
from proctor.published import records_hash
from proctor.types import Value


class _Goal(Value):
    goal_index: int
    instruction: str
    """The instruction without the price limit."""


_LIST = TypeAdapter(list[_Goal])
KNOWN = range(200, 500)
"""The indices of the goals whose words are known."""
PUBLISHED = "9c2ea39e77b2e2caef3377b4eac88e6d9aaa5764d72e0ed1df86d8f41e409a95"
"""The hash of their words, in their order."""


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


def other_goals(store: CatalogueStore) -> str | None:
    """Why the goals are not the published ones; None where those at the known indices have the published words."""
    if records_hash(map(words, store.goals(KNOWN))) == PUBLISHED:
        return None
    first, end = KNOWN.start, KNOWN.stop
    return (
        f"the goals {first} to {end - 1} have other words than the published ones; index the published files unchanged"
    )


def words(goal: Goal) -> str:
    """An instruction without its price limit, in the form of the known texts: lower case, no quotes or apostrophes."""
    price = f", and price lower than {goal.price_upper:.2f} dollars"
    return re.sub("[\"']", "", goal.instruction.lower()).strip().removesuffix(price)
