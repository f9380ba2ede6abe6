"""The built-in policies: the known plan, a search for what the task names, and random commands."""

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from environments.alfworld import prompt
from proctor.environment import Policy
from proctor.types import Action, Message


class RoomView(NamedTuple):
    """What an agent can see of its session."""

    task: str
    room: str
    """The first observation."""
    commands: Sequence[str]
    """Those that are admissible now."""
    done: Sequence[str]
    """The agent's actions so far."""


def reference(plan: Sequence[str]) -> Policy:
    """Follows the plan, command by command."""

    def policy(conversation: str, transcript: Sequence[Message]) -> Action:
        return _action(plan[min(len(_view(transcript).done), len(plan) - 1)])

    return policy


def chance(sample: str, seed: int) -> Policy:
    """A random command of the list."""

    def policy(conversation: str, transcript: Sequence[Message]) -> Action:
        view = _view(transcript)
        return _action(random.Random(f"{sample} {seed} {len(view.done)}").choice(view.commands))

    return policy


def fetch(conversation: str, transcript: Sequence[Message]) -> Action:
    """Goes from place to place and carries an object that the task names to a receptacle that it names.

    It never cleans, heats or cools the object.
    """
    view = _view(transcript)
    words = set(re.findall(r"\w+", view.task))
    held = sum(each.startswith("take ") for each in view.done) > sum(
        each.startswith(("put ", "move ")) for each in view.done
    )
    return _action(_bring(view, words) if held else _seek(view, words))


def _bring(view: RoomView, words: set[str]) -> str:
    for command in view.commands:
        if command.startswith(("put ", "move ")) and command.split()[-2] in words:
            return command
    return _open(view) or _go(view, [place for place in _places(view) if place.split()[0] in words])


def _seek(view: RoomView, words: set[str]) -> str:
    for command in view.commands:
        verb, *rest = command.split()
        if verb == "take" and rest[0] in words and rest[-2] not in words:
            return command
    return _open(view) or _go(view, _places(view))


def _open(view: RoomView) -> str | None:
    return next((each for each in view.commands if each.startswith("open ") and each not in view.done), None)


def _go(view: RoomView, places: Sequence[str]) -> str:
    """The command to go to the place with the fewest visits so far; `look` where no place can be reached."""
    ways = [f"go to {place}" for place in places if f"go to {place}" in view.commands]
    return min(ways, key=view.done.count, default="look")


def _places(view: RoomView) -> list[str]:
    found = re.search(r"you see (.*)\.", view.room)
    return re.findall(r"\ba (\w+ \d+)", found[1]) if found else []


def _view(transcript: Sequence[Message]) -> RoomView:
    start = max(at for at, each in enumerate(transcript) if each.content.startswith(prompt.TASK))
    room = transcript[start].content
    replies = [each.content for each in transcript[start:] if each.role == "assistant"]
    done = [reply.partition("ACTION: ")[2] for reply in replies]
    return RoomView(prompt.task_of(room), room, prompt.listed(transcript[-1].content), done)


def _action(command: str) -> Action:
    return Action(content=f"ACTION: {command}")
