"""When a session is over, what it scores, and the rates of many sessions."""

import pytest

from environments.alfworld.environment import ALFWorld
from environments.alfworld.reply import Chosen, Profile
from environments.alfworld.scoring import CommandStep, end_reason, score, step_metrics
from proctor.types import Finish, FinishReason


def step(reply: str, *, refused: bool = False, command: str = "look", similarity: float = 1.0) -> CommandStep:
    return CommandStep(reply, "look", Chosen(command=command, similarity=similarity), refused)


@pytest.mark.parametrize(
    ("replies", "refused", "won", "profile", "reason"),
    [
        ("abc", False, False, "compat", None),
        ("abc", False, True, "compat", FinishReason.COMPLETED),
        ("aaa", True, False, "compat", None),
        ("abbb", False, False, "compat", FinishReason.INVALID_ACTION),
        ("abab", True, False, "compat", None),
        ("abbb", False, True, "compat", FinishReason.INVALID_ACTION),
        ("abbb", False, False, "strict", None),
        ("abbb", True, False, "strict", FinishReason.INVALID_ACTION),
        ("abbb", True, True, "strict", FinishReason.COMPLETED),
        ("abab", True, False, "strict", None),
    ],
)
def test_a_session_ends_when_it_is_won_or_its_replies_repeat(
    replies: str, refused: bool, won: bool, profile: Profile, reason: FinishReason | None
) -> None:
    assert end_reason(won, [step(each, refused=refused) for each in replies], profile) == reason


def test_one_accepted_reply_among_equal_ones_goes_on_in_strict() -> None:
    steps = [step("a", refused=True), step("a", refused=True), step("a"), step("a", refused=True)]
    assert end_reason(False, steps, "strict") is None
    assert end_reason(False, [step("a", refused=True), *steps[:2], steps[0]], "strict") is FinishReason.INVALID_ACTION


@pytest.mark.parametrize("reason", list(FinishReason))
def test_only_a_won_game_scores(reason: FinishReason) -> None:
    assert score(reason) == (1.0 if reason is FinishReason.COMPLETED else 0.0)


def test_steps_are_counted_by_how_their_action_was_understood() -> None:
    steps = [step("a"), step("b", command="go", similarity=0.5), step("c", similarity=0.0, refused=True)]
    assert step_metrics(steps) == {"steps": 3, "matched": 1, "refused": 1, "below_1": 2}


def test_faults_enter_no_rate_and_types_have_rates_of_their_own() -> None:
    detail = {"task_type": "look_at_obj", "format": "move"}
    passed = Finish(reason=FinishReason.COMPLETED, score=1.0, metrics={"steps": 4.0}, detail={**detail})
    failed = Finish(reason=FinishReason.INVALID_FORMAT, score=0.0, metrics={"steps": 9.0}, detail={**detail})
    fault = Finish.fault(FinishReason.TASK_ERROR, "broken")
    summary = ALFWorld().summarize([passed, failed, fault])
    assert summary.metrics[summary.primary] == 0.5
    assert summary.metrics["success_rate_look_at_obj"] == 0.5
    assert (summary.metrics["requested"], summary.metrics["scored"], summary.metrics["steps_of_passed"]) == (3, 2, 4)
    assert summary.metrics["invalid_format"] == 1
    assert any("move" in note for note in summary.notes)
    assert "steps_of_passed" not in ALFWorld().summarize([failed]).metrics, "none passed"
    nothing = ALFWorld().summarize([fault]).metrics
    assert not [name for name in nothing if name.startswith(("success_rate", "steps_of"))]
    assert (nothing["requested"], nothing["scored"], nothing["refused"]) == (1.0, 0.0, 0.0)
