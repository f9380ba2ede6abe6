"""Another endpoint's model, served under our name and within limits of its own."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.llm import ChatModel

MAX_QUEUE_S = 30.0


class TokenBucket:
    """When the next of at most `per_minute` requests a minute may start: pure, the time is given in seconds.

    Up to a second's worth of requests, at least one, may start at once.
    """

    def __init__(self, per_minute: float) -> None:
        self._interval_s = 60.0 / per_minute
        self._burst_s = max(0.0, 1.0 - self._interval_s)
        self._next_s = float("-inf")

    def wait_s(self, now: float) -> float:
        """How long a request would have to wait if it came now."""
        return max(0.0, self._next_s - self._burst_s - now)

    def take(self, now: float) -> float:
        """How long this request must wait; its place is taken."""
        wait_s = self.wait_s(now)
        self._next_s = max(self._next_s, now) + self._interval_s
        return wait_s


class ProxiedAgent(ServedAgent):
    """Forwards requests, keeping to so many at once and so many a minute at the endpoint behind.

    Requests queue for their place; one that the rate would hold back for more than 30 s is refused with 429.
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
        self._places = asyncio.Semaphore(max_in_flight or 1_000_000)
        self._bucket = TokenBucket(requests_per_minute) if requests_per_minute else None
        self._clock, self._sleep = clock, sleep

    async def answer(self, ask: AgentRequest) -> AgentReply:
        if self._bucket is not None:
            await self._keep_the_rate(self._bucket)
        async with self._places:
            done = await self._model.complete(ask.messages, ask.tools, ask.metadata, ask.sampling)
        return AgentReply(done.action, done.usage, done.stop)

    async def _keep_the_rate(self, bucket: TokenBucket) -> None:
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
