"""Asks a model on the environment's side, each prompt once: what it said is kept, and its failures are faults."""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar
from weakref import WeakValueDictionary

import httpx
import pydantic_core
from pydantic import JsonValue

from environments.base import AgentStopped, AgentUnavailable, EnvironmentFault
from environments.chat import ChatConfig, ChatModel
from environments.types import Message

TRIES = 3
"""Replies for one answer, where they can't be read: the first and two more."""
Result = TypeVar("Result")


class Unreadable(Exception):
    """No reply of a model could be read; the message says what was wrong with the last one."""


class Helper:
    """A model behind its endpoint, at temperature 0 unless its sampling says otherwise; replies are kept in files."""

    def __init__(self, role: str, config: ChatConfig, client: httpx.AsyncClient, folder: Path) -> None:
        """Raises EnvironmentFault where nothing can be kept in the folder."""
        self.name = f"model {config.model}"
        self._role, self._folder = role, folder
        self._model = ChatModel(config, client)
        self._sampling: dict[str, JsonValue] = {"temperature": 0, **config.sampling}
        self._named = config.model
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError as error:
            raise EnvironmentFault(
                f"can't keep the {role}'s replies: {error}; set `cache` to another folder"
            ) from error

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
        prompt = pydantic_core.to_json([self._named, self._sampling, list(messages)])
        key = hashlib.blake2b(prompt, digest_size=20).hexdigest()
        async with self._asking.setdefault(key, asyncio.Lock()):
            path = self._folder / key[:2] / key
            if path.exists():
                return path.read_text(encoding="utf-8")
            try:
                completion = await self._model.complete(messages, sampling=self._sampling)
            except (AgentUnavailable, AgentStopped) as error:
                raise EnvironmentFault(f"the {self._role} {self._named} failed: {error}") from error
            return await asyncio.to_thread(_keep, path, completion.action.content)


def _keep(path: Path, reply: str) -> str:
    """The reply that holds from now on: another process's, where that was kept first."""
    path.parent.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".part") as file:
        file.write(reply.encode(errors="replace"))
        file.flush()
        os.fsync(file.fileno())
        try:
            os.link(file.name, path)
        except FileExistsError:
            return path.read_text(encoding="utf-8")
    return reply


def default_folder() -> Path:
    """Where replies are kept unless a task says otherwise: the user's folder for caches."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "proctor" / "stss"
