"""A cached model of the environment: drives characters or judges. Readable replies are stored; failures are faults."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from proctor.http.client import AnyClient, http_client
from proctor.llm.cache import Replies
from proctor.llm.cached_model import CachedModel, NoReadableReply, Question
from proctor.llm.config import ChatConfig
from proctor.session.thoughts import without_thought
from proctor.types import Message

TRIES = 3
"""Limit of replies requested for one answer."""
Result = TypeVar("Result")


class UnreadableReply(Exception):
    """No reply of a model was readable; the message names the problem of the last one."""


class CharacterModel:
    """A model behind an endpoint, with temperature 0 unless its sampling sets another; its replies are cached."""

    def __init__(self, role: str, config: ChatConfig, client: AnyClient, replies: Replies) -> None:
        self.name = f"model {config.model}"
        self._model = CachedModel(role, config, client, replies, {"temperature": 0})

    async def ask(self, system: str, text: str, read: Callable[[str], Result]) -> Result:
        """The result of `read` on the model's reply, without its thoughts.

        Thoughts are removed in `compat` too, since the reply forms are ours and no published code parses them. If
        `read` raises ValueError, the model is asked again. Raises UnreadableReply after three tries, and
        EnvironmentFault if the endpoint fails.
        """
        messages = (Message(role="system", content=system), Message(role="user", content=text))
        try:
            question = Question(messages, lambda reply: read(without_thought(reply)), _again, TRIES)
            return (await self._model.ask(question)).meaning
        except NoReadableReply as error:
            raise UnreadableReply(str(error)) from error


@asynccontextmanager
async def open_models(
    configs: Mapping[str, ChatConfig | None], cache: Path
) -> AsyncIterator[Mapping[str, CharacterModel]]:
    """The models of those roles that have one. Raises EnvironmentFault if the cache can't be used."""
    named = {role: config for role, config in configs.items() if config is not None}
    if not named:
        yield {}
        return
    replies = Replies(cache)
    replies.open()
    async with http_client() as client:
        yield {role: CharacterModel(role, config, client, replies) for role, config in named.items()}


def _again(problem: str) -> str:
    return f"Your answer can't be used: {problem}. Answer again, in the form asked for."
