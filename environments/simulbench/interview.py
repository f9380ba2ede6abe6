"""Asks until the answer can be read: judges, users and authors, wherever they sit."""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from environments.base import Agent
from environments.simulbench import prompts
from environments.simulbench.reading import Profile, Unreadable
from environments.types import Message, Observation

TRIES: dict[Profile, int] = {"strict": 3, "compat": 20}
"""Answers asked for before a judge or author counts as unreadable."""
USER_TRIES = 5
MAX_ANSWER_CHARS = 100_000
"""A longer answer is none: some 25 times what a judge is allowed as published."""
Meaning = TypeVar("Meaning")


class Unparsed(Exception):
    """No answer could be read in all tries: a fault, never a number."""

    def __init__(self, who: str, problem: str, text: str) -> None:
        super().__init__(f"{who}_unparsed: {problem}")
        self.detail: dict[str, JsonValue] = {
            "cause": f"{who}_unparsed",
            "problem": problem,
            "text": text[:MAX_ANSWER_CHARS],
        }
        """What the finish says."""


class Question(NamedTuple, Generic[Meaning]):
    """What is asked, how its answer is read, and what is asked again where it can't be."""

    prompt: str
    read: Callable[[str], Meaning]
    """Raises Unreadable."""
    reminder: str
    """With `{problem}` where it says what was wrong."""
    who: str
    tries: int


class Answer(NamedTuple, Generic[Meaning]):
    """An answer that could be read."""

    meaning: Meaning
    text: str
    tries: int


async def interview(agent: Agent, question: Question[Meaning], conversation: str = "main") -> Answer[Meaning]:
    """The agent's answer to a question, in a conversation begun anew. Raises Unparsed, and what the agent raises."""
    said, problem, text = question.prompt, "", ""
    for tried in range(question.tries):
        message = Message(role="user", content=said)
        action = await agent.act(Observation(messages=(message,), conversation=conversation, fresh=tried == 0))
        text = action.content
        try:
            return Answer(question.read(_bounded(text)), text, tried + 1)
        except Unreadable as unreadable:
            problem = str(unreadable)
            said = prompts.reminder(question.reminder, problem)
    raise Unparsed(question.who, problem, text)


def _bounded(text: str) -> str:
    if len(text) > MAX_ANSWER_CHARS:
        raise Unreadable(f"the answer has more than {MAX_ANSWER_CHARS} characters")
    return text
