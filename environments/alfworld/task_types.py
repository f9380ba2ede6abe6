"""The six types of household tasks; the name of a game's folder begins with its type."""

from typing import Literal, get_args

from environments.alfworld.engine.errors import GameError

TaskType = Literal[
    "pick_and_place",
    "pick_clean_then_place",
    "pick_heat_then_place",
    "pick_cool_then_place",
    "look_at_obj",
    "pick_two_obj",
]
TASK_TYPES: tuple[TaskType, ...] = get_args(TaskType)


def task_type(folder: str) -> TaskType:
    """The type of the task whose folder has this name. Raises GameError where it is none of the six."""
    for each in TASK_TYPES:
        if folder.startswith(each):
            return each
    raise GameError(
        f"the folder {folder!r} names no task type; its name must begin with one of {', '.join(TASK_TYPES)}"
    )
