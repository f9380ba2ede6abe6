"""Values that are costly to make and are used again for a while."""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

Made = TypeVar("Made")
LEAST_S, COSTS = 1.0, 20.0
"""A value is used again for a second, or for so many times as long as it took to make, whichever is longer."""


class _Entry:
    """A value, who may make it, and until when it is used."""

    def __init__(self) -> None:
        self.making = threading.Lock()
        self.value: Any = None
        self.until = float("-inf")
        self.stamp: Hashable = None


class Kept:
    """Values by their keys, each made by one request at a time; the oldest key goes where there are too many."""

    def __init__(self, most: int = 32, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = most, clock
        self._entries: dict[Hashable, _Entry] = {}
        self._looking = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Made], stamp: Hashable = None) -> Made:
        """The value of a key, made anew where it is too old. A key is always of values of one type.

        A value does not grow old as long as its stamp, which tells what it was made of, stays the same.
        """
        with self._looking:
            entry = self._entries.get(key)
            if entry is None:
                entry = self._entries[key] = _Entry()
                if len(self._entries) > self._most:
                    del self._entries[next(iter(self._entries))]
        with entry.making:
            begun = self._clock()
            if begun < entry.until or (stamp is not None and stamp == entry.stamp):
                found: Made = entry.value
                return found
            made = make()
            ended = self._clock()
            entry.value, entry.stamp = made, stamp
            entry.until = ended + max(LEAST_S, COSTS * (ended - begun))
            return made
