"""What a game scores: the win and the damage dealt (AgentBench v0.2, card_game)."""

from environments.card_game.rules.fish import MAX_HP, TEAM
from environments.card_game.rules.variants import Profile
from proctor.types import FinishReason

ALL_HP = MAX_HP * TEAM
"""Hp of a whole team at the start, which is the most damage that can be dealt."""
DECIDED = (FinishReason.COMPLETED, FinishReason.TURN_LIMIT)
"""Reasons of games that have a winner or are drawn; the agent has lost a game that ended for any other reason."""


def win(reason: FinishReason, winner: int | None, seat: int, profile: Profile) -> float:
    """1 where the player at `seat` won, 0 where it lost, 0.5 for a draw; in `compat` player 1 wins a draw."""
    if reason not in DECIDED:
        return 0.0
    if winner is None:
        return float(seat == 1) if profile == "compat" else 0.5
    return float(winner == seat)


def score(win_rate: float, damage_rate: float) -> float:
    """The main metric of one game or of many, from 0 to 1; both rates are from 0 to 1."""
    return 0.7 * win_rate + min(0.3, 0.3 * damage_rate)
