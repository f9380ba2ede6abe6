"""Which workers a client reaches without its controller: probed at first use, and where that failed again and again."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

AGAIN_S = (10.0, 300.0)
"""A worker that can't be reached is probed again after the first, doubling up to the second."""


def again_s(failures: int) -> float:
    """Seconds until the next probe after so many that failed."""
    first_s, longest_s = AGAIN_S
    return min(first_s * 2.0 ** min(failures - 1, 30), longest_s)


@dataclass
class _Probed:
    """What is known of one address."""

    reached: bool = False
    failures: int = 0
    again_at: float = 0.0
    """By the monotonic clock."""
    probe: "asyncio.Task[None] | None" = None
    """The newest."""


class Reach:
    """Remembers what `probe` found out of each address. A first probe is waited for, later ones go on beside calls."""

    def __init__(self, probe: Callable[[str], Awaitable[bool]]) -> None:
        self._probe = probe
        self._probed: dict[str, _Probed] = {}

    async def reaches(self, url: str) -> bool:
        """Whether the worker at this address can be reached, as far as is known."""
        known = self._probed.setdefault(url, _Probed())
        if known.probe is None or (known.probe.done() and not known.reached and time.monotonic() >= known.again_at):
            known.probe = asyncio.create_task(self._look(url, known))
        if not known.failures:
            await asyncio.shield(known.probe)
        return known.reached

    async def _look(self, url: str, known: _Probed) -> None:
        known.reached = await self._probe(url)
        if not known.reached:
            known.failures += 1
            known.again_at = time.monotonic() + again_s(known.failures)
