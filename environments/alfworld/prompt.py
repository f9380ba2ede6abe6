"""The agent's prompts: those of AgentBench (arXiv 2308.03688, Appendix G.2), in our own words."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from environments.alfworld.reply import Move, NoMove
from proctor.tools import Protocol, ReplyReader
from proctor.types import Action, Message, Observation, Tool

ROUNDS: Mapping[Protocol, int] = {"text": 35, "tools": 20}
"""The most replies of a session, as published for each protocol."""
MAX_KEPT = 200_000
"""Characters that the history keeps of a reply, from its end: 35 whole replies could exceed any message's limit."""

INSTRUCTION = """\
You are in a house and can act in it. I describe what you see, and you are given one household task: choose your \
actions so that in the end the task is done.
You first learn where you are and what the task is. From then on, every turn shows you what came of your last action, \
and a list of the actions that are available: "AVAILABLE ACTIONS". Answer in one of these two forms, as you think fit:
1. "THOUGHT: what you think.
ACTION: your next action"
2. "ACTION: your next action"
After each answer you are told what happens. Where you read "Nothing happened", the action was not possible: try \
another.
Keep in mind:
1. The action must be one of those in the list of available actions.
2. Think only where you need to; going on to act is better."""

CALLS_INSTRUCTION = """\
You are in a house and can act in it. I describe what you see, and you are given one household task: choose your \
actions so that in the end the task is done.
You first learn where you are and what the task is. You act by calling the function that you are offered, and by \
nothing else: its argument is your next action. Every turn shows you a list of the actions that are available: \
"AVAILABLE ACTIONS". Choose one of them, and give it as the argument in the words of the list. After each call you are \
told what came of it. Where you read "Nothing happens", the action was not possible: try another.
Keep in mind:
1. The action must be one of those in the newest list of available actions.
2. Call the function exactly once in every turn; think before you call it where you need to."""

CONSENT = "Understood. I will choose one of the available actions in every turn."
EXAMPLE = "Here is one example.\n"
TASK = "Here is your task. "
MARK = "AVAILABLE ACTIONS"
_LIST = f"{MARK}: "
_ARRIVAL = "You arrive at loc "


def opening(intro: str) -> str:
    """The engine's first text without its welcome: room, then task, a line each."""
    return "\n".join(intro.split("\n\n")[1:])


def observed(text: str) -> str:
    """The engine's answer to a command, without the number of a location, which carries no information."""
    return text.partition(". ")[2] if text.startswith(_ARRIVAL) else text


def with_list(text: str, admissible: Sequence[str]) -> str:
    """An observation with its list of actions."""
    return f"{text} {_LIST}" + "\n".join(admissible) + "\n"


def without_list(content: str) -> str:
    """A message as it stays in the history: without the list, which only the last message has."""
    return content.partition(MARK)[0]


def listed(content: str) -> list[str]:
    """The actions in the list of a message."""
    return [line for line in content.partition(_LIST)[2].split("\n") if line]


def task_of(content: str) -> str:
    """The sentence behind `Your task is to:` in a message; empty where there is none."""
    found = re.search(r"Your task is to: ([^\n]*)", without_list(content))
    return found[1].strip() if found else ""


Tell = Callable[[Action | None, Sequence[Message]], Observation]
"""Gives the next observation, from the last reply and the new messages; without a reply, the first one."""


class HouseholdDialogue(NamedTuple):
    """What depends on the protocol of a session."""

    rounds: int
    reader: ReplyReader[Move | NoMove]
    tell: Tell


def retold(before: Sequence[Message]) -> Tell:
    """Tells the whole history anew each time; only its last message has a list of actions."""
    history = list(before)

    def tell(reply: Action | None, new: Sequence[Message]) -> Observation:
        last = max((at for at, each in enumerate(history) if each.role == "user"), default=0)
        history[last] = Message(role="user", content=without_list(history[last].content))
        if reply is not None:
            history.append(Message(role="assistant", content=reply.content[-MAX_KEPT:]))
        history.extend(new)
        return Observation(messages=tuple(history), fresh=True)

    return tell


def appended(before: Sequence[Message], tools: tuple[Tool, ...]) -> Tell:
    """Tells the new messages alone: those told before stay as they are."""
    return lambda reply, new: Observation(messages=(*(() if reply else before), *new), tools=tools)
