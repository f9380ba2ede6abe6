"""Wrappers give an agent the limits of a real endpoint."""

import asyncio

import pytest

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.agents.limits import Concurrent, ContextLimited, Delayed
from agent_server.errors import RequestRefused
from proctor.environment import ContextLimitExceeded
from proctor.types import Action, Message


class Gated(ServedAgent):
    """Answers once the gate is open; fails on the word "fail"."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def answer(self, request: AgentRequest) -> AgentReply:
        await self.gate.wait()
        if request.messages[0].content == "fail":
            raise RuntimeError
        return AgentReply(Action(content="done"))


def ask(*contents: str) -> AgentRequest:
    return AgentRequest(tuple(Message(role="user", content=content) for content in contents))


async def test_one_request_too_many_is_told_to_come_back() -> None:
    gated = Gated()
    agent = Concurrent(gated, 1)
    first = asyncio.create_task(agent.answer(ask("?")))
    await asyncio.sleep(0)
    with pytest.raises(RequestRefused) as caught:
        await agent.answer(ask("?"))
    assert (caught.value.status, caught.value.code, caught.value.headers["Retry-After"]) == (
        429,
        "rate_limit_exceeded",
        "1",
    )
    gated.gate.set()
    assert (await first).action.content == "done"


async def test_a_failed_or_cancelled_request_frees_its_place() -> None:
    gated = Gated()
    agent = Concurrent(gated, 1)
    cancelled = asyncio.create_task(agent.answer(ask("?")))
    await asyncio.sleep(0)
    cancelled.cancel()
    await asyncio.gather(cancelled, return_exceptions=True)
    gated.gate.set()
    with pytest.raises(RuntimeError):
        await agent.answer(ask("fail"))
    assert (await agent.answer(ask("?"))).action.content == "done"


async def test_the_context_holds_so_many_characters_and_not_one_more() -> None:
    gated = Gated()
    gated.gate.set()
    agent = ContextLimited(gated, 5)
    assert (await agent.answer(ask("ab", "cde"))).action.content == "done"
    with pytest.raises(ContextLimitExceeded):
        await agent.answer(ask("ab", "cdef"))


async def test_an_answer_is_held_back() -> None:
    gated, slept = Gated(), list[float]()
    gated.gate.set()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await Delayed(gated, 0.5, sleep).answer(ask("?"))
    assert slept == [0.5]
