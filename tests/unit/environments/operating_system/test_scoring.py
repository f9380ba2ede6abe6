"""Matching answers, the checkers that can run outside the sandbox, and success rates over many finishes."""

import subprocess
import sys

import pytest

from environments.operating_system.dataset import AnswerMatch
from environments.operating_system.scoring import CHECKERS, OWN_PROMPT_NOTE, _holds, matches, summarize
from proctor.types import Finish, FinishReason
from tests.support import SHARED_DATA


@pytest.mark.parametrize(
    ("match", "answer", "right"),
    [
        (AnswerMatch(answer="log"), " log\n", True),
        (AnswerMatch(answer="log"), "Log", False),
        (AnswerMatch(answer="log", strip=False), " log", False),
        (AnswerMatch(regex="^a+$"), "aaa", True),
        (AnswerMatch(regex="a"), "cat", True),
        (AnswerMatch(regex="a"), "dog", False),
        (AnswerMatch(answer="None"), None, False),
        (AnswerMatch(regex=""), None, False),
    ],
)
def test_an_answer_matches(match: AnswerMatch, answer: str | None, right: bool) -> None:
    assert matches(match, answer) is right


PAIRS = [("5", "5\n"), (" 5 ", "05"), ("5", "6"), ("five", "5"), ("5.0", "5"), ("a\r\nb", "a\nb "), ("b", "abc")]
PAIRS += [("abc", "b"), ("", ""), ("8.0K", "8.0K"), ("8K", "8192"), ("1MB", "1024KB"), ("1G", "1024M"), ("8k", "8192")]
PAIRS += [("1TB", "1024GB"), ("7B", "7"), ("7Byte", "7")]


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(CHECKERS))
def test_a_checker_outside_decides_as_the_published_script(name: str) -> None:
    script = SHARED_DATA / "os/scripts/dev/check" / f"{name}.py"
    for given, expected in PAIRS:
        ran = subprocess.run([sys.executable, str(script), given, expected], stderr=subprocess.DEVNULL, check=False)
        assert _holds(CHECKERS[name], given, expected) == (ran.returncode == 0), (given, expected)


def scored(score: float, kind: str = "check", errata: float = 0.0, *labels: str) -> Finish:
    return Finish(
        reason=FinishReason.COMPLETED,
        score=score,
        metrics={"passed_compat": score, "passed_errata": errata},
        detail={"kind": kind, "labels": list(labels)},
    )


FAULT = Finish.fault(FinishReason.TASK_ERROR, "the container died")


def test_acc_is_over_the_scored_and_faults_stand_beside() -> None:
    metrics = summarize([scored(1), scored(0), FAULT, FAULT], OWN_PROMPT_NOTE).metrics
    assert (metrics["acc"], metrics["scored"], metrics["task_error"], metrics["coverage"]) == (0.5, 2, 2, 0.5)


def test_kinds_and_labels_are_counted() -> None:
    metrics = summarize([scored(1, "match", 1, "file"), scored(0, "check", 1, "file", "user")], OWN_PROMPT_NOTE).metrics
    assert (metrics["kind.match.passed"], metrics["kind.check.passed"], metrics["kind.check.total"]) == (1, 0, 1)
    assert (metrics["label.file.passed"], metrics["label.file.total"], metrics["label.user.total"]) == (1, 2, 1)
    assert (metrics["acc_compat"], metrics["acc_errata"]) == (0.5, 1.0)


def test_a_verdict_that_no_sample_has_is_no_metric() -> None:
    metrics = summarize([scored(1)], OWN_PROMPT_NOTE).metrics
    assert ("acc_compat" in metrics, "acc_strict" in metrics) == (True, False)
    assert "acc_compat" not in summarize([FAULT], OWN_PROMPT_NOTE).metrics


def test_nothing_scored_is_said() -> None:
    summary = summarize([FAULT], OWN_PROMPT_NOTE)
    assert "acc" not in summary.metrics
    assert "coverage" not in summarize([], OWN_PROMPT_NOTE).metrics
    assert any("No sample was scored" in note for note in summary.notes)


def test_tampering_is_counted_and_said() -> None:
    tampered, unchanged, unseen = (
        scored(1).model_copy(update={"detail": {"kind": "check", "labels": [], "tampered": paths}})
        for paths in (["/usr/bin/wc"], [], None)
    )
    summary = summarize([tampered, unchanged, FAULT], OWN_PROMPT_NOTE)
    assert summary.metrics["tampered"] == 1
    assert any(note.startswith("In 1 samples the agent changed") for note in summary.notes)
    assert not any("tampered" in note for note in summarize([unchanged], OWN_PROMPT_NOTE).notes)
    assert summarize([unchanged], OWN_PROMPT_NOTE).metrics["tampered"] == 0
    assert "tampered" not in summarize([unseen], OWN_PROMPT_NOTE).metrics
