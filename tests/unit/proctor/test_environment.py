"""The defaults of an environment that defines only `samples` and `play`."""

from collections.abc import Sequence

import pytest
from scipy import stats as scipy_stats

from proctor.environment import POLICY_KINDS, Agent, Environment, Policy, missing_policies, policy_of
from proctor.summary import summarize
from proctor.types import Action, Finish, FinishReason


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


def test_the_summary_is_the_mean_score_with_its_standard_error() -> None:
    scores = [0.0, 0.5, 1.0, 1.0]
    summary = summarize(Bare(), [*map(finish, scores), FAULT])
    assert summary.primary == "mean_score"
    assert summary.metrics == {"mean_score": 0.625, "not_understood": 0.0}
    assert summary.standard_error == pytest.approx(float(scipy_stats.sem(scores)))


def test_the_mean_over_nothing_is_absent() -> None:
    assert Bare().summarize([]).metrics == {}
    assert Bare().summarize([FAULT]).metrics == {}


def test_there_are_no_policies_unless_a_class_brings_them() -> None:
    assert [policy_of(Bare(), kind, "a") for kind in POLICY_KINDS] == [None, None, None]
    assert missing_policies(Bare(), POLICY_KINDS) == ("reference", "naive", "random")
    assert missing_policies(Solved(), POLICY_KINDS) == ("naive", "random")
    assert missing_policies(Solved(), ["reference", "random"]) == ("random",)


def test_a_policy_is_found_by_its_kind() -> None:
    policy = policy_of(Solved(), "reference", "b", 4)
    assert policy is not None
    assert policy("main", ()).content == "b 4"
