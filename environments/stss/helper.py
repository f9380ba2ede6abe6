"""Asks a model on the environment's side, each prompt once: what it said is kept, and its failures are faults."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import JsonValue

from environments.base import AgentStopped, AgentUnavailable, EnvironmentFault
from environments.chat import ChatConfig, ChatModel, Completion, Replies, Reply, key_of
from environments.http import AnyClient
from environments.types import Message

TRIES = 3
"""Replies for one answer, where they can't be read: the first and two more."""
Result = TypeVar("Result")


class Unreadable(Exception):
    """No reply of a model could be read; the message says what was wrong with the last one."""


class Helper:
    """A model behind its endpoint, at temperature 0 unless its sampling says otherwise; what it says is kept."""

    def __init__(self, role: str, config: ChatConfig, client: AnyClient, replies: Replies) -> None:
        self.name = f"model {config.model}"
        self._role, self._named, self._replies = role, config.model, replies
        self._model = ChatModel(config, client)
        self._sampling: dict[str, JsonValue] = {"temperature": 0, **config.sampling}

    async def ask(self, system: str, text: str, read: Callable[[str], Result]) -> Result:
        """What `read` makes of the reply; it raises ValueError for one that can't be read, which is asked for again.

        Raises Unreadable after three tries, EnvironmentFault where the model can't be had.
        """
        messages = [Message(role="system", content=system), Message(role="user", content=text)]
        problem = "nothing was said"
        for _ in range(TRIES):
            said = await self._reply(messages)
            try:
                return read(said)
            except ValueError as error:
                problem = str(error)
            again = f"Your answer can't be used: {problem}. Answer again, in the form asked for."
            messages += [Message(role="assistant", content=said), Message(role="user", content=again)]
        raise Unreadable(f"no answer of the {self._role} could be read: {problem}")

    async def _reply(self, messages: Sequence[Message]) -> str:
        key = key_of(self._named, self._sampling, tuple(messages))
        async with self._replies.locked(key):
            reply = self._replies.get(key)
            if reply is None:
                bought = Reply.of(await self._complete(messages))
                reply = await asyncio.to_thread(self._replies.keep, key, bought)
            return reply.text

    async def _complete(self, messages: Sequence[Message]) -> Completion:
        try:
            return await self._model.complete(messages, sampling=self._sampling)
        except (AgentUnavailable, AgentStopped) as error:
            raise EnvironmentFault(f"the {self._role} {self._named} failed: {error}") from error
