"""A model on the environment's side (judge, host, user, driver): asked until its reply can be read, never twice.

The reply that could be read is kept under its question, however many tries it took, and holds from then on. One that
can't be read is not kept: whoever resumes the session asks anew.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from proctor.environment import AgentStopped, AgentUnavailable, EnvironmentFault
from proctor.http.client import AnyClient
from proctor.llm.cache import Replies, key_of
from proctor.llm.config import ChatConfig
from proctor.llm.kept_replies import ModelReply
from proctor.llm.model import ChatModel, Completion
from proctor.types import Message

Meaning = TypeVar("Meaning")
RETOLD_CHARS = 4_000
"""Of a reply that can't be read, in the reminder."""
WARMER_FROM = 3
"""The first try with a higher temperature: 0.3, then a tenth more each."""
UNASKED = ModelReply(text="", model="", tries=0)


class NoReadableReply(Exception):
    """No reply could be read in all tries."""

    def __init__(self, role: str, problem: str, reply: ModelReply) -> None:
        super().__init__(f"no answer of the {role} could be read in {reply.tries} tries: {problem}")
        self.problem = problem
        """What was wrong with the last one."""
        self.reply = reply
        """The last one, with the cost of all."""


class Question(NamedTuple, Generic[Meaning]):
    """What is asked, and how the reply is read."""

    messages: tuple[Message, ...]
    read: Callable[[str], Meaning]
    """Raises ValueError, which says what is wrong with a reply."""
    remind: Callable[[str], str]
    """What is asked after a reply that can't be read, given what is wrong with it."""
    tries: int
    salt: str = ""
    """Tells apart equal questions that want replies of their own, or are read in other ways."""


class Answer(NamedTuple, Generic[Meaning]):
    """A reply that could be read."""

    meaning: Meaning
    reply: ModelReply


class CachedModel:
    """A model behind its endpoint; its own sampling stands above the defaults of its role."""

    def __init__(
        self,
        role: str,
        config: ChatConfig,
        client: AnyClient,
        replies: Replies,
        defaults: Mapping[str, JsonValue],
    ) -> None:
        self.role, self.named = role, config.model
        self._model = ChatModel(config, client)
        self._replies = replies
        self._sampling: dict[str, JsonValue] = {**defaults, **config.sampling}

    async def ask(self, question: Question[Meaning]) -> Answer[Meaning]:
        """The answer that holds for a question. Raises NoReadableReply, EnvironmentFault."""
        key = key_of("readable", self.named, self._sampling, question.salt, question.messages)
        async with self._replies.locked(key):
            kept = self._replies.get(key)
            if kept is not None:
                if answer := _answer(question, kept):
                    return answer
                self._replies.forget(key)
            bought, last = await self._buy(key, question)
            held = await asyncio.to_thread(self._replies.keep, key, bought.reply, last)
            return _answer(question, held) or bought

    async def complete(self, messages: Sequence[Message], sampling: Mapping[str, JsonValue]) -> Completion:
        """One completion. Raises EnvironmentFault: whatever fails here is no doing of the agent under test."""
        try:
            return await self._model.complete(messages, sampling=sampling)
        except (AgentUnavailable, AgentStopped) as error:
            raise EnvironmentFault(f"the {self.role} {self.named} failed: {error}") from error

    async def _buy(self, key: str, question: Question[Meaning]) -> tuple[Answer[Meaning], ModelReply]:
        """The answer with the cost of all tries, and the reply of the last try alone; others are told at once."""
        messages, reply, problem = question.messages, UNASKED, ""
        while reply.tries < question.tries:
            completion = await self.complete(messages, self._sampling_of(reply.tries + 1))
            last, reply = UNASKED.after(completion), reply.after(completion)
            try:
                if completion.stop == "content_filter":
                    raise ValueError("a content filter stopped it")
                return Answer(question.read(reply.text), reply), last
            except ValueError as error:
                problem = str(error)
            self._replies.wasted(key, last)
            retold = Message(role="assistant", content=reply.text[:RETOLD_CHARS] or "(nothing)")
            messages = (*question.messages, retold, Message(role="user", content=question.remind(problem)))
        raise NoReadableReply(self.role, problem, reply)

    def _sampling_of(self, number: int) -> Mapping[str, JsonValue]:
        given = self._sampling.get("temperature")
        if number < WARMER_FROM or isinstance(given, bool) or not isinstance(given, int | float):
            return self._sampling
        return {**self._sampling, "temperature": max(given, min(1.0, number / 10))}


def _answer(question: Question[Meaning], kept: ModelReply) -> Answer[Meaning] | None:
    """What a kept reply means; None where an earlier version kept what can't be read now."""
    try:
        return Answer(question.read(kept.text), kept)
    except ValueError:
        return None
