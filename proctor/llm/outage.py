"""Finds out that an endpoint is down, and lets its calls wait in turn until it answers."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple, TypeGuard, TypeVar

from proctor.environment import AgentRefused, AgentStopped, AgentUnavailable
from proctor.llm.outcome import Outcome
from proctor.llm.wire import Usage

Answer = TypeVar("Answer")
DOWN_AFTER_S = 5.0
"""Without an answer for so long after a failure, an endpoint is down."""
FIRST_WAIT_S, LONGEST_WAIT_S = 1.0, 30.0
"""Between two requests to an endpoint that fails; the wait doubles."""
PATIENCE_S, FIRST_PATIENCE_S = 3600.0, 60.0
"""How long an endpoint is waited for, after an answer in this process and before the first one."""
OWN_FAILURES = 3
"""After so many replies and deadlines in a row, a request may be what fails, not its endpoint."""


class EndpointDown(Exception):
    """The run drains while a call waits for its endpoint."""

    paid: Usage | None = None
    """What the failed requests are estimated to have cost."""


class Failed(NamedTuple):
    """A call without an answer."""

    cause: str
    outcome: Outcome = Outcome.TRANSIENT
    status: int | None = None
    """None where no reply came."""
    sent: bool = True
    """Whether the request may have reached the endpoint."""
    judged: bool = False
    """Whether it failed by a status or by its deadline."""
    late: bool = False
    """Whether it failed by its deadline."""
    retry_after_s: float | None = None
    raises: type[AgentUnavailable] = AgentUnavailable
    """What is raised after the last try."""

    @property
    def throttled(self) -> bool:
        """Whether there were too many requests, which is no failure of this one."""
        return self.outcome is Outcome.TRANSIENT and self.status in (429, 529)


@dataclass
class Waited:
    """What a call has waited for its endpoint, in seconds that count in no limit; and its failures there in a row."""

    seconds: float = 0.0
    own: int = 0
    requests: int = 0
    late: int = 0
    """Requests without an answer before their deadline, which are paid for all the same."""


class TimeLimit:
    """A time limit in which the waits of its asyncio task for endpoints don't count."""

    def __init__(self, timeout: asyncio.Timeout) -> None:
        self._timeout = timeout
        self.waited_s = 0.0

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the clock."""
        loop = asyncio.get_running_loop()
        begun, until = loop.time(), self._timeout.when()
        if until is not None:
            self._timeout.reschedule(None)
        try:
            yield
        finally:
            self.waited_s += loop.time() - begun
            if until is not None:
                self._timeout.reschedule(until + loop.time() - begun)


TIME_LIMIT: ContextVar[TimeLimit | None] = ContextVar("time_limit", default=None)
"""The limit of the attempt that an asyncio task plays."""


@contextlib.contextmanager
def uncounted(waits: Waited) -> Iterator[None]:
    """A wait for an endpoint, which counts in no limit of a trial, an attempt or a session."""
    limit, begun = TIME_LIMIT.get(), time.monotonic()
    try:
        with contextlib.nullcontext() if limit is None else limit.paused():
            yield
    finally:
        waits.seconds += time.monotonic() - begun


class Outage:
    """Whether one endpoint is down: transient failures only, for DOWN_AFTER_S, over all its agents.

    Calls that failed wait in turn, and one at a time is sent again, until any is answered. `changed` is called when the
    endpoint goes down and when it is back. `patience_s` None: PATIENCE_S, FIRST_PATIENCE_S before the first answer.
    """

    def __init__(
        self,
        patience_s: float | None = None,
        changed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.since: float | None = None
        """When a call failed first after the last answer; None while calls are answered."""
        self.cause = ""
        self.down = False
        self.throttled_since: float | None = None
        """When there were too many requests first after the last answer."""
        self._patience_s, self._changed, self._clock = patience_s, changed, clock
        self._worked = False
        self._outages = 0
        self._wait_s = FIRST_WAIT_S
        self._turn = asyncio.Lock()
        """Held by the call that asks next."""
        self._news = asyncio.Event()
        """Replaced when the endpoint answers."""
        self._released = asyncio.Event()

    @property
    def patience_s(self) -> float:
        """Seconds that the endpoint is waited for."""
        return self._patience_s or (PATIENCE_S if self._worked else FIRST_PATIENCE_S)

    def answered(self, *, throttled: bool = False) -> None:
        """Record a reply that is no failure of the endpoint, or that there are too many requests."""
        self._worked = True
        if not throttled:
            self.throttled_since = None
        if self.since is None:
            return
        self.since, self._wait_s = None, FIRST_WAIT_S
        self._wake()
        if self.down:
            self.down = False
            self._changed()

    def failed(self, cause: str) -> None:
        """Record a transient failure."""
        now = self._clock()
        self.since, self.cause = now if self.since is None else self.since, cause
        if not self.down and now - self.since >= DOWN_AFTER_S:
            self.down, self._outages = True, self._outages + 1
            self._changed()

    def lost(self, cause: str) -> None:
        """Record that the endpoint is down, as whoever watches it found out."""
        self.since = self._clock() if self.since is None else self.since
        self.cause = cause
        if not self.down:
            self.down, self._outages = True, self._outages + 1
            self._changed()

    def release(self) -> None:
        """Let no call wait any more, from now on."""
        self._released.set()
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def check_patience(self, since: float, cause: str) -> None:
        """Raises EndpointDown if the run drains, and AgentRefused if the endpoint was waited for long enough."""
        if self._released.is_set():
            raise EndpointDown(cause)
        if self._clock() - since >= self.patience_s:
            fix = "" if self._worked else "; check `base_url`, or set `patience_s` of an endpoint that still loads"
            raise AgentRefused(f"{cause}: no answer for {self.patience_s:.0f} s{fix}")

    async def ask(
        self, send: Callable[[], Awaitable[Answer | Failed]], short: Callable[[], Awaitable[bool]], waits: Waited
    ) -> Answer | Failed:
        """The outcome of a request, sent again without counting while the endpoint is down.

        `short` asks for one token: whether the endpoint answers that. Raises EndpointDown, AgentRefused.
        """
        failed: Failed | None = None
        number = self._outages
        while True:
            if self.since is None or (failed is None and not self.down):
                reply = await self._send(send, waits)
                if not _may_be_outage(reply):
                    return reply
                failed = reply
                if waits.own > OWN_FAILURES and self.since is None:
                    return failed
                self.failed(failed.cause)
            with uncounted(waits):
                async with self._turn:
                    asks = await self._due()
                    if asks:
                        reply = await self._send(send, waits)
                        if not _may_be_outage(reply):
                            return reply
                        failed = reply
                        self.failed(failed.cause)
                        if waits.own >= OWN_FAILURES and await short():
                            waits.own += 1
                            self.answered()
                            return failed
            if not asks and failed is not None and failed.sent and number == self._outages:
                return failed  # the endpoint answered others all the time: a failed try
            number = self._outages if not asks else number

    async def _send(self, send: Callable[[], Awaitable[Answer | Failed]], waits: Waited) -> Answer | Failed:
        waits.requests += 1
        try:
            reply = await send()
        except AgentStopped:
            self.answered()
            raise
        if _may_be_outage(reply):
            waits.own += reply.judged
            waits.late += reply.late
        else:
            waits.own = 0
            self.answered(throttled=isinstance(reply, Failed) and reply.throttled)
        return reply

    async def _due(self) -> bool:
        """Wait until the endpoint is to be asked again: True, or is back: False."""
        wait_s, self._wait_s = self._wait_s, min(2 * self._wait_s, LONGEST_WAIT_S)
        due = self._clock() + wait_s
        while self.since is not None:
            self.check_patience(self.since, self.cause)
            now = self._clock()
            if now >= due:
                return True
            self.failed(self.cause)  # it may be down by now
            left = min(due - now, self.since + self.patience_s - now)
            until_down = self.since + DOWN_AFTER_S - now
            news = self._news
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.001, min(left, until_down) if until_down > 0 else left)):
                    await news.wait()
        return False


def _may_be_outage(reply: object) -> TypeGuard[Failed]:
    return isinstance(reply, Failed) and reply.outcome is Outcome.TRANSIENT and not reply.throttled
