"""The texts of a game in the published format (`game.tw-pddl`), its type, and how our own games are assembled."""

from functools import cache
from pathlib import Path
from typing import Literal, get_args

from pydantic import ConfigDict, Field

from environments.alfworld.engine.grammar import Format
from environments.alfworld.engine.s_expressions import GameError
from proctor.types import Value

SAMPLES = Path(__file__).with_name("samples")
TaskType = Literal[
    "pick_and_place",
    "pick_clean_then_place",
    "pick_heat_then_place",
    "pick_cool_then_place",
    "look_at_obj",
    "pick_two_obj",
]
TASK_TYPES: tuple[TaskType, ...] = get_args(TaskType)
"""The six types of household tasks; the name of a game's folder begins with its type."""


class GameTexts(Value):
    """The content of a game file, key by key."""

    model_config = ConfigDict(extra="ignore")

    pddl_domain: str = Field(min_length=1)
    grammar: str = Field(min_length=1)
    pddl_problem: str = Field(min_length=1)
    solvable: bool = False
    walkthrough: tuple[str, ...] | None = None
    """A plan that wins; files of ALFWorld before 0.4 have none."""


class OwnGame(Value):
    """One of our own games, without the domain and the grammar, which all of them share."""

    path: str
    """In the form of the published paths: task folder, trial, `game.tw-pddl`."""
    format: Format
    task: str
    """The sentence that describes the task."""
    problem: str
    plan: tuple[str, ...]
    """Commands that win."""

    def texts(self) -> GameTexts:
        """The texts of the game as a self-contained file."""
        return GameTexts(
            pddl_domain=own_domain(self.format),
            grammar=own_grammar(self.format).replace("@TASK@", self.task),
            pddl_problem=self.problem,
            solvable=True,
            walkthrough=self.plan,
        )


@cache
def own_domain(format: Format) -> str:
    """The domain of our own games; only the format `move` has the command `help`."""
    return _read("domain.pddl").replace("@HELP@", _read("help.pddl") if format == "move" else "")


@cache
def own_grammar(format: Format) -> str:
    """The grammar of our own games, with @TASK@ for the task."""
    put, to, place = ("move", "to", "r") if format == "move" else ("put", "in/on", "lend")
    text = _read("grammar.twl2").replace("@PUT@", put).replace("@TO@", to).replace("@PLACE@", place)
    return text + (_read("help.twl2") if format == "move" else "")


def _read(name: str) -> str:
    return (SAMPLES / name).read_text(encoding="utf-8")


def task_type(folder: str) -> TaskType:
    """The type of the task whose folder has this name. Raises GameError where it is none of the six."""
    for each in TASK_TYPES:
        if folder.startswith(each):
            return each
    raise GameError(
        f"the folder {folder!r} names no task type; its name must begin with one of {', '.join(TASK_TYPES)}"
    )
