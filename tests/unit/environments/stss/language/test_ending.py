"""Whether a talk ends in an agreement, by the words of its last lines."""

import json
import re
from pathlib import Path

import pytest

import tools.endings.__main__ as learning
from environments.stss.dataset import shipped
from environments.stss.hearing.slots import SpokenLine
from environments.stss.language import ending
from environments.stss.language.dialogue import name_words
from environments.stss.language.ending import clues, ends_agreed, words
from tools.endings.__main__ import SMALL, TALKS, WEIGHTS, LabelledTalk, known_words, learn, score, talks

NAMES = name_words(shipped().town.places)
ADA, BEN = "Ada Birch", "Ben Osei"


@pytest.fixture(scope="module")
def taught() -> list[LabelledTalk]:
    return list(talks())


def test_a_word_is_told_in_its_plainest_form() -> None:
    lines = [
        SpokenLine(ADA, "Chess at three, Ben?"),
        SpokenLine(BEN, "I can't, I'll be with Finn at four for 2 hours."),
    ]
    (one, first), (two, other) = words(lines, 180, NAMES)
    assert (one, " ".join(first)) == ("first", "chess at SAME-TIME , PRESENT ?")
    assert (two, " ".join(other)) == ("other", "i can n't , i will be with ABSENT at OTHER-TIME for NUMBER hours .")


def test_only_the_last_lines_count_and_the_end_counts_most() -> None:
    said = [
        ("first" if index % 2 == 0 else "other", [word]) for index, word in enumerate(("gladly", "no", "well", "yes"))
    ]
    found = clues(said, {"gladly", "no", "yes"})
    assert (found["other: yes"], found["yes"], found["other: no"], found["first: gladly"]) == (1.0, 1.0, 0.5, 0.5)
    assert "well" not in found
    assert found["first: -"] == 1.0
    lines = [SpokenLine((ADA, BEN)[index % 2], str(index)) for index in range(9)]
    assert len(words(lines, None, NAMES)) == ending.LINES


def test_what_else_speaks_for_an_agreement_is_weighed() -> None:
    lines = [SpokenLine(ADA, "Chess tomorrow at three?"), SpokenLine(BEN, "Hm.")]
    assert ends_agreed(lines, 180, NAMES, 9.0)
    assert not ends_agreed(lines, 180, NAMES, -9.0)


def test_practice_talks_are_marked() -> None:
    assert all(re.fullmatch(r"[+-] .+(\n.+)+", talk) for talk in TALKS.read_text("utf-8").strip().split("\n\n"))


@pytest.mark.thorough
def test_weights_judge_talks_that_they_were_not_learned_from(taught: list[LabelledTalk]) -> None:
    """Measured: 78 of 83 that end agreed, 28 of 38 that don't."""
    rest, own = ([talk for talk in taught if (talk.author in {"R", "S"}) == held] for held in (False, True))
    known = known_words(rest)
    weights = learn(rest, known)
    scored = [(talk.agreed, score(talk, known, weights) > 0) for talk in own]
    assert scored.count((True, True)) >= 76
    assert scored.count((False, False)) >= 26


@pytest.mark.thorough
def test_the_shipped_weights_are_those_that_are_learned(
    taught: list[LabelledTalk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(learning, "talks", lambda: taught)
    monkeypatch.setattr(learning, "WEIGHTS", tmp_path / "ending.json")
    monkeypatch.setattr("sys.argv", ["endings"])
    learning.main()
    shipped, learned = (json.loads(path.read_text("utf-8")) for path in (WEIGHTS, tmp_path / "ending.json"))
    assert learned["known"] == shipped["known"]
    differences = [abs(weight - learned["weights"].get(clue, 0)) for clue, weight in shipped["weights"].items()]
    assert max(differences) <= SMALL + 1


@pytest.mark.thorough
def test_trying_tells_of_each_author(
    taught: list[LabelledTalk], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(learning, "talks", lambda: taught[::3])
    monkeypatch.setattr("sys.argv", ["endings", "--try"])
    learning.main()
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 2 * 6
    assert told[0].startswith("P: ")
