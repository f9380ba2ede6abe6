"""The solved example that precedes a task: one of our own games of the same type, played by its plan, with thoughts."""

import re
from collections.abc import Iterator
from functools import cache

from environments.alfworld import prompt
from environments.alfworld.dataset import own_games
from environments.alfworld.engine.game import ReadyGame
from environments.alfworld.engine.grammar import Format
from environments.alfworld.engine.world import GameWorld
from environments.alfworld.texts import OwnGame, TaskType, own_domain, own_grammar, task_type
from proctor.types import Message

_LAYING_DOWN = re.compile(r"(?:put|move) (.+) (?:in/on|to) (.+)")
LEAST_PLAN, LONGEST_PLAN = 5, 8
"""Commands in the plan of an example, which then has 12 to 18 messages, as the published ones have."""


@cache
def example(type_: TaskType, format: Format) -> tuple[Message, ...]:
    """The example of a task type in a command format, from the user's first message to the agent's last."""
    game = next(
        game for game in own_games() if task_type(game.path) == type_ and LEAST_PLAN <= len(game.plan) <= LONGEST_PLAN
    )
    return tuple(_messages(game, format))


def before(type_: TaskType, format: Format) -> tuple[Message, ...]:
    """The messages before a game, in our own words: instruction, consent and example."""
    instruction = (Message(role="user", content=prompt.INSTRUCTION), Message(role="assistant", content=prompt.CONSENT))
    return (*instruction, *example(type_, format))


def _messages(game: OwnGame, format: Format) -> Iterator[Message]:
    grammar = own_grammar(format).replace("@TASK@", game.task)
    world = GameWorld(ReadyGame(own_domain(format), grammar, game.problem))
    yield Message(role="user", content=prompt.EXAMPLE + prompt.opening(world.intro))
    for number, planned in enumerate(game.plan):
        command = in_format(planned, format)
        thought = _thought(game, number)
        reply = f"THOUGHT: {thought}\nACTION: {command}" if thought else f"ACTION: {command}"
        yield Message(role="assistant", content=reply)
        yield Message(role="user", content=prompt.observed(world.step(command)))
    yield Message(role="assistant", content=f"THOUGHT: That was the last step, and the task is done: {game.task}")


def in_format(command: str, format: Format) -> str:
    """A command in the words of a format."""
    found = _LAYING_DOWN.fullmatch(command)
    if found is None:
        return command
    return f"move {found[1]} to {found[2]}" if format == "move" else f"put {found[1]} in/on {found[2]}"


def _thought(game: OwnGame, number: int) -> str:
    """The thought that the example gives before a step of the plan; empty where the step needs none."""
    verb, *rest = game.plan[number].split()
    thing = " ".join(rest[:2])
    if number == 0:
        first = next(command.split()[1] for command in game.plan if command.startswith("take "))
        place = " ".join(rest[1:])
        return f"I have to {game.task.rstrip('.')}. First I need a {first}. One could be here: {place}."
    if verb == "take":
        return f"There it is: the {thing}. I take it with me."
    if verb in ("clean", "heat", "cool"):
        return f"Here I can {verb} the {thing}, which the task asks for."
    if verb == "use":
        return f"I carry what I am to look at. The {thing} is here, and only has to be switched on."
    if verb == "open":
        return f"The {thing} is closed. I must open it before I can go on."
    return ""
