"""A cache of replies of an environment's models (judges, hosts, simulated users), by a hash of the question.

A folder with a file for each reply, so that no session on this machine buys a reply that another has bought. The
replies that a session has used are also stored in the run's journal: `proctor.session.kept_replies`.
"""

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from weakref import WeakValueDictionary

import pydantic_core
from pydantic import ValidationError

from proctor.environment import EnvironmentFault
from proctor.session.kept_replies import ModelReply, session_replies


def key_of(*asked: object) -> str:
    """40 hex digits, a hash of all parts of a question."""
    return hashlib.blake2b(pydantic_core.to_json(asked), digest_size=20).hexdigest()


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
        try:
            kept = self._store(self._path(key), reply)
        except OSError as error:
            self._bought(key, reply, last)
            raise _not_stored(error) from error
        self._bought(key, kept, last)
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

    def _bought(self, key: str, in_use: ModelReply, last: ModelReply) -> None:
        """Record the reply that the session uses, and the cost of the last try where that is another reply."""
        if in_use != last:
            self.wasted(key, last)
        _used(key, in_use, bought=in_use == last)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key


def _not_stored(error: OSError) -> EnvironmentFault:
    return EnvironmentFault(f"can't store a model's reply: {error}; set `cache` to another folder")


def _used(key: str, reply: ModelReply, *, bought: bool) -> None:
    if (session := session_replies.get()) is not None:
        session.add(key, reply, bought=bought)


def default_folder(environment: str) -> Path:
    """Where an environment keeps what it caches unless a task sets another folder: in the user's cache folder."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "proctor" / environment
