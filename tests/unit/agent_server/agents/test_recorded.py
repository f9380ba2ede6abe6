"""A recording is repeated by task, sample, epoch and turn."""

import json
from pathlib import Path

import pytest

from agent_server.agents.base import AgentRequest
from agent_server.agents.recorded import RecordedAgent
from agent_server.errors import RequestRefused
from proctor.config.yaml import FileError
from proctor.environment import ContextLimitExceeded, InputRefused
from proctor.types import Message, ToolCall


def line(content: str, turn: int = 1, **fields: object) -> str:
    call = {"id": "c", "name": "f", "arguments": "{}"}
    action = {"content": content, "tool_calls": [call] if content == "call" else []}
    return json.dumps({"task": "t", "sample": "s", "epoch": 0, "turn": turn, "action": action, **fields}) + "\n"


def write(folder: Path, *lines: str) -> Path:
    path = folder / "turns.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def ask(**metadata: str) -> AgentRequest:
    return AgentRequest((Message(role="user", content="?"),), metadata={"task": "t", "sample": "s", **metadata})


async def test_each_turn_gets_its_own_action(tmp_path: Path) -> None:
    agent = RecordedAgent(write(tmp_path, line("größe"), line("call", 2, latency=1.5), line("e2", epoch=2)))
    assert (await agent.answer(ask(turn="1"))).action.content == "größe"
    assert (await agent.answer(ask(turn="2"))).action.tool_calls == (ToolCall(id="c", name="f", arguments="{}"),)
    assert (await agent.answer(ask(turn="1", epoch="2"))).action.content == "e2"


async def test_the_last_line_of_a_turn_counts(tmp_path: Path) -> None:
    agent = RecordedAgent(write(tmp_path, line("first try"), line("second try")))
    assert (await agent.answer(ask(turn="1"))).action.content == "second try"


async def test_what_is_not_recorded_is_refused(tmp_path: Path) -> None:
    agent = RecordedAgent(write(tmp_path, line("a")))
    with pytest.raises(RequestRefused, match="nothing is recorded for task 't', sample 's', epoch 0, turn 2") as caught:
        await agent.answer(ask(turn="2"))
    assert (caught.value.status, caught.value.code) == (422, "recording_not_found")
    with pytest.raises(RequestRefused, match="turn is missing"):
        await agent.answer(ask())


async def test_a_recorded_context_limit_or_refusal_is_repeated_and_a_turn_limit_is_the_clients_own(
    tmp_path: Path,
) -> None:
    stops = enumerate(("context_limit", "turn_limit", "refused"), 1)
    agent = RecordedAgent(write(tmp_path, *(line("", turn, action=None, stop=stop) for turn, stop in stops)))
    with pytest.raises(InputRefused):
        await agent.answer(ask(turn="3"))
    with pytest.raises(ContextLimitExceeded):
        await agent.answer(ask(turn="1"))
    with pytest.raises(RequestRefused, match="turn 2"):
        await agent.answer(ask(turn="2"))


async def test_a_file_of_several_agents_needs_a_choice(tmp_path: Path) -> None:
    path = write(tmp_path, line("a", agent="one"), line("b", agent="two"))
    with pytest.raises(FileError, match="holds turns of one, two; select one"):
        RecordedAgent(path)
    assert (await RecordedAgent(path, "one").answer(ask(turn="1"))).action.content == "a"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "holds no turn; check the file"),
        ([line("a"), '{"task": "t"\n'], r"turns.jsonl:2: the line: not JSON"),
        (['{"task": "t", "sample": "s", "action": null}\n'], r"turns.jsonl:1: turn: is missing"),
    ],
)
def test_a_broken_recording_is_refused_naming_the_line(tmp_path: Path, lines: list[str], says: str) -> None:
    with pytest.raises(FileError, match=says):
        RecordedAgent(write(tmp_path, *lines))


def test_a_missing_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="can't be read"):
        RecordedAgent(tmp_path / "none.jsonl")
