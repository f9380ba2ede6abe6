"""Whether a catalogue's goals stand where the published ones do."""

from contextlib import closing
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from environments.types import Value
from environments.webshop.catalogue import DATABASE
from environments.webshop.store import Store


class _Published(Value):
    goal_index: int
    instruction: str
    """Without the price limit."""


_LIST = TypeAdapter(list[_Published])


def compare(catalogue: Path, expected: Path) -> int:
    """How many goals were compared with a published list (`goal_index`, `instruction`); all of them agree.

    Raises ValueError naming the first that does not.
    """
    try:
        published = _LIST.validate_json(expected.read_bytes())
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise ValueError(
            f"{expected}: {where}: {error.errors()[0]['msg']}; give [{{goal_index, instruction}}]"
        ) from error
    with closing(Store(catalogue / DATABASE)) as store:
        for goal in published:
            found = store.goal(goal.goal_index).instruction
            if not found.startswith(goal.instruction):
                raise ValueError(
                    f"{catalogue}: goal {goal.goal_index} is {found!r}, not {goal.instruction!r}: the files are "
                    "not the full published set, or another version of it"
                )
    return len(published)
