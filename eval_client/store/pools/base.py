"""Where the pools of endpoints lie that clients share: what a place of them can do, and how they are named."""

import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

from pydantic import ValidationError

from eval_client.core.pool import Pool

log = logging.getLogger(__name__)

MAX_POOL = 1 << 20
"""Bytes of the largest that is read: some thousands of clients."""
Settle = Callable[[Pool, float], Pool]
"""What a client makes of a pool at a time of the clock that all its clients share."""


class PoolError(Exception):
    """A pool can't be had; the message says why."""


class Pools(ABC):
    """A place of pools; its methods may block, but not for long."""

    @abstractmethod
    def salt(self) -> bytes:
        """What all who use this place mix into names, and nobody else. Raises PoolError."""

    @abstractmethod
    def change(self, name: str, settle: Settle) -> None:
        """Change a pool, one client at a time. Raises PoolError."""

    def shared_name(self, url: str, key: str) -> str:
        """The name of an endpoint's pool: 32 hex digits that tell neither its URL nor its key. Raises PoolError."""
        return hashlib.blake2b(f"endpoint\0{url}\0{key}".encode(), key=self.salt(), digest_size=16).hexdigest()

    def own_name(self, run: str, endpoint: str) -> str:
        """The name of a pool for the clients of one run. Raises PoolError."""
        return hashlib.blake2b(f"run\0{run}\0{endpoint}".encode(), key=self.salt(), digest_size=16).hexdigest()


def read_pool(text: str | bytes, where: str) -> Pool:
    """A pool as it was written; an empty one where it is damaged, as its clients tell all of it again."""
    if not text:
        return Pool()
    try:
        return Pool.model_validate_json(text if len(text) <= MAX_POOL else "")
    except ValidationError as error:
        log.warning("%s is damaged and begun anew: %s", where, error.errors(include_input=False)[0]["msg"])
        return Pool()
