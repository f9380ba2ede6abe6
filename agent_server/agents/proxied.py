"""A model at another endpoint, served under our name, with limits on the requests to that endpoint."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.llm.model import ChatModel, ModelRefused

MAX_QUEUE_S = 30.0


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
    """Forwards requests to an endpoint, with limits on concurrent requests and on requests per minute.

    Requests wait for a free slot; one that the rate would delay for more than 30 s is rejected with 429.
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

    async def answer(self, request: AgentRequest) -> AgentReply:
        if self._bucket is not None:
            await self._wait_for_rate(self._bucket)
        async with self._slots:
            try:
                done = await self._model.complete(request.messages, request.tools, request.metadata, request.sampling)
            except ModelRefused as refused:
                if refused.completion is None:
                    raise
                done = refused.completion  # with the finish reason that says so
        return AgentReply(done.action, done.usage, done.stop)

    async def _wait_for_rate(self, bucket: TokenBucket) -> None:
        queue_s = bucket.wait_s(self._clock())
        if queue_s > MAX_QUEUE_S:
            raise RequestRefused(
                429,
                "too many requests are queued for the endpoint behind this agent",
                type="requests",
                code="rate_limit_exceeded",
                retry_after_s=queue_s - MAX_QUEUE_S,
            )
        wait_s = bucket.take(self._clock())
        if wait_s > 0:
            await self._sleep(wait_s)
