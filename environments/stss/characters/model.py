"""Asks a model on the environment's side, each prompt once: what could be read is kept, its failures are faults."""

from collections.abc import Callable
from typing import TypeVar

from proctor.http.client import AnyClient
from proctor.llm import CachedModel, ChatConfig, NoReadableReply, Question, Replies
from proctor.thoughts import without_thought
from proctor.types import Message

TRIES = 3
"""Replies for one answer, where they can't be read: the first and two more."""
Result = TypeVar("Result")


class UnreadableReply(Exception):
    """No reply of a model could be read; the message says what was wrong with the last one."""


class CharacterModel:
    """A model behind its endpoint, at temperature 0 unless its sampling says otherwise; what it says is kept."""

    def __init__(self, role: str, config: ChatConfig, client: AnyClient, replies: Replies) -> None:
        self.name = f"model {config.model}"
        self._model = CachedModel(role, config, client, replies, {"temperature": 0})

    async def ask(self, system: str, text: str, read: Callable[[str], Result]) -> Result:
        """What `read` makes of the reply, without what was thought before it.

        That goes in `compat` too: the forms asked for are ours, and no published code reads them.

        `read` raises ValueError for one that can't be read, which is asked for again. Raises UnreadableReply after
        three tries, EnvironmentFault where the model can't be had.
        """
        messages = (Message(role="system", content=system), Message(role="user", content=text))
        try:
            question = Question(messages, lambda reply: read(without_thought(reply)), _again, TRIES)
            return (await self._model.ask(question)).meaning
        except NoReadableReply as error:
            raise UnreadableReply(str(error)) from error


def _again(problem: str) -> str:
    return f"Your answer can't be used: {problem}. Answer again, in the form asked for."
