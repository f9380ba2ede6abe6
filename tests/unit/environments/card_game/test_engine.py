"""Every row of the damage and action rules, with numbers computed by hand; legality; the end of a game."""

import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.card_game.rules.engine import LAST_PHASE, Game
from environments.card_game.rules.fish import IDS, STANDARD_TEAM, Fish
from environments.card_game.rules.moves import Assert, Attack, GameEvent, Move, Pass, Skill
from environments.card_game.rules.variants import CODE, PAPER, RuleVariants


class Dice(random.Random):
    """Always gives the same number: 0.0 dodges, 0.3 and more does not."""

    def __init__(self, number: float) -> None:
        super().__init__(0)
        self.number = number

    def random(self) -> float:
        return self.number


def duel(own: Sequence[int], enemies: Sequence[int], dice: float = 0.3, rules: RuleVariants = CODE) -> Game:
    """A game in the action phase of player 0."""
    game = Game((own, enemies), Dice(dice), rules)
    game.apply(Pass())
    return game


def hp(game: Game, player: int) -> list[int]:
    return [fish.hp for fish in game.teams[player]]


def kill(game: Game, player: int, *positions: int) -> None:
    for position in positions:
        game.teams[player][position].hp, game.teams[player][position].dead = 0, True


def duels() -> list[Any]:
    """Rows of `duels.jsonl`, by sections 3.3 to 3.5 of the rules."""
    lines = Path(__file__).with_name("duels.jsonl").read_text(encoding="utf-8").splitlines()
    return [pytest.param(row, id=row["case"]) for row in map(json.loads, lines)]


@pytest.mark.parametrize("row", duels())
def test_a_duel(row: Mapping[str, Any]) -> None:
    """Fish are `player.position`: as `set` before the moves, as `then` after them; `dead` ones by player.

    The moves begin in the action phase, or where `asserting` in the assertion phase before it.
    """
    teams = [[IDS[name] for name in team] for team in row["teams"]]
    rules = PAPER if row.get("rules") == "paper" else CODE
    if row.get("asserting"):
        game = Game((teams[0], teams[1]), Dice(1.0), rules)
    else:
        game = duel(teams[0], teams[1], dice=row.get("dice", 0.3), rules=rules)
    for player, positions in row.get("dead", {}).items():
        kill(game, int(player), *positions)
    for fish, values in row.get("set", {}).items():
        for name, value in values.items():
            setattr(fish_at(game, fish), name, value)
    refusals = [game.apply(move(*given)) for given in row["moves"]]
    assert any(refusals) == row.get("illegal", False)
    assert (game.over, game.winner) == ("winner" in row, row.get("winner"))
    for fish, values in row.get("then", {}).items():
        assert {name: getattr(fish_at(game, fish), name) for name in values} == values
    assert {player: hp(game, int(player)) for player in row.get("hp", {})} == row.get("hp", {})
    noted(game, row)


def noted(game: Game, row: Mapping[str, Any]) -> None:
    """The events are all of `events`, have `among`, each `event` at its number, and so many of a kind as `count`."""
    events, kinds = [*game.events], [event.kind for event in game.events]
    assert [GameEvent(*event) for event in row.get("events", events)] == events
    assert all(GameEvent(*event) in events for event in row.get("among", ()))
    assert all(GameEvent(*event) == events[int(at)] for at, event in row.get("event", {}).items())
    assert {kind: kinds.count(kind) for kind in row.get("count", {})} == row.get("count", {})
    assert kinds == row.get("kinds", kinds)
    for name, value in row.get("action", {}).items():
        assert game.actions[0] is not None
        assert getattr(game.actions[0], name) == (tuple(value) if isinstance(value, list) else value)
    if "asserted" in row:
        assert game.assertions[0] is not None
        assert game.assertions[0][1] is row["asserted"]


def fish_at(game: Game, place: str) -> Fish:
    player, position = map(int, place.split("."))
    return game.teams[player][position]


def move(kind: str, *given: Any) -> Move:
    match kind, given:
        case "assert", (position, fish):
            return Assert(position, IDS.get(fish, fish))
        case "attack", (position, target):
            return Attack(position, target)
        case "skill", (position, mates, enemies):
            return Skill(position, tuple(mates), tuple(enemies))
    return Pass()


NUMBERS = st.integers(-3, 12)
LISTS = st.lists(NUMBERS, max_size=5).map(tuple)
MOVES = st.one_of(
    st.builds(Assert, NUMBERS, NUMBERS),
    st.just(Pass()),
    st.builds(Attack, NUMBERS, NUMBERS),
    st.builds(Skill, NUMBERS, LISTS, LISTS),
)


@given(moves=st.lists(MOVES, min_size=1, max_size=20))
def test_no_move_crashes_the_engine(moves: list[Move]) -> None:
    game = Game(((5, 6, 9, 1), (2, 3, 8, 10)), random.Random(0))
    for move in moves:
        illegal = game.problem(move) is not None
        assert (game.apply(move) is not None) == illegal or game.over


# Section 3.2: phases and the end.


def test_players_take_turns_asserting_and_acting() -> None:
    game = Game((STANDARD_TEAM, STANDARD_TEAM), Dice(1.0))
    seen = []
    for move in (Pass(), Attack(0, 0), Pass(), Attack(0, 0), Pass()):
        seen.append((game.player, game.asserting))
        game.apply(move)
    assert seen == [(0, True), (0, False), (1, True), (1, False), (0, True)]


@pytest.mark.parametrize(
    ("one", "other", "winner"),
    [
        ((10, 10, 0, 0), (400, -5, 0, 0), 0),
        ((10, 10, 0, 0), (10, 11, -90, 0), 1),
        ((10, 12, 0, 0), (11, 11, 0, 0), 0),
        ((10, 12, 0, 0), (12, 10, 0, 0), 1),
    ],
)
def test_a_stopped_game_goes_by_number_sum_and_highest_hp(
    one: tuple[int, ...], other: tuple[int, ...], winner: int
) -> None:
    game = Game((STANDARD_TEAM, STANDARD_TEAM), Dice(1.0))
    for team, points in zip(game.teams, (one, other), strict=True):
        for fish, value in zip(team, points, strict=True):
            fish.hp = value
    game.stop()
    assert (game.over, game.winner) == (True, winner)


def test_the_game_stops_after_its_last_phase_before_anything_else_is_looked_at() -> None:
    game = duel(STANDARD_TEAM, STANDARD_TEAM)
    game.phase = LAST_PHASE
    kill(game, 1, 0, 1, 2)
    kill(game, 0, 0, 1, 2)
    game.teams[1][3].hp = game.teams[0][3].hp = 1
    game.teams[0][3].hp = 0
    game.apply(Attack(3, 3))
    assert (game.over, game.winner) == (True, 1), "all are dead: by the acting player's rule 0 would win"
    assert game.apply(Pass()) == "the game is over"
