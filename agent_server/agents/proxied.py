"""A model at another endpoint, served under our name, with limits on the requests to that endpoint."""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.http.client import HttpFailure
from proctor.llm.model import ChatModel
from proctor.llm.outage import Failed
from proctor.llm.outcome import Outcome
from proctor.llm.passed_on import NEEDS_METADATA, passed_on
from proctor.llm.wire import Reply

log = logging.getLogger(__name__)
MAX_QUEUE_S = 30.0
LOOK_S, WELL = 5.0, frozenset({200, 404, 405, 429, 501})
"""Longest wait for an endpoint's list of models, which not all have, and what it may answer."""
MOST_CAUSES, QUIET_S = 1000, 300.0
"""Causes kept; one that comes again after so long is logged again."""
_VARYING = re.compile(r"[\w-]*\d[\w-]*")


class TokenBucket:
    """Spreads requests to at most `per_minute` a minute. Pure: the time, in seconds, is an argument.

    The requests of one second, at least one, may start at once.
    """

    def __init__(self, per_minute: float) -> None:
        self._interval_s = 60.0 / per_minute
        self._burst_s = max(0.0, 1.0 - self._interval_s)
        self._next_s = float("-inf")

    def wait_s(self, now: float) -> float:
        """Seconds that a request would have to wait now."""
        return max(0.0, self._next_s - self._burst_s - now)

    def take(self, now: float) -> float:
        """Reserve the next start and return the seconds until then."""
        wait_s = self.wait_s(now)
        self._next_s = max(self._next_s, now) + self._interval_s
        return wait_s


class ProxiedAgent(ServedAgent):
    """Forwards each request to an endpoint once, with limits on concurrent requests and on requests per minute.

    Requests wait for a free slot; one that the rate would delay for more than 30 s is rejected with 429. What the
    endpoint answers in place of a completion passes as it came: judging it and trying again is the client's.
    """

    def __init__(
        self,
        model: ChatModel,
        *,
        max_in_flight: int | None = None,
        requests_per_minute: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._model = model
        self._slots = asyncio.Semaphore(max_in_flight or 1_000_000)
        self._bucket = TokenBucket(requests_per_minute) if requests_per_minute else None
        self._clock, self._sleep = clock, sleep
        self._sends_metadata = False
        """Whether a built-in agent stands behind, which asked for the metadata of a request."""
        self._logged: dict[tuple[int, str], float] = {}
        """(status, cause without numbers) -> when it came last"""

    async def answer(self, request: AgentRequest) -> AgentReply:
        if self._bucket is not None:
            await self._wait_for_rate(self._bucket)
        async with self._slots:
            reply = await self.ask(request)
        if isinstance(reply, Failed):
            raise self.refused(reply)
        return AgentReply(reply.action, reply.usage, reply.stop)

    async def ask(self, request: AgentRequest) -> Reply | Failed:
        """What the endpoint answers to one request, without limits."""
        sends, asked = self._sends_metadata, (request.messages, request.tools, request.metadata, request.sampling)
        reply = await self._model.pass_on(*asked, sends_metadata=sends)
        if not sends and request.metadata and isinstance(reply, Failed) and reply.says(NEEDS_METADATA):
            self._sends_metadata = True
            reply = await self._model.pass_on(*asked, sends_metadata=True)
        return reply

    async def failing(self) -> RequestRefused | None:
        try:
            reply = await self._model.models(LOOK_S)
        except HttpFailure as failure:
            return self.refused(Failed(str(failure), sent=False))
        cause = f"{self._model.endpoint.origin(reply.status)}: status {reply.status} for its list of models"
        return None if reply.status in WELL else self.refused(Failed(cause, reply=reply))

    def refused(self, failed: Failed) -> RequestRefused:
        """What the client gets in place of an answer; its cause is logged once."""
        reply = passed_on(failed, self._model.endpoint.origin(failed.reply and failed.reply.status))
        cause, now = (reply.status, _VARYING.sub("#", failed.cause)), self._clock()
        if now - self._logged.pop(cause, float("-inf")) > QUIET_S and failed.outcome is not Outcome.REFUSAL:
            log.warning("%s", failed.cause)
        self._logged[cause] = now
        if len(self._logged) > MOST_CAUSES:
            del self._logged[next(iter(self._logged))]
        return RequestRefused(reply.status, failed.cause, headers=reply.headers, passed_on=reply.body)

    async def _wait_for_rate(self, bucket: TokenBucket) -> None:
        queue_s = bucket.wait_s(self._clock())
        if queue_s > MAX_QUEUE_S:
            raise RequestRefused(
                429,
                "too many requests are queued for the endpoint behind this agent",
                type="requests",
                code="rate_limit_exceeded",
                headers={"Retry-After": f"{queue_s - MAX_QUEUE_S:.3g}"},
            )
        wait_s = bucket.take(self._clock())
        if wait_s > 0:
            await self._sleep(wait_s)
