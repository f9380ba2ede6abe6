"""What models on the environment's side (judges, hosts, users) once said, by the hash of all they were asked.

A folder with a file for each reply, so that no session on this machine buys what another has bought. What a session has
used goes into the run's journal as well: `proctor.llm.kept_replies`.
"""

import asyncio
import hashlib
import os
import tempfile
from pathlib import Path
from weakref import WeakValueDictionary

import pydantic_core
from pydantic import ValidationError

from proctor.environment import EnvironmentFault
from proctor.llm.kept_replies import ModelReply, session_replies


def key_of(*asked: object) -> str:
    """40 hex digits that agree exactly when all that was asked is equal."""
    return hashlib.blake2b(pydantic_core.to_json(asked), digest_size=20).hexdigest()


class Replies:
    """A folder that any number of processes may share; a reply, once kept, never changes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def open(self) -> None:
        """Makes the folder. Raises EnvironmentFault where nothing can be kept in it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.folder).close()
        except OSError as error:
            raise _not_kept(error) from error

    def locked(self, key: str) -> asyncio.Lock:
        """Held while a reply is got or bought, so that sessions that ask the same at once buy it once."""
        return self._asking.setdefault(key, asyncio.Lock())

    def get(self, key: str) -> ModelReply | None:
        """The reply that the session has used before, else the one kept under a key, or None.

        Raises EnvironmentFault where its file is damaged.
        """
        session = session_replies.get()
        if session is not None and (used := session.find(key)) is not None:
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
        """The reply that holds for the key from now on: another's, where one was kept first.

        `reply` has the cost of all tries, `last` that of the last alone: those before it are `wasted` already.
        Raises EnvironmentFault where the folder can't keep it; the session has it nevertheless, for it was paid for.
        """
        try:
            kept = self._kept(self._path(key), reply)
        except OSError as error:
            self._bought(key, reply, last)
            raise _not_kept(error) from error
        self._bought(key, kept, last)
        return kept

    def forget(self, key: str) -> None:
        """Another reply is to be kept: this one can't be read."""
        self._path(key).unlink(missing_ok=True)

    def _kept(self, path: Path, reply: ModelReply) -> ModelReply:
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
        """The session has paid for a reply that can't be read."""
        if (session := session_replies.get()) is not None:
            session.add_useless(key, reply)

    def _bought(self, key: str, held: ModelReply, last: ModelReply) -> None:
        """The session uses the reply that holds, and has paid for the last try; each is counted once."""
        if held != last:
            self.wasted(key, last)
        _used(key, held, bought=held == last)

    def _path(self, key: str) -> Path:
        return self.folder / key[:2] / key


def _not_kept(error: OSError) -> EnvironmentFault:
    return EnvironmentFault(f"can't keep what models reply: {error}; set `cache` to another folder")


def _used(key: str, reply: ModelReply, *, bought: bool) -> None:
    if (session := session_replies.get()) is not None:
        session.add(key, reply, bought=bought)


def default_folder(environment: str) -> Path:
    """Where an environment's replies are kept unless a task says otherwise: in the user's folder for caches."""
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "proctor" / environment
