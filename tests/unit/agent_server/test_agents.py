"""Served agents: policies of environments, recordings, and the limits around them."""

import asyncio
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from agent_server.agents.base import AgentReply, AgentRequest, ServedAgent
from agent_server.agents.limits import Limited
from agent_server.agents.policies import ServedPolicy, TaskPolicies
from agent_server.agents.recorded import RecordedAgent
from agent_server.errors import RequestRefused
from proctor.config.task import TaskDefinition
from proctor.config.yaml import FileError
from proctor.environment import ContextLimitExceeded, InputRefused
from proctor.types import Action, Message, ToolCall
from tests.toy_environment import installed


def ask(*contents: str, **metadata: str) -> AgentRequest:
    messages = tuple(Message(role="user", content=content) for content in contents or ("?",))
    return AgentRequest(messages, metadata=metadata)


class Gated(ServedAgent):
    """Answers once the gate is open; fails on the word "fail"."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def answer(self, request: AgentRequest) -> AgentReply:
        await self.gate.wait()
        if request.messages[0].content == "fail":
            raise RuntimeError
        return AgentReply(Action(content="done"))


async def test_one_request_too_many_is_told_to_come_back() -> None:
    gated = Gated()
    agent = Limited(gated, concurrency=1)
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
    agent = Limited(gated, concurrency=1)
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
    agent = Limited(gated, context_chars=5)
    assert (await agent.answer(ask("ab", "cde"))).action.content == "done"
    with pytest.raises(ContextLimitExceeded):
        await agent.answer(ask("ab", "cdef"))


async def test_an_answer_is_held_back() -> None:
    gated, begun = Gated(), time.monotonic()
    gated.gate.set()
    await Limited(gated, latency_s=0.05).answer(ask("?"))
    assert time.monotonic() - begun >= 0.05


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[TaskPolicies]:
    with installed(tmp_path):
        yield TaskPolicies(
            [
                TaskDefinition(name="toy", environment="toy-letters", parameters={"letters": "xyz"}),
                TaskDefinition(name="solved", environment="toy-solved"),
            ]
        )


@pytest.mark.parametrize(("kind", "content"), [("reference", "y4"), ("naive", "a after 3"), ("random", "y")])
async def test_each_kind_answers_by_its_policy(
    tasks: TaskPolicies, kind: Literal["reference", "naive", "random"], content: str
) -> None:
    metadata = {"task": "toy", "sample": "y", "seed": "4", "conversation": "main", "epoch": "1", "turn": "1"}
    assert (await ServedPolicy(kind, tasks).answer(ask("?", "?", "?", **metadata))).action.content == content


async def test_the_conversation_is_passed_on_and_the_seed_is_zero_unless_given(tasks: TaskPolicies) -> None:
    agent = ServedPolicy("reference", tasks)
    assert (await agent.answer(ask(task="toy", sample="x"))).action.content == "x0"
    answer = await agent.answer(ask(task="toy", sample="x", conversation="tools"))
    assert answer.finish_reason() == "tool_calls"


@pytest.mark.parametrize(
    ("metadata", "status", "says"),
    [
        ({}, 400, "needs task, sample, and task, sample is missing; set `metadata: true`"),
        ({"task": "toy"}, 400, "and sample is missing"),
        ({"task": "toy", "sample": "x", "seed": "a"}, 400, "metadata.seed: 'a' is not a whole number"),
        ({"task": "other", "sample": "x"}, 422, "no task 'other' here; known are: solved, toy"),
        ({"task": "toy", "sample": "a"}, 422, "task 'toy' has no sample 'a'"),
    ],
)
async def test_metadata_that_name_no_sample_are_refused_saying_which(
    tasks: TaskPolicies, metadata: dict[str, str], status: int, says: str
) -> None:
    with pytest.raises(RequestRefused) as caught:
        await ServedPolicy("reference", tasks).answer(ask(**metadata))
    assert caught.value.status == status
    assert says in caught.value.message


@pytest.mark.parametrize("kind", ["naive", "random"])
async def test_a_policy_that_the_environment_does_not_have_is_refused(
    tasks: TaskPolicies, kind: Literal["naive", "random"]
) -> None:
    with pytest.raises(RequestRefused) as caught:
        await ServedPolicy(kind, tasks).answer(ask(task="solved", sample="a"))
    assert (caught.value.status, caught.value.code) == (422, "policy_not_found")
    assert caught.value.message == (
        f"metadata.task: the environment of task 'solved' has no {kind} policy; ask an agent of another kind, or give "
        f"the environment a method `{kind}`"
    )


def line(content: str, turn: int = 1, **fields: object) -> str:
    call = {"id": "c", "name": "f", "arguments": "{}"}
    action = {"content": content, "tool_calls": [call] if content == "call" else []}
    return json.dumps({"task": "t", "sample": "s", "epoch": 0, "turn": turn, "action": action, **fields}) + "\n"


def write(folder: Path, *lines: str) -> Path:
    path = folder / "turns.jsonl"
    path.write_text("".join(lines), encoding="utf-8")
    return path


def played(**metadata: str) -> AgentRequest:
    return ask(task="t", sample="s", **metadata)


async def test_each_turn_gets_its_own_action(tmp_path: Path) -> None:
    agent = RecordedAgent(write(tmp_path, line("größe"), line("call", 2, latency=1.5), line("e2", epoch=2)))
    assert (await agent.answer(played(turn="1"))).action.content == "größe"
    assert (await agent.answer(played(turn="2"))).action.tool_calls == (ToolCall(id="c", name="f", arguments="{}"),)
    assert (await agent.answer(played(turn="1", epoch="2"))).action.content == "e2"


async def test_the_last_line_of_a_turn_counts(tmp_path: Path) -> None:
    agent = RecordedAgent(write(tmp_path, line("first try"), line("second try")))
    assert (await agent.answer(played(turn="1"))).action.content == "second try"


async def test_what_is_not_recorded_is_refused(tmp_path: Path) -> None:
    agent = RecordedAgent(write(tmp_path, line("a")))
    with pytest.raises(RequestRefused, match="nothing is recorded for task 't', sample 's', epoch 0, turn 2") as caught:
        await agent.answer(played(turn="2"))
    assert (caught.value.status, caught.value.code) == (422, "recording_not_found")
    with pytest.raises(RequestRefused, match="turn is missing"):
        await agent.answer(played())


async def test_a_recorded_context_limit_or_refusal_is_repeated_and_a_turn_limit_is_the_clients_own(
    tmp_path: Path,
) -> None:
    stops = enumerate(("context_limit", "turn_limit", "refused"), 1)
    agent = RecordedAgent(write(tmp_path, *(line("", turn, action=None, stop=stop) for turn, stop in stops)))
    with pytest.raises(InputRefused):
        await agent.answer(played(turn="3"))
    with pytest.raises(ContextLimitExceeded):
        await agent.answer(played(turn="1"))
    with pytest.raises(RequestRefused, match="turn 2"):
        await agent.answer(played(turn="2"))


async def test_a_file_of_several_agents_needs_a_choice(tmp_path: Path) -> None:
    path = write(tmp_path, line("a", agent="one"), line("b", agent="two"))
    with pytest.raises(FileError, match="holds turns of one, two; select one"):
        RecordedAgent(path)
    assert (await RecordedAgent(path, "one").answer(played(turn="1"))).action.content == "a"


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
