"""Gives an agent the limits of a real endpoint: concurrency, context, latency."""

import asyncio

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.errors import RequestRefused
from proctor.environment import ContextLimitExceeded

RETRY_AFTER_S = "1"


class Limited(ServedAgent):
    """Rejects one concurrent request more than `concurrency` with 429, and transcripts of more characters.

    It waits `latency_s` before each answer, as a model would.
    """

    def __init__(
        self,
        agent: ServedAgent,
        *,
        concurrency: int | None = None,
        context_chars: int | None = None,
        latency_s: float = 0.0,
    ) -> None:
        self._agent = self.wrapped = agent
        self._concurrency, self._context_chars, self._latency_s = concurrency, context_chars, latency_s
        self._in_flight = 0

    async def answer(self, request: AgentRequest) -> AgentReply:
        most = self._context_chars
        if most is not None and sum(len(message.content) for message in request.messages) > most:
            raise ContextLimitExceeded
        if self._concurrency is not None and self._in_flight >= self._concurrency:
            raise RequestRefused(
                429,
                f"this agent answers {self._concurrency} requests at once",
                type="requests",
                code="rate_limit_exceeded",
                headers={"Retry-After": RETRY_AFTER_S},
            )
        self._in_flight += 1
        try:
            if self._latency_s:
                await asyncio.sleep(self._latency_s)
            return await self._agent.answer(request)
        finally:
            self._in_flight -= 1
