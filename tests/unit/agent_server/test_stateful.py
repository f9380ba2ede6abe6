"""What a server remembers of a stateful agent's conversations."""

import asyncio
import threading
from collections import Counter

import pytest

from agent_server.agents.base import AgentRequest
from agent_server.agents.function import ServedFunction
from agent_server.agents.stateful import StatefulAgent
from agent_server.errors import RequestRefused
from proctor.agent_function import FunctionCaller
from proctor.types import Message
from tests.pace import slowly


class Agent:
    """Answers when it may; counts its calls and what is ended."""

    stateful = True

    def __init__(self) -> None:
        self.calls, self.ended, self.may = Counter[str](), list[str](), asyncio.Event()
        self.fails = False

    async def __call__(self, messages: object, tools: object, conversation: str) -> str:
        self.calls[conversation] += 1
        await self.may.wait()
        if self.fails:
            raise ValueError("not now")
        return f"answer {self.calls[conversation]}"

    def end(self, conversation: str) -> None:
        self.ended.append(conversation)
        raise RuntimeError("what `end` raises costs nothing")


def served(agent: Agent, silence_s: float = 3600.0) -> StatefulAgent:
    return StatefulAgent(ServedFunction(FunctionCaller(agent)), silence_s)


def ask(turn: int, conversation: str = "main", client: str = "here", **more: str) -> AgentRequest:
    told = {"session": "s", "conversation": conversation, "turn": str(turn)} | more
    return AgentRequest((Message(role="user", content="?"),), metadata=told, client=client)


async def test_a_repeated_turn_has_one_call_whether_it_is_under_way_or_over() -> None:
    agent = Agent()
    server = served(agent)
    asked = [asyncio.create_task(server.answer(ask(1))) for _ in range(3)]
    await asyncio.sleep(0)
    agent.may.set()
    answers = [*await asyncio.gather(*asked), await server.answer(ask(1))]
    assert {answer.action.content for answer in answers} == {"answer 1"}
    assert (await server.answer(ask(2))).action.content == "answer 2"
    assert agent.calls == {"s-main": 2}


async def test_a_turn_goes_on_though_the_request_for_it_was_given_up() -> None:
    agent = Agent()
    server = served(agent)
    given_up = asyncio.create_task(server.answer(ask(1)))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.gather(given_up, return_exceptions=True)
    agent.may.set()
    assert (await server.answer(ask(1))).action.content == "answer 1"


async def test_a_turn_whose_call_failed_is_called_again() -> None:
    agent = Agent()
    server = served(agent)
    agent.may.set()
    agent.fails = True
    with pytest.raises(RequestRefused, match="not now"):
        await server.answer(ask(1))
    agent.fails = False
    assert (await server.answer(ask(1))).action.content == "answer 2"


async def test_a_later_turn_of_a_session_that_is_not_known_is_refused() -> None:
    agent = Agent()
    server = served(agent)
    agent.may.set()
    with pytest.raises(RequestRefused, match="turn 2") as refused:
        await server.answer(ask(2))
    assert (refused.value.status, refused.value.code) == (409, "conversation_lost")
    await server.answer(ask(1))
    await server.answer(ask(2, "other"))
    assert await server.end("s")
    assert agent.ended == ["s-main", "s-other"]
    assert not await server.end("s"), "it is ended once"
    with pytest.raises(RequestRefused, match="turn 3"):
        await server.answer(ask(3))


async def test_without_a_session_the_conversation_stands_for_it() -> None:
    agent = Agent()
    server = served(agent)
    agent.may.set()
    bare = AgentRequest((Message(role="user", content="?"),), metadata={"conversation": "mine", "turn": "1"})
    await server.answer(bare)
    assert await server.end("mine")
    assert agent.ended == ["mine"]


async def test_what_the_server_must_know_is_asked_for() -> None:
    with pytest.raises(RequestRefused, match="conversation, turn"):
        await served(Agent()).answer(AgentRequest((), metadata={"session": "s"}))


async def test_conversations_of_a_client_that_is_silent_go_and_those_of_another_stay() -> None:
    agent = Agent()
    server = served(agent, silence_s=0.2)
    agent.may.set()
    await server.answer(ask(1))
    heard = 1
    async with asyncio.timeout(slowly(20)):
        while not agent.ended:
            await server.answer(ask(heard, client="there", session="other"))
            heard += 1
            await asyncio.sleep(0.02)
    assert agent.ended == ["s-main"]


async def test_an_end_that_never_returns_holds_nothing_up(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("proctor.agent_function.END_S", 0.1)

    class Hangs(Agent):
        def end(self, conversation: str) -> None:
            may_end.wait()

    may_end = threading.Event()
    agent = Hangs()
    server = served(agent)
    agent.may.set()
    await server.answer(ask(1))
    assert await server.end("s")
    assert "not done within 0.1 s" in caplog.text
    may_end.set()


def test_one_that_cannot_tell_conversations_apart_is_refused() -> None:
    class Deaf:
        stateful = True

        def answer(self, messages: object, tools: object) -> str:
            return ""

    with pytest.raises(TypeError, match="give it the parameter `conversation`"):
        FunctionCaller(Deaf)
