"""A model that an environment uses (judge, host, user, driver): asked until its reply can be read, then cached.

The reply that could be read is stored under a hash of its question, whatever number of tries it took, and answers that
question from then on: a folder with a file for each reply, so that no session on this machine buys a reply that another
has bought. A reply that can't be read is not stored: a resumed session asks again. The replies that a session has used
are also stored in the run's journal: `proctor.session.kept_replies`.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from pydantic import JsonValue, ValidationError
from pydantic_core import to_json

from proctor.environment import AgentStopped, AgentUnavailable, EnvironmentFault, RequestRejected, ServiceAway
from proctor.http.client import HttpClient
from proctor.llm.config import ChatConfig
from proctor.llm.model import Completion, ModelRefused
from proctor.llm.outage import PATIENCE_S, paid_by
from proctor.llm.servers import HelperServers
from proctor.session.kept_replies import ModelReply, session_replies
from proctor.session.thoughts import has_thought, session_thoughts
from proctor.types import Message, Usage

Meaning = TypeVar("Meaning")
REPEATED_CHARS = 4_000
"""Characters of an unreadable reply that the next request repeats."""
WARMER_FROM = 3
"""The first try with a higher temperature: at least 0.3, then 0.1 more for each try, up to 1."""
UNASKED = ModelReply(text="", model="", tries=0)


def key_of(*asked: object) -> str:
    """40 hex digits, a hash of all parts of a question."""
    return hashlib.blake2b(to_json(asked), digest_size=20).hexdigest()


class Replies:
    """A folder that any number of processes may share; a stored reply is never overwritten."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def open(self) -> None:
        """Create the folder. Raises EnvironmentFault where no file can be written in it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.folder).close()
        except OSError as error:
            raise _not_stored(error) from error

    def locked(self, key: str) -> asyncio.Lock:
        """The lock to hold while a reply is looked up or bought, so that concurrent sessions buy equal replies once."""
        return self._asking.setdefault(key, asyncio.Lock())

    def get(self, key: str, earlier: Callable[[], str] | None = None) -> ModelReply | None:
        """The reply that the session has used before, else the stored one, or None.

        `earlier` is the key under which sessions of earlier versions used it; such stored replies are not read. Raises
        EnvironmentFault where its file is damaged.
        """
        session = session_replies.get()
        if session is not None and len(session):
            used = session.find(key) or (session.find(earlier()) if earlier is not None else None)
            if used is not None:
                return used
        path = self._path(key)
        try:
            reply = ModelReply.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise EnvironmentFault(f"{path}: holds no reply; delete this file") from error
        _used(key, reply, bought=False)
        return reply

    def keep(self, key: str, reply: ModelReply, last: ModelReply) -> ModelReply:
        """Store a reply, and return the key's reply from now on: another session's, where that was stored first.

        `reply` has the cost of all tries, `last` that of the last one alone: the tries before it are `wasted` already.
        Raises EnvironmentFault where the folder can't store it; the session records it even then, since it was bought.
        """
        kept = reply
        try:
            kept = self._store(self._path(key), reply)
        except OSError as error:
            raise _not_stored(error) from error
        finally:
            if kept != last:
                self.wasted(key, last)
            _used(key, kept, bought=kept == last)
        return kept

    def forget(self, key: str) -> None:
        """Delete a reply that can't be read, so that another can be stored."""
        self._path(key).unlink(missing_ok=True)

    def _store(self, path: Path, reply: ModelReply) -> ModelReply:
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part") as file:
            file.write(reply.model_dump_json().encode())
            file.flush()
            os.fsync(file.fileno())
            try:
                os.link(file.name, path)
            except FileExistsError:
                return ModelReply.model_validate_json(path.read_bytes())
        return reply

    def wasted(self, key: str, reply: ModelReply) -> None:
        """Record that the session has paid for a reply that can't be read."""
        if (session := session_replies.get()) is not None:
            session.add_useless(key, reply)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key


def _not_stored(error: OSError) -> EnvironmentFault:
    return EnvironmentFault(f"can't store a model's reply: {error}; set `cache` to another folder")


def _used(key: str, reply: ModelReply, *, bought: bool) -> None:
    if (session := session_replies.get()) is not None:
        session.add(key, reply, bought=bought)


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
        client: HttpClient,
        replies: Replies,
        defaults: Mapping[str, JsonValue],
    ) -> None:
        self.role, self.named, self._patience_s = role, config.model, config.patience_s
        self._model = HelperServers(config, client)
        at = config.replicas_of or config.replicas_file or (config.urls() if config.has_replicas else config.endpoint())
        self._endpoint = at, config.dialect, config.query
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

        It is ServiceAway where other requests would fail too: the endpoint is down, or refuses the key or the model;
        it is waited for as an agent's endpoint is.
        """
        session = session_replies.get()
        if session is not None and not session.may_buy:
            session.unbought[self.named] += 1
            raise EnvironmentFault(f"the {self.role} {self.named} was not asked: its replies may not be bought")
        try:
            completion = await self._model.complete(messages, sampling)
            self._patience_s = self._patience_s or PATIENCE_S
            return completion
        except ModelRefused as refused:
            if refused.completion is None:
                raise EnvironmentFault(f"the {self.role} {self.named} refused: {refused.why}") from refused
            return refused.completion._replace(stop="content_filter")
        except (AgentUnavailable, AgentStopped) as error:
            failed = f"the {self.role} {self.named} failed: {error}"
            if isinstance(error, RequestRejected | AgentStopped):
                raise EnvironmentFault(failed) from error
            away = ServiceAway(failed)
            away.patience_s, vars(away)["paid"] = self._patience_s, paid_by(error)
            raise away from error

    async def _buy(self, key: str, question: Question[Meaning]) -> tuple[Answer[Meaning], ModelReply]:
        """The answer with the cost of all tries, and the last try's reply alone; the others are recorded at once."""
        messages, reply, problem = question.messages, UNASKED, ""
        while reply.tries < question.tries:
            warmer = question.remind is not None
            try:
                completion = await self.complete(messages, self._sampling_of(reply.tries + 1 if warmer else 1))
            except EnvironmentFault as failure:
                if (paid := paid_by(failure)) is not None:
                    self._replies.wasted(key, _spent(UNASKED, paid, model=self.named))
                raise
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
    return _spent(reply, completion.usage, text=completion.action.content, model=completion.model)


def _spent(reply: ModelReply, usage: Usage, *, model: str, text: str = "") -> ModelReply:
    known = (each for each in usage._asdict().items() if each[0] in ModelReply.model_fields)
    spent = {name: getattr(reply, name) + count for name, count in known}
    return ModelReply(text=text, model=model, tries=reply.tries + 1, **spent)


def _answer(question: Question[Meaning], kept: ModelReply) -> Answer[Meaning] | None:
    """The answer that a stored reply holds; None where it can't be read, as when an earlier version stored it."""
    try:
        return Answer((question.read_last or question.read)(kept.text), kept)
    except ValueError:
        return None
