"""Policies of an environment answer from the request alone."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

import pytest

from agent_server.agents.base import AgentRequest
from agent_server.agents.policies import ServedPolicy, TaskPolicies
from agent_server.errors import RequestRefused
from proctor.config.task import TaskDefinition
from proctor.types import Message
from tests.toy_environment import installed


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[TaskPolicies]:
    with installed(tmp_path):
        yield TaskPolicies(
            [
                TaskDefinition(name="toy", environment="toy-letters", parameters={"letters": "xyz"}),
                TaskDefinition(name="solved", environment="toy-solved"),
            ]
        )


def ask(metadata: Mapping[str, str], messages: int = 1) -> AgentRequest:
    return AgentRequest((Message(role="user", content="?"),) * messages, metadata=metadata)


@pytest.mark.parametrize(("kind", "content"), [("reference", "y4"), ("naive", "a after 3"), ("random", "y")])
async def test_each_kind_answers_by_its_policy(
    tasks: TaskPolicies, kind: Literal["reference", "naive", "random"], content: str
) -> None:
    metadata = {"task": "toy", "sample": "y", "seed": "4", "conversation": "main", "epoch": "1", "turn": "1"}
    assert (await ServedPolicy(kind, tasks).answer(ask(metadata, 3))).action.content == content


async def test_the_conversation_is_passed_on_and_the_seed_is_zero_unless_given(tasks: TaskPolicies) -> None:
    agent = ServedPolicy("reference", tasks)
    assert (await agent.answer(ask({"task": "toy", "sample": "x"}))).action.content == "x0"
    answer = await agent.answer(ask({"task": "toy", "sample": "x", "conversation": "tools"}))
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
        await ServedPolicy("reference", tasks).answer(ask(metadata))
    assert caught.value.status == status
    assert says in caught.value.message


@pytest.mark.parametrize("kind", ["naive", "random"])
async def test_a_policy_that_the_environment_does_not_have_is_refused(
    tasks: TaskPolicies, kind: Literal["naive", "random"]
) -> None:
    with pytest.raises(RequestRefused) as caught:
        await ServedPolicy(kind, tasks).answer(ask({"task": "solved", "sample": "a"}))
    assert (caught.value.status, caught.value.code) == (422, "policy_not_found")
    assert caught.value.message == (
        f"metadata.task: the environment of task 'solved' has no {kind} policy; ask an agent of another kind, or give "
        f"the environment a method `{kind}`"
    )
