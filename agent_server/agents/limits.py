"""Wrappers that give an agent the limits of a real endpoint: places, context, latency."""

import asyncio
from collections.abc import Awaitable, Callable

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.environment import ContextLimitExceeded

RETRY_AFTER_S = 1.0


class Concurrent(ServedAgent):
    """At most so many requests at once; one more is refused with 429."""

    def __init__(self, agent: ServedAgent, limit: int) -> None:
        self._agent, self._limit, self._under_way = agent, limit, 0

    async def answer(self, ask: AgentRequest) -> AgentReply:
        if self._under_way >= self._limit:
            raise RequestRefused(
                429,
                f"this agent answers {self._limit} requests at once",
                type="requests",
                code="rate_limit_exceeded",
                retry_after_s=RETRY_AFTER_S,
            )
        self._under_way += 1
        try:
            return await self._agent.answer(ask)
        finally:
            self._under_way -= 1


class ContextLimited(ServedAgent):
    """At most so many characters of transcript."""

    def __init__(self, agent: ServedAgent, chars: int) -> None:
        self._agent, self._chars = agent, chars

    async def answer(self, ask: AgentRequest) -> AgentReply:
        if sum(len(message.content) for message in ask.messages) > self._chars:
            raise ContextLimitExceeded
        return await self._agent.answer(ask)


class Delayed(ServedAgent):
    """Answers no sooner than after some seconds, as a model would: for load tests."""

    def __init__(
        self,
        agent: ServedAgent,
        latency_s: float,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._agent, self._latency_s, self._sleep = agent, latency_s, sleep

    async def answer(self, ask: AgentRequest) -> AgentReply:
        await self._sleep(self._latency_s)
        return await self._agent.answer(ask)
