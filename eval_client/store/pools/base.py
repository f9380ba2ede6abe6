"""The interface to storage of endpoint pools, and the names of pools."""

import hashlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable

from pydantic import ValidationError

from eval_client.core.limits.pool import Pool

log = logging.getLogger(__name__)

MAX_POOL = 1 << 20
"""Bytes of the largest pool that is read: enough for some thousands of clients."""
Settle = Callable[[Pool, float], Pool]
"""A pool and the time in seconds, by the clock that all its clients share -> the changed pool."""


class PoolError(Exception):
    """A pool can't be read or written; the message names the cause."""


class Pools(ABC):
    """Storage of pools; its methods may block, but not for long."""

    @abstractmethod
    def salt(self) -> bytes:
        """The secret key of this storage for hashing names, the same for all its users. Raises PoolError."""

    @abstractmethod
    def change(self, name: str, settle: Settle) -> None:
        """Change a pool, one client at a time. Raises PoolError."""

    def shared_name(self, url: str, key: str) -> str:
        """The name of an endpoint's pool: 32 hex digits that reveal neither its URL nor its key. Raises PoolError."""
        return hashlib.blake2b(f"endpoint\0{url}\0{key}".encode(), key=self.salt(), digest_size=16).hexdigest()

    def own_name(self, run: str, endpoint: str) -> str:
        """The name of a pool for the clients of one run. Raises PoolError."""
        return hashlib.blake2b(f"run\0{run}\0{endpoint}".encode(), key=self.salt(), digest_size=16).hexdigest()


def read_pool(text: str | bytes, where: str) -> Pool:
    """A stored pool; an empty one where it is damaged, since its clients report their state again."""
    if not text:
        return Pool()
    try:
        return Pool.model_validate_json(text if len(text) <= MAX_POOL else "")
    except ValidationError as error:
        log.warning("%s is damaged and is reset: %s", where, error.errors(include_input=False)[0]["msg"])
        return Pool()
