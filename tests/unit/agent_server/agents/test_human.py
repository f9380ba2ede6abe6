"""A person answers at the terminal, one request at a time."""

import asyncio
import io
import threading

import pytest

from agent_server.agents.base import AgentRequest
from agent_server.agents.human import HumanAgent, prompt
from agent_server.errors import RequestRefused
from proctor.types import Message, Tool


def ask(*contents: str) -> AgentRequest:
    return AgentRequest(tuple(Message(role="user", content=content) for content in contents))


class Keyboard(io.StringIO):
    """Has no input until it is touched."""

    def __init__(self, typed: str) -> None:
        super().__init__(typed)
        self.touched = threading.Event()

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]  # as typeshed's own
        self.touched.wait()
        return super().readline(size)


async def test_lines_up_to_a_lone_dot_are_the_answer() -> None:
    agent = HumanAgent(io.StringIO("one\n.two\n\n.\nthree\r\n.\r\n"), io.StringIO())
    assert (await agent.answer(ask("?"))).action.content == "one\n.two\n"
    assert (await agent.answer(ask("?"))).action.content == "three"


async def test_a_closed_terminal_is_unavailable() -> None:
    with pytest.raises(RequestRefused, match="terminal"):
        await HumanAgent(io.StringIO("half an answer\n"), io.StringIO()).answer(ask("?"))


async def test_requests_are_shown_one_at_a_time() -> None:
    shown, keyboard = io.StringIO(), Keyboard("1\n.\n2\n.\n")
    agent = HumanAgent(keyboard, shown)
    asked = [asyncio.create_task(agent.answer(ask(content))) for content in ("first", "second")]
    await asyncio.sleep(0)
    assert "first" in shown.getvalue()
    assert "second" not in shown.getvalue()
    keyboard.touched.set()
    assert [(await answer).action.content for answer in asked] == ["1", "2"]
    assert "second" in shown.getvalue()


def test_only_what_is_new_is_shown() -> None:
    transcript = (
        Message(role="user", content="old"),
        Message(role="assistant", content="mine"),
        Message(role="user", content="new"),
    )
    shown = prompt(AgentRequest(transcript, tools=(Tool(name="say"),), metadata={"task": "t", "sample": "s"}))
    assert "sample=s task=t" in shown
    assert "[user]\nnew" in shown
    assert "[tools: say]" in shown
    assert "old" not in shown
    assert "mine" not in shown


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(prompt(ask("\x1b[2J\x07\r\u202ebad")))
