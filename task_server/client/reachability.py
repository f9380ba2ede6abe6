"""Which workers a client can reach directly, and whether its task server answers at all: both are found by probes."""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from proctor.llm.outage import PATIENCE_S
from proctor.retry import RetryPolicy
from proctor.session.time_limit import Untimed
from task_server.wire.errors import ServerAway

AGAIN = RetryPolicy(base_s=0.1, cap_s=5.0)
"""When a server that answers nobody is probed again."""
LOOK_S = 0.5
PROBES = RetryPolicy(base_s=10.0, cap_s=300.0)
"""A worker that can't be reached is probed ever more seldom."""


@dataclass
class _Probed:
    """The probe results of one address."""

    reached: bool = False
    failures: int = 0
    again_at: float = 0.0
    """When the next probe is due, on the monotonic clock."""
    probe: "asyncio.Task[None] | None" = None
    """The newest probe."""


class Reach:
    """Caches the result of `probe` for each address. Callers wait for the first probe; later ones run in background."""

    def __init__(self, probe: Callable[[str], Awaitable[bool]]) -> None:
        self._probe = probe
        self._probed: dict[str, _Probed] = {}
        self.reached: set[str] = set()
        """The addresses that a probe has reached: they are not probed again."""

    async def reaches(self, url: str) -> bool:
        """Whether the newest finished probe reached the worker at this address."""
        known = self._probed.setdefault(url, _Probed())
        if known.probe is None or (known.probe.done() and not known.reached and time.monotonic() >= known.again_at):
            known.probe = asyncio.create_task(self._look(url, known))
        if not known.failures:
            await asyncio.shield(known.probe)
        return known.reached

    def missed(self, url: str) -> None:
        """A call did not reach the worker: it is probed again later, as its address may have changed."""
        self.reached.discard(url)
        if (known := self._probed.get(url)) is not None and known.reached:
            known.reached, known.failures, known.again_at = False, 1, time.monotonic() + PROBES.widest_s(1)

    async def _look(self, url: str, known: _Probed) -> None:
        known.reached = await self._probe(url)
        if known.reached:
            self.reached.add(url)
        else:
            known.failures += 1
            known.again_at = time.monotonic() + PROBES.widest_s(known.failures)


class ServerOutage:
    """Whether a task server answers nobody: neither a call nor the `probe` that follows.

    A server that has answered before is waited for an hour, or `patience_s` if that is more; else `patience_s`.
    """

    def __init__(self, url: str, probe: Callable[[], Awaitable[bool]], patience_s: float) -> None:
        self._url, self._probe, self._patience_s = url, probe, patience_s
        self.since: float | None = None
        """When it was found, on the monotonic clock; None while the server answers."""
        self.held: set[str] = set()
        """The sessions whose calls wait for its end."""
        self.worked = self.hurried = False
        """Whether the server has answered a call; whether it is waited for `patience_s` at most, as the run drains."""
        self._told, self._turn, self._end = "", asyncio.Lock(), asyncio.Event()
        self._watch: asyncio.Task[None] | None = None

    def __str__(self) -> str:
        return f"the task server {self._url} can't be reached since {self._told}"

    async def found(self, cause: str) -> bool:
        """Whether the server is away, now that a call got no answer."""
        async with self._turn:
            if self.since is None and not await self._probe():
                self.since, self._told = time.monotonic(), f"{time.strftime('%H:%M:%S', time.gmtime())} UTC: {cause}"
                self._end.clear()
                self._watch = asyncio.create_task(self._until_back())
        return self.since is not None

    def check(self) -> None:
        """Raises ServerAway if the server was waited for long enough."""
        patience_s = max(PATIENCE_S, self._patience_s) if self.worked and not self.hurried else self._patience_s
        if self.since is not None and time.monotonic() - self.since > patience_s:
            raise ServerAway(f"{self}; it was waited for {patience_s:g} s: start it again, then `proctor resume`")

    async def over(self, session: str) -> None:
        """Wait for the end, in time that counts in no limit. Raises ServerAway."""
        self.held.add(session)
        try:
            with Untimed():
                while self.since is not None:
                    self.check()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_S):
                            await self._end.wait()
        finally:
            self.held.discard(session)

    async def _until_back(self) -> None:
        failures = 1
        while not await self._probe():
            await asyncio.sleep(random.random() * AGAIN.widest_s(failures))
            failures += 1
        self.since = None
        self._end.set()
