"""What a game scores: the win by reason, winner, seat and profile, and its weight beside the damage."""

import pytest

from environments.card_game.rules.variants import Profile
from environments.card_game.scoring import ALL_HP, DECIDED, score, win
from proctor.types import FinishReason


@pytest.mark.parametrize("reason", DECIDED)
@pytest.mark.parametrize(
    ("winner", "seat", "profile", "wanted"),
    [
        (0, 0, "compat", 1.0),
        (1, 0, "strict", 0.0),
        (1, 1, "paper", 1.0),
        (None, 0, "compat", 0.0),
        (None, 1, "compat", 1.0),
        (None, 0, "strict", 0.5),
        (None, 1, "paper", 0.5),
    ],
)
def test_a_win_is_one_and_a_draw_is_a_half_but_in_compat_a_win_of_player_1(
    reason: FinishReason, winner: int | None, seat: int, profile: Profile, wanted: float
) -> None:
    assert win(reason, winner, seat, profile) == wanted


@pytest.mark.parametrize("reason", [each for each in FinishReason if each not in DECIDED])
@pytest.mark.parametrize("winner", [None, 0, 1])
def test_a_game_that_the_agent_did_not_finish_is_lost_for_it_whoever_leads(
    reason: FinishReason, winner: int | None
) -> None:
    assert win(reason, winner, 1, "compat") == 0.0


def test_the_score_weighs_wins_and_damage() -> None:
    assert (score(1, 1), score(0, 0.5), score(0.5, 1)) == pytest.approx((1.0, 0.15, 0.65))


def test_all_damage_is_four_fish_of_400_hp() -> None:
    assert ALL_HP == 1600
