"""The agent's prompts: those of AgentBench (arXiv 2308.03688, Appendix G.2), in our own words."""

import re
from collections.abc import Sequence

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
