"""Finds out that an endpoint is down; its calls wait in turn until it answers, which counts in no limit of time."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeGuard, TypeVar

from proctor.environment import AgentRefused
from proctor.event_loop import clock
from proctor.http.client import HttpReply
from proctor.llm.outcome import THROTTLED, Outcome, read_error
from proctor.llm.wire import Reply
from proctor.session.time_limit import Untimed
from proctor.types import Usage

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
    """None where no reply came; of an error that comes with 200 the one that its code says."""
    sent: bool = True
    """Whether the request may have reached the endpoint."""
    judged: bool = False
    """Whether it failed by a status or by its deadline."""
    late: bool = False
    """Whether it failed by its deadline."""
    repeats_key: bool = False
    """Whether it was answered, with our own key in the answer."""
    retry_after_s: float | None = None
    refusal: Reply | None = None
    """The reply by which the input was refused, where it has a text or a cost."""
    reply: HttpReply | None = None
    """The reply as it came, where a server is to pass it on."""
    error: Exception | None = None
    """What was raised instead of a reply."""

    def says(self, code: str) -> bool:
        """Whether an error reply came with this code."""
        return self.reply is not None and code in read_error(self.reply.body).code.split()

    @property
    def throttled(self) -> bool:
        """Whether there were too many requests, which is no failure of this one."""
        return self.outcome is Outcome.TRANSIENT and self.status in THROTTLED

    @property
    def may_be_outage(self) -> bool:
        """Whether it may have failed because its endpoint is down."""
        return self.outcome is Outcome.TRANSIENT and not self.throttled


def answers(reply: object) -> bool:
    """Whether this came from an endpoint that is up, though it may be a refusal."""
    return not isinstance(reply, Failed) or not reply.may_be_outage


class Waited(Untimed):
    """What a call has waited for its endpoint, which counts in no limit; and its failures there in a row."""

    own = tries = throttles = requests = 0
    late = 0
    """Requests without an answer before their deadline, which are paid for all the same."""
    out = False
    """Whether a request is under way."""

    def __init__(self, *, with_tools: bool = False) -> None:
        self.with_tools = with_tools
        """Whether its requests offer tools."""


def paid_by(failure: BaseException) -> Usage | None:
    """What the requests of a call that failed, or was cancelled, are estimated to have cost."""
    paid: Usage | None = getattr(failure, "paid", None)
    return paid


class Outage:
    """Whether one endpoint is down: transient failures only, for DOWN_AFTER_S, over all its agents.

    Calls that failed wait in turn, and one at a time is sent again, until any is answered. `changed` is called when the
    endpoint goes down and when it is back. `patience_s` None: PATIENCE_S, FIRST_PATIENCE_S before the first answer.
    """

    def __init__(
        self,
        patience_s: float | None = None,
        changed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = clock,
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

    def failed(self, cause: str, *, surely: bool = False) -> None:
        """Record a transient failure; `surely`: the endpoint is down, as whoever watches it found out."""
        now = self._clock()
        self.since, self.cause = now if self.since is None else self.since, cause
        if not self.down and (surely or now - self.since >= DOWN_AFTER_S):
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
        self,
        send: Callable[[], Awaitable[Answer | Failed]],
        short: Callable[[], Awaitable[object]],
        waits: Waited,
        failed: Failed | None = None,
    ) -> Answer | Failed:
        """The outcome of a request, sent again without counting while the endpoint is down.

        `failed` is how it has failed just now, if it was sent. `short` asks for one token: whether the endpoint answers
        that. Raises EndpointDown, AgentRefused.
        """
        number, is_new = self._outages, failed is not None
        while True:
            if not is_new and (self.since is None or (failed is None and not self.down)):
                reply = await send()
                if not self.may_have(reply, waits):
                    return reply
                failed, is_new = reply, True
            if failed is not None and is_new:
                is_new = False
                if waits.own > OWN_FAILURES and self.since is None:
                    return failed
                self.failed(failed.cause)
            with waits:
                async with self._turn:
                    asks = await self._due()
                    if asks:
                        reply = await send()
                        if not self.may_have(reply, waits):
                            return reply
                        failed = reply
                        self.failed(failed.cause)
                        if waits.own >= OWN_FAILURES and answers(await short()):
                            waits.own += 1
                            self.answered()
                            return failed
            if not asks and failed is not None and failed.sent and number == self._outages:
                return failed  # the endpoint answered others all the time: a failed try
            number = self._outages if not asks else number

    async def pause(self, wait_s: float, cause: str) -> None:
        """Wait after too many requests, at most until the patience is over. Raises EndpointDown, AgentRefused."""
        now = self._clock()
        self.throttled_since = since = now if self.throttled_since is None else self.throttled_since
        self.check_patience(since, cause)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(wait_s, since + self.patience_s - now)):
                await self._released.wait()
                raise EndpointDown(cause)

    def may_have(self, reply: object, waits: Waited) -> TypeGuard[Failed]:
        """Record what a request came to; whether it may have failed because the endpoint is down."""
        if isinstance(reply, Failed):
            if reply.may_be_outage:
                waits.own += reply.judged
                return True
            self.answered(throttled=reply.throttled)
        elif self.since is not None or self.throttled_since is not None or not self._worked:
            self.answered()
        waits.own = 0
        return False

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
