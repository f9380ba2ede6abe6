"""A model that an environment uses (judge, host, user, driver): asked until its reply can be read, then cached.

The reply that could be read is stored under its question, whatever number of tries it took, and answers that question
from then on. A reply that can't be read is not stored: a resumed session asks again.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from proctor.environment import AgentStopped, AgentUnavailable, EnvironmentFault, RequestRejected, ServiceAway
from proctor.http.client import AnyClient
from proctor.llm.cache import Replies, key_of
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel, Completion, ModelRefused
from proctor.session.kept_replies import ModelReply, session_replies
from proctor.session.thoughts import has_thought, session_thoughts
from proctor.types import Message

Meaning = TypeVar("Meaning")
REPEATED_CHARS = 4_000
"""Characters of an unreadable reply that the next request repeats."""
WARMER_FROM = 3
"""The first try with a higher temperature: at least 0.3, then 0.1 more for each try, up to 1."""
UNASKED = ModelReply(text="", model="", tries=0)


class NoReadableReply(Exception):
    """No reply could be read in all tries."""

    def __init__(self, role: str, problem: str, reply: ModelReply) -> None:
        super().__init__(f"no answer of the {role} could be read in {reply.tries} tries: {problem}")
        self.problem = problem
        """What was wrong with the last reply."""
        self.reply = reply
        """The last reply, with the cost of all tries."""


class Question(NamedTuple, Generic[Meaning]):
    """The messages of a request, and how the reply is read."""

    messages: tuple[Message, ...]
    read: Callable[[str], Meaning]
    """The meaning of a reply. Raises ValueError, whose message is what is wrong with the reply."""
    remind: Callable[[str], str] | None
    """The last message of the next request, from what is wrong with an unreadable reply; None to repeat the request."""
    tries: int
    salt: str = ""
    """Distinguishes equal questions that need replies of their own, or are read in other ways."""
    read_last: Callable[[str], Meaning] | None = None
    """How the last try's reply is read, and a stored one, where more is let pass than by `read`."""


class Answer(NamedTuple, Generic[Meaning]):
    """A reply that could be read."""

    meaning: Meaning
    reply: ModelReply


class CachedModel:
    """A model with a cache of its replies; the configured sampling takes precedence over `defaults`."""

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
        self._endpoint = config.endpoint(), config.dialect, config.query
        self._replies = replies
        self._sampling: dict[str, JsonValue] = {**defaults, **config.sampling}

    async def ask(self, question: Question[Meaning]) -> Answer[Meaning]:
        """The stored answer to a question, else a new one. Raises NoReadableReply, EnvironmentFault."""
        answer = await self._found(question)
        if (count := session_thoughts.get()) is not None:
            count.helpers += has_thought(answer.reply.text)
        return answer

    async def _found(self, question: Question[Meaning]) -> Answer[Meaning]:
        asked = self.named, self._sampling, question.salt, question.messages
        key = key_of("readable", self._endpoint, *asked)
        async with self._replies.locked(key):
            kept = self._replies.get(key, lambda: key_of("readable", *asked))
            if kept is not None:
                if answer := _answer(question, kept):
                    return answer
                self._replies.forget(key)
            bought, last = await self._buy(key, question)
            in_use = await asyncio.to_thread(self._replies.keep, key, bought.reply, last)
            return _answer(question, in_use) or bought

    async def complete(self, messages: Sequence[Message], sampling: Mapping[str, JsonValue]) -> Completion:
        """One completion, not cached. Raises EnvironmentFault on any failure: none is the tested agent's fault.

        It is ServiceAway where other requests would fail too: the endpoint is down, or refuses the key or the model.
        """
        session = session_replies.get()
        if session is not None and not session.may_buy:
            session.unbought[self.named] += 1
            raise EnvironmentFault(f"the {self.role} {self.named} was not asked: its replies may not be bought")
        try:
            return await self._model.complete(messages, sampling=sampling)
        except ModelRefused as refused:
            if refused.completion is None:
                raise EnvironmentFault(f"the {self.role} {self.named} refused: {refused.why}") from refused
            return refused.completion.model_copy(update={"stop": "content_filter"})
        except (AgentUnavailable, AgentStopped) as error:
            lasting = isinstance(error, RequestRejected | AgentStopped)
            raise (EnvironmentFault if lasting else ServiceAway)(
                f"the {self.role} {self.named} failed: {error}"
            ) from error

    async def _buy(self, key: str, question: Question[Meaning]) -> tuple[Answer[Meaning], ModelReply]:
        """The answer with the cost of all tries, and the last try's reply alone; the others are recorded at once."""
        messages, reply, problem = question.messages, UNASKED, ""
        while reply.tries < question.tries:
            warmer = question.remind is not None
            completion = await self.complete(messages, self._sampling_of(reply.tries + 1 if warmer else 1))
            last, reply = _after(UNASKED, completion), _after(reply, completion)
            try:
                if completion.stop == "content_filter":
                    raise ValueError("a content filter stopped it")
                read = question.read_last if reply.tries == question.tries else None
                return Answer((read or question.read)(reply.text), reply), last
            except ValueError as error:
                problem = str(error)
            self._replies.wasted(key, last)
            if question.remind is None:
                continue
            repeated = Message(role="assistant", content=reply.text[:REPEATED_CHARS] or "(nothing)")
            messages = (*question.messages, repeated, Message(role="user", content=question.remind(problem)))
        raise NoReadableReply(self.role, problem, reply)

    def _sampling_of(self, number: int) -> Mapping[str, JsonValue]:
        given = self._sampling.get("temperature")
        if number < WARMER_FROM or isinstance(given, bool) or not isinstance(given, int | float):
            return self._sampling
        return {**self._sampling, "temperature": max(given, min(1.0, number / 10))}


def _after(reply: ModelReply, completion: Completion) -> ModelReply:
    """The reply of a further try, with the cost of all."""
    known = (each for each in completion.usage if each[0] in ModelReply.model_fields)
    spent = {name: getattr(reply, name) + count for name, count in known}
    return ModelReply(text=completion.action.content, model=completion.model, tries=reply.tries + 1, **spent)


def _answer(question: Question[Meaning], kept: ModelReply) -> Answer[Meaning] | None:
    """The answer that a stored reply holds; None where it can't be read, as when an earlier version stored it."""
    try:
        return Answer((question.read_last or question.read)(kept.text), kept)
    except ValueError:
        return None
