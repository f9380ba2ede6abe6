"""Wrappers that give an agent the limits of a real endpoint: concurrency, context, latency."""

import asyncio
from collections.abc import Awaitable, Callable

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.environment import ContextLimitExceeded

RETRY_AFTER_S = "1"


class Concurrent(ServedAgent):
    """Limits concurrent requests; one more is rejected with 429."""

    def __init__(self, agent: ServedAgent, limit: int) -> None:
        self._agent = self.wrapped = agent
        self._limit, self._in_flight = limit, 0

    async def answer(self, request: AgentRequest) -> AgentReply:
        if self._in_flight >= self._limit:
            raise RequestRefused(
                429,
                f"this agent answers {self._limit} requests at once",
                type="requests",
                code="rate_limit_exceeded",
                headers={"Retry-After": RETRY_AFTER_S},
            )
        self._in_flight += 1
        try:
            return await self._agent.answer(request)
        finally:
            self._in_flight -= 1


class ContextLimited(ServedAgent):
    """Limits the characters of a transcript; raises ContextLimitExceeded beyond."""

    def __init__(self, agent: ServedAgent, chars: int) -> None:
        self._agent = self.wrapped = agent
        self._chars = chars

    async def answer(self, request: AgentRequest) -> AgentReply:
        if sum(len(message.content) for message in request.messages) > self._chars:
            raise ContextLimitExceeded
        return await self._agent.answer(request)


class Delayed(ServedAgent):
    """Waited `latency_s` before each answer, as a model would, for load tests."""

    def __init__(
        self,
        agent: ServedAgent,
        latency_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._agent = self.wrapped = agent
        self._latency_s, self._sleep = latency_s, sleep

    async def answer(self, request: AgentRequest) -> AgentReply:
        await self._sleep(self._latency_s)
        return await self._agent.answer(request)
