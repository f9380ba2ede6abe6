"""What a game scores: its tally and the metrics, by profile."""

import pytest

from environments.lateral_thinking.dataset import Puzzle
from environments.lateral_thinking.host import Answer, Profile, Ruling
from environments.lateral_thinking.prompt import ROUNDS
from environments.lateral_thinking.scoring import Tally

PUZZLE = Puzzle(
    id="one",
    language="en",
    story="A man left.",
    truth="He fled.",
    story_keys=("He left.",),
    keys=("a", "b"),
    key_lines=4,
)
"""Two key points in a cell of four lines, of which two are blank."""


def played(profile: Profile, *rulings: tuple[Answer, tuple[int, ...]]) -> Tally:
    tally = Tally(PUZZLE, profile)
    for answer, hits in rulings:
        tally.rounds += 1
        tally.record(Ruling(answer=answer, hits=hits))
    return tally


def test_each_key_point_counts_once_with_the_round_it_was_found_in() -> None:
    tally = played("strict", ("no", ()), ("yes", (1,)), ("yes", (0,)))
    assert tally.hits == {1: 2, 0: 3}
    assert tally.remaining == []
    assert (tally.finish_round, tally.answers) == (3, {"yes": 2, "no": 1, "irrelevant": 0})


@pytest.mark.parametrize(("profile", "progress", "accuracy"), [("compat", 0.25, 1 / ROUNDS), ("strict", 0.5, 0.5)])
def test_compat_divides_by_all_lines_and_rounds_and_strict_by_key_points_and_rounds_played(
    profile: Profile, progress: float, accuracy: float
) -> None:
    metrics = played(profile, ("yes", (0,)), ("irrelevant", ())).metrics()
    assert metrics["game_progress"] == progress
    assert metrics["single_game_accuracy"] == metrics["query_relevance"] == accuracy
    assert (metrics["rounds"], metrics["finished"], metrics["round_efficiency"]) == (2.0, 0.0, 0.0)


@pytest.mark.parametrize("profile", ["compat", "strict"])
def test_a_finished_game_is_the_more_efficient_the_earlier_it_was_finished(profile: Profile) -> None:
    metrics = played(profile, ("no", ()), ("yes", (0, 1)), ("yes", ())).metrics()
    assert (metrics["finished"], metrics["round_efficiency"]) == (1.0, 1 - 2 / ROUNDS)


def test_a_game_without_a_round_scores_nothing_and_divides_by_no_zero() -> None:
    assert set(played("strict").metrics().values()) == {0.0}
