"""The scripted opponents follow their rules in order."""

import random

import pytest

from environments.card_game.rules.fish import (
    BARRACUDA,
    EEL,
    FLAME,
    HAMMERHEAD,
    MOBULA,
    OCTOPUS,
    SPECIES,
    SPRAY,
    STANDARD_TEAM,
    SUNFISH,
    WHITESHARK,
)
from environments.card_game.rules.moves import Assert, Attack, Move, Pass, Skill
from environments.card_game.rules.opponents import Chance, Greedy
from environments.card_game.rules.view import Enemy, Own, View


def view(
    own: dict[int, int], enemies: tuple[int, int, int, int] = (400, 400, 400, 400), actor: int | None = None
) -> View:
    """Own fish by id with their attacks, an attack of 0 for a dead one; hidden enemies by hp."""
    fish = tuple(Own(id, 400 if attack else 0, attack) for id, attack in own.items())
    return View(fish, tuple(Enemy(None, hp) for hp in enemies), actor)


ALL = {SPRAY: 200, FLAME: 200, EEL: 200, SUNFISH: 200}


@pytest.mark.parametrize(
    ("seen", "move"),
    [
        (view(ALL | {SUNFISH: 240}, (400, 120, 400, 400)), Attack(3, 1)),
        (view(ALL | {SUNFISH: 240}, (400, 121, 400, 400)), Skill(0, enemies=(0, 1, 2, 3))),
        (view(ALL | {SPRAY: 0}, (400, 0, 400, 400)), Skill(2, enemies=(0, 2, 3))),
        (
            view({BARRACUDA: 100, WHITESHARK: 100, FLAME: 100, OCTOPUS: 100}, (300, 300, 299, 400)),
            Skill(0, enemies=(2,)),
        ),
        (view({BARRACUDA: 0, WHITESHARK: 100, HAMMERHEAD: 100, SPRAY: 0}), Skill(1, enemies=(0,))),
        (view({FLAME: 340, SUNFISH: 200, MOBULA: 100, OCTOPUS: 100}, actor=2), Attack(0, 2)),
        (view(ALL, (0, 400, 0, 0), actor=1), Attack(0, 1)),
    ],
)
def test_greedy_kills_sweeps_crits_or_hits_back(seen: View, move: Move) -> None:
    moves = {Greedy().act(seen, random.Random(seed)) for seed in range(20)}
    if isinstance(move, Attack) and seen.own[move.position].attack == 200:
        assert {(type(each), each.target) for each in moves if isinstance(each, Attack)} == {(Attack, move.target)}
    else:
        assert moves == {move}


def test_greedy_hits_a_random_enemy_when_the_last_actor_is_dead() -> None:
    seen = view({FLAME: 340, SUNFISH: 200, MOBULA: 100, OCTOPUS: 100}, (400, 0, 400, 400), actor=1)
    assert {Greedy().act(seen, random.Random(seed)) for seed in range(50)} == {Attack(0, 0), Attack(0, 2), Attack(0, 3)}


def test_by_the_paper_greedy_sweeps_before_it_kills() -> None:
    seen = view(ALL, (400, 100, 400, 400))
    assert Greedy(kill_first=False).act(seen, random.Random(0)) == Skill(0, enemies=(0, 1, 2, 3))
    assert isinstance(Greedy(kill_first=True).act(seen, random.Random(0)), Attack)


def test_greedy_guesses_among_all_nine_but_the_exposed() -> None:
    seen = View(view(ALL).own, (Enemy(EEL, 400), Enemy(None, 0), Enemy(None, 400), Enemy(None, 1)), None)
    guesses = {Greedy().guess(seen, random.Random(seed)) for seed in range(300)}
    assert guesses == {Assert(position, id) for position in (2, 3) for id in SPECIES if id != EEL}
    known = View(seen.own, (Enemy(EEL, 400), Enemy(None, 0), Enemy(SPRAY, 5), Enemy(FLAME, 0)), None)
    assert Greedy().guess(known, random.Random(0)) == Pass()


def test_chance_passes_at_an_exposed_enemy() -> None:
    seen = View(view(ALL).own, (Enemy(EEL, 400), Enemy(None, 0), Enemy(None, 400), Enemy(None, 0)), None)
    guesses = {Chance().guess(seen, random.Random(seed)) for seed in range(200)}
    assert guesses == {Pass(), *(Assert(2, id) for id in STANDARD_TEAM)}


def test_three_in_ten_actions_of_chance_are_normal() -> None:
    dice = random.Random(0)
    moves = [Chance().act(view(ALL), dice) for _ in range(5000)]
    assert sum(isinstance(move, Attack) for move in moves) / 5000 == pytest.approx(0.3, abs=0.02)
    assert {move.position for move in moves if isinstance(move, Skill)} == {0, 1, 2, 3}


def test_chance_uses_skills_on_legal_targets() -> None:
    chance, dice = Chance(normal_share=0.0), random.Random(0)
    alone = view({FLAME: 200, SPRAY: 0, EEL: 0, SUNFISH: 0})
    assert all(isinstance(chance.act(alone, dice), Attack) for _ in range(20))
    shark = view({WHITESHARK: 100, SPRAY: 0, EEL: 0, SUNFISH: 0}, (300, 200, 200, 400))
    assert {chance.act(shark, dice) for _ in range(50)} == {Skill(0, enemies=(1,)), Skill(0, enemies=(2,))}
    mobula = view({MOBULA: 100, SPRAY: 0, EEL: 100, SUNFISH: 0})
    assert Skill(0, mates=(0,)) in {chance.act(mobula, dice) for _ in range(50)}
