"""Matching answers, the checkers that can run outside the sandbox, and success rates over many finishes."""

import subprocess
import sys

import pytest

from environments.operating_system.dataset import AnswerMatch
from environments.operating_system.scoring import CHECKERS, _holds, matches
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
