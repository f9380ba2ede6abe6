"""The defaults of an environment that defines only `samples` and `play`, and how its errors end a session."""

from collections.abc import Sequence

import pytest
import scipy

from proctor.environment import (
    POLICY_KINDS,
    Agent,
    Environment,
    EnvironmentFault,
    Policy,
    ServiceAway,
    missing_policies,
    policy_of,
)
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.session.transcript import Transcript
from proctor.summary import summarize
from proctor.types import Action, Finish, FinishReason, Message, Observation, ToolCall
from task_server.wire.messages import Finished


class Bare(Environment):
    """Two abstract methods, and nothing else."""

    def samples(self) -> Sequence[str]:
        return ["a", "b"]

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        raise AssertionError


class Solved(Bare):
    def reference(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, transcript: Action(content=f"{sample} {seed}")


def finish(score: float) -> Finish:
    return Finish(reason=FinishReason.COMPLETED, score=score)


FAULT = Finish.fault(FinishReason.TASK_ERROR, "gone")


def test_two_methods_are_abstract() -> None:
    assert Environment.__abstractmethods__ == {"samples", "play"}


def test_the_summary_is_the_mean_score_with_its_standard_error_and_absent_over_nothing() -> None:
    scores = [0.0, 0.5, 1.0, 1.0]
    summary = summarize(Bare(), [*map(finish, scores), FAULT])
    assert (summary.primary, summary.metrics) == ("mean_score", {"mean_score": 0.625, "not_understood": 0.0})
    assert summary.standard_error == pytest.approx(float(scipy.stats.sem(scores)))
    assert Bare().summarize([]).metrics == Bare().summarize([FAULT]).metrics == {}


def test_there_are_no_policies_unless_a_class_brings_them() -> None:
    assert [policy_of(Bare(), kind, "a") for kind in POLICY_KINDS] == [None, None, None]
    assert missing_policies(Bare(), POLICY_KINDS) == ("reference", "naive", "random")
    assert missing_policies(Solved(), POLICY_KINDS) == ("naive", "random")
    assert missing_policies(Solved(), ["reference", "random"]) == ("random",)
    policy = policy_of(Solved(), "reference", "b", 4)
    assert policy is not None
    assert policy("main", ()).content == "b 4"


ASKED = Message(role="user", content="?")
CALLED = Action(
    content="",
    tool_calls=(
        ToolCall(id="call_0", name="look", arguments="{}", echo={"extra_content": {"signature": "s"}}),
        ToolCall(id="call_1", name="look", arguments="{}"),
    ),
    echo={"reasoning_content": "r"},
)
ANSWERED = tuple(Message(role="tool", content="!", tool_call_id=call.id) for call in CALLED.tool_calls)


def told(*messages: Message, conversation: str = "main", fresh: bool = True) -> Sequence[Message]:
    """The history of an agent that has made CALLED, once the environment has handed out these."""
    transcript, first = Transcript(), Observation(messages=(ASKED,))
    transcript.observe(first)
    transcript.answer(first, CALLED)
    return transcript.observe(Observation(messages=messages, conversation=conversation, fresh=fresh))


def test_a_history_keeps_what_its_endpoint_demands_and_gets_it_back_where_it_is_handed_out_again() -> None:
    whole = [ASKED, CALLED.message(), *ANSWERED]
    assert told(*ANSWERED, fresh=False) == whole
    assert told(ASKED, CALLED.without_echo().message(), *ANSWERED) == whole


@pytest.mark.parametrize(
    ("call", "conversation"),
    [
        (ToolCall(id="call_7", name="look", arguments="{}"), "main"),
        (ToolCall(id="call_0", name="worked_example", arguments="{}"), "main"),
        (ToolCall(id="call_0", name="look", arguments="{}"), "another"),
    ],
)
def test_a_call_that_the_agent_did_not_make_in_the_conversation_gets_nothing(call: ToolCall, conversation: str) -> None:
    message = Message(role="assistant", content="", tool_calls=(call,))
    assert told(ASKED, message, *ANSWERED, conversation=conversation)[1] == message


class Broken(Environment):
    """One turn, then the error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def samples(self) -> list[str]:
        return ["only"]

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        await agent.act(Observation(messages=(Message(role="user", content="?"),)))
        raise self._error


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (ServiceAway("gone"), True),
        (EnvironmentFault("the sample's table can't be made"), False),
        (ConnectionRefusedError("of something else"), False),
    ],
)
async def test_only_a_service_that_is_away_is_told_as_such(error: Exception, away: bool) -> None:
    finish = await play_to_finish(Broken(error), "only", PolicyAgent(lambda _, __: Action(content="!")))
    told = Finished.model_validate_json(Finished(finish=finish).model_dump_json()).finish
    assert (told.reason, told.score, told.is_away) == (FinishReason.TASK_ERROR, None, away)
    assert told.detail["cause"] == f"{type(error).__name__}: {error}"
