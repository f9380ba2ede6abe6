"""A person answers at the terminal, one request at a time."""

import asyncio
import io

import pytest

from agent_server.agents.base import Ask
from agent_server.agents.human import HumanAgent, prompt
from environments.base import AgentUnavailable
from environments.types import Message, Tool


def ask(*contents: str) -> Ask:
    return Ask(tuple(Message(role="user", content=content) for content in contents))


async def test_lines_up_to_a_lone_dot_are_the_answer() -> None:
    agent = HumanAgent(io.StringIO("one\n.two\n\n.\nthree\r\n.\r\n"), io.StringIO())
    assert (await agent.answer(ask("?"))).action.content == "one\n.two\n"
    assert (await agent.answer(ask("?"))).action.content == "three"


async def test_a_closed_terminal_is_unavailable() -> None:
    with pytest.raises(AgentUnavailable, match="terminal"):
        await HumanAgent(io.StringIO("half an answer\n"), io.StringIO()).answer(ask("?"))


async def test_requests_are_shown_one_at_a_time() -> None:
    shown = io.StringIO()
    agent = HumanAgent(io.StringIO("1\n.\n2\n.\n"), shown)
    answers = await asyncio.gather(agent.answer(ask("first")), agent.answer(ask("second")))
    assert [answer.action.content for answer in answers] == ["1", "2"]
    assert shown.getvalue().index("first") < shown.getvalue().index("second")


def test_only_what_is_new_is_shown() -> None:
    transcript = (
        Message(role="user", content="old"),
        Message(role="assistant", content="mine"),
        Message(role="user", content="new"),
    )
    shown = prompt(Ask(transcript, tools=(Tool(name="say"),), metadata={"task": "t", "sample": "s"}))
    assert "sample=s task=t" in shown
    assert "[user]\nnew" in shown
    assert "[tools: say]" in shown
    assert "old" not in shown
    assert "mine" not in shown


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert not {"\x1b", "\x07", "\r", "\u202e"} & set(prompt(ask("\x1b[2J\x07\r\u202ebad")))
