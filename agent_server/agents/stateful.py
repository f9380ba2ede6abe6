"""What a server remembers of a stateful agent's conversations, beside what the agent itself does."""

import asyncio
import time
from dataclasses import dataclass

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.agents.function import ServedFunction
from agent_server.errors import RequestRefused
from proctor.agent_function import session_of
from proctor.llm.outcome import CONVERSATION_LOST

SILENCE_S = 3600.0
"""So long after the last request of their client conversations are kept that nobody ends."""


@dataclass
class _Session:
    """A session whose conversations the agent remembers."""

    client: str
    turn: int
    answer: asyncio.Future[AgentReply]
    """Of the newest turn."""


class StatefulAgent(ServedAgent):
    """Answers a repeated request of a turn as before, without a call, and no later turn of a session it does not know.

    A turn whose call failed is called again when it is asked again.
    """

    def __init__(self, agent: ServedFunction, silence_s: float = SILENCE_S) -> None:
        self._agent = self.wrapped = agent
        self._silence_s = silence_s
        self._sessions: dict[str, _Session] = {}
        self._heard: dict[str, float] = {}
        """client -> when it last asked"""
        self._looking: asyncio.Task[None] | None = None

    async def answer(self, request: AgentRequest) -> AgentReply:
        request.required("conversation", "turn")
        session, turn = session_of(request.metadata), request.number("turn")
        self._hear(request.client)
        known = self._sessions.get(session)
        if known is not None and known.turn == turn and not _has_failed(known.answer):
            return await asyncio.shield(known.answer)
        if known is None and turn > 1:
            message = f"turn {turn} of a conversation that this server does not know: it was restarted, or forgot it"
            raise RequestRefused(409, message, code=CONVERSATION_LOST)
        answer = asyncio.ensure_future(self._agent.answer(request))
        self._sessions[session] = _Session(request.client, turn, answer)
        return await asyncio.shield(answer)

    async def end(self, session: str) -> bool:
        known = self._sessions.pop(session, None)
        if known is None:
            return False
        known.answer.cancel()
        await self._agent.caller.end(session)
        return True

    def _hear(self, client: str) -> None:
        self._heard[client] = time.monotonic()
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        """End the conversations of clients that have been silent for long, until no client is known."""
        while self._heard:
            await asyncio.sleep(self._silence_s / 4)
            before = time.monotonic() - self._silence_s
            self._heard = {client: at for client, at in self._heard.items() if at > before}
            silent = [name for name, known in self._sessions.items() if known.client not in self._heard]
            await asyncio.gather(*(self.end(each) for each in silent if self._sessions[each].answer.done()))


def _has_failed(answer: asyncio.Future[AgentReply]) -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)
