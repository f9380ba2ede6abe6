"""Every row of the damage and action rules, with numbers computed by hand; legality; the end of a game."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.card_game.rules.engine import LAST_PHASE, Game
from environments.card_game.rules.fish import (
    BARRACUDA,
    EEL,
    FLAME,
    HAMMERHEAD,
    MOBULA,
    OCTOPUS,
    SPRAY,
    STANDARD_TEAM,
    SUNFISH,
    WHITESHARK,
)
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


PLAIN = (OCTOPUS, WHITESHARK, MOBULA, BARRACUDA)
"""A team that counters nothing."""


# Section 3.4: damage.


def test_a_shield_takes_seven_tenths_of_one_sourced_hit() -> None:
    game = duel((SPRAY, EEL, FLAME, SUNFISH), (FLAME, *PLAIN[:3]))
    game.teams[1][0].shield = True
    game.apply(Attack(0, 0))
    assert hp(game, 1)[0] == 370
    assert not game.teams[1][0].shield
    assert game.events == (GameEvent("reduce", 1, 0, 0.3), GameEvent("hit", 1, 0, 30, True))


def test_a_shield_stays_when_nobody_dealt_the_damage() -> None:
    game = duel(STANDARD_TEAM, STANDARD_TEAM)
    game.teams[0][0].shield = True
    game.apply(Skill(1, mates=(0,)))
    assert (hp(game, 0)[0], game.teams[0][0].shield) == (325, True)
    assert game.events == (GameEvent("hit", 0, 0, 75, False),)


@pytest.mark.parametrize("target", [SPRAY, FLAME])
def test_a_countering_fish_takes_the_whole_damage(target: int) -> None:
    game = duel(STANDARD_TEAM, (target, *PLAIN[:3]))
    game.apply(Attack(0, 0))
    assert hp(game, 1) == [300, 400, 400, 400]


@pytest.mark.parametrize(("rules", "own", "each"), [(CODE, 70, 10), (PAPER, 30, 23)], ids=["code", "paper"])
@pytest.mark.parametrize("target", [EEL, SUNFISH])
def test_a_deflecting_fish_shares_with_three_mates(target: int, rules: RuleVariants, own: int, each: int) -> None:
    game = duel(STANDARD_TEAM, (target, SPRAY, FLAME, SUNFISH if target == EEL else EEL), rules=rules)
    game.apply(Attack(0, 0))
    assert hp(game, 1) == [400 - own, 400 - each, 400 - each, 400 - each]
    assert [event.kind for event in game.events] == ["deflect", "hit", "hit", "hit", "hit"]
    assert game.events[0] == GameEvent("deflect", 1, 0, own)
    assert game.events[-1] == GameEvent("hit", 1, 0, own, True)


def test_a_deflecting_fish_shares_more_with_fewer_mates_and_nothing_alone() -> None:
    game = duel(STANDARD_TEAM, (EEL, SPRAY, FLAME, SUNFISH))
    kill(game, 1, 2, 3)
    game.apply(Attack(0, 0))
    assert hp(game, 1)[:2] == [330, 370]
    alone = duel(STANDARD_TEAM, (EEL, SPRAY, FLAME, SUNFISH))
    kill(alone, 1, 1, 2, 3)
    alone.apply(Attack(0, 0))
    assert (hp(alone, 1)[0], len(alone.events)) == (300, 1)


def test_a_deflecting_fish_gains_forty_attack_for_each_two_hundred_damage() -> None:
    game = duel(STANDARD_TEAM, (EEL, SPRAY, FLAME, SUNFISH))
    kill(game, 1, 1, 2, 3)
    game.teams[0][0].attack = 780
    game.teams[1][0].wound = 30
    game.apply(Attack(0, 0))
    assert (game.teams[1][0].attack, game.teams[1][0].wound) == (280, 20)


def test_a_fish_without_hp_still_shares_within_one_action() -> None:
    game = duel((EEL, *PLAIN[:3]), (SPRAY, SUNFISH, OCTOPUS, FLAME))
    game.teams[1][0].hp = 10
    game.apply(Skill(0, enemies=(0, 1, 2, 3)))
    assert hp(game, 1)[0] == 10 - 70 - 7


@pytest.mark.parametrize("target", [BARRACUDA, MOBULA])
def test_a_reducing_fish_dodges_and_keeps_its_shield(target: int) -> None:
    game = duel(STANDARD_TEAM, (target, SPRAY, FLAME, EEL), dice=0.29)
    game.teams[1][0].shield = True
    game.apply(Attack(0, 0))
    assert (hp(game, 1)[0], game.teams[1][0].shield) == (400, True)
    assert game.events == (GameEvent("reduce", 1, 0, 0), GameEvent("hit", 1, 0, 0, True))
    hit = duel(STANDARD_TEAM, (target, SPRAY, FLAME, EEL), dice=0.3)
    hit.apply(Attack(0, 0))
    assert hp(hit, 1)[0] == 300


def test_a_reducing_fish_dodges_shared_damage_too() -> None:
    game = duel(STANDARD_TEAM, (EEL, MOBULA, SPRAY, FLAME), dice=0.0)
    game.apply(Attack(0, 0))
    assert hp(game, 1) == [330, 400, 390, 390]


@pytest.mark.parametrize("target", [OCTOPUS, WHITESHARK])
def test_a_healing_fish_regains_up_to_twenty(target: int) -> None:
    game = duel(STANDARD_TEAM, (target, EEL, SPRAY, FLAME))
    game.apply(Attack(0, 0))
    assert (hp(game, 1)[0], game.events[-1]) == (320, GameEvent("heal", 1, 0, 20))
    shared = duel(STANDARD_TEAM, (EEL, target, SPRAY, FLAME))
    shared.apply(Attack(0, 0))
    assert (hp(shared, 1)[1], GameEvent("heal", 1, 1, 10) in shared.events) == (400, True)
    killed = duel(STANDARD_TEAM, (target, *PLAIN[2:], EEL))
    killed.teams[1][0].hp = 100
    killed.apply(Attack(0, 0))
    assert (hp(killed, 1)[0], [event.kind for event in killed.events]) == (0, ["hit"])


@pytest.mark.parametrize(("rules", "start", "lost"), [(CODE, 50, 40), (CODE, 400, 0), (PAPER, 50, 0), (PAPER, 400, 40)])
def test_a_hammerhead_explodes(rules: RuleVariants, start: int, lost: int) -> None:
    game = duel(STANDARD_TEAM, (HAMMERHEAD, *PLAIN[:3]), rules=rules)
    game.teams[1][0].hp = start
    game.apply(Attack(0, 0))
    assert 400 - hp(game, 0)[0] == lost
    assert (GameEvent("explode", 1, 0, 40) in game.events) == bool(lost)


def test_a_hammerhead_does_not_explode_at_shared_damage() -> None:
    game = duel(STANDARD_TEAM, (EEL, HAMMERHEAD, *PLAIN[:2]))
    game.teams[1][1].hp = 5
    game.apply(Attack(0, 0))
    assert (hp(game, 1)[1], hp(game, 0)) == (-5, [400] * 4)


@pytest.mark.parametrize(("before", "lost"), [(220, 0), (219, 60), (50, 60)])
def test_spray_and_flame_counter_when_a_mate_is_below_120(before: int, lost: int) -> None:
    game = duel((SPRAY, *PLAIN[:3]), (SPRAY, HAMMERHEAD, FLAME, MOBULA))
    game.teams[1][3].hp = before
    game.apply(Attack(0, 3))
    assert 400 - hp(game, 0)[0] == lost
    assert [event.kind for event in game.events].count("counter") == lost // 30
    assert lost == 0 or game.events[1:3] == (GameEvent("counter", 1, 3, 30), GameEvent("hit", 0, 0, 30, False))


def test_no_fish_counters_for_itself_or_when_dead() -> None:
    for target, dead, lost in ((0, (), 30), (0, (2,), 0), (3, (0, 2), 0)):
        game = duel((SPRAY, *PLAIN[:3]), (SPRAY, HAMMERHEAD, FLAME, MOBULA))
        game.teams[1][target].hp = 119
        kill(game, 1, *dead)
        game.apply(Attack(0, target))
        assert 400 - hp(game, 0)[0] == lost


def test_a_mate_hurt_by_a_share_sets_off_no_counter() -> None:
    game = duel((SPRAY, *PLAIN[:3]), (EEL, SPRAY, FLAME, MOBULA))
    game.teams[1][3].hp = 50
    game.apply(Attack(0, 0))
    assert hp(game, 0)[0] == 400


# Section 3.5: actions.


def test_a_normal_attack_is_half_the_attack_and_a_wounded_hammerhead_has_more() -> None:
    for start, damage in ((80, 50), (79, 57)):
        game = duel((HAMMERHEAD, *PLAIN[:3]), (SPRAY, *PLAIN[:3]))
        game.teams[0][0].hp = start
        game.apply(Attack(0, 0))
        assert hp(game, 1)[0] == 400 - damage


def test_spray_hits_all_living_enemies_for_a_constant_70_or_by_the_paper_for_its_attack() -> None:
    for rules, damage in ((CODE, 70), (PAPER, 84)):
        game = duel((SPRAY, *PLAIN[:3]), (FLAME, HAMMERHEAD, SPRAY, BARRACUDA), rules=rules)
        kill(game, 1, 2)
        game.teams[0][0].attack = 240
        game.apply(Skill(0, enemies=(3, 0, 1)))
        assert hp(game, 1) == [400 - damage, 400 - damage, 0, 400 - damage]
        assert game.actions[0] is not None
        assert (game.actions[0].skill, game.actions[0].damage, game.actions[0].enemies) == ("aoe", damage, (0, 1, 3))


def test_eel_hits_for_a_part_of_the_attack_it_had_before_the_first_hit() -> None:
    game = duel((EEL, *PLAIN[:3]), (SPRAY, FLAME, HAMMERHEAD, BARRACUDA))
    game.teams[0][0].attack = 240
    game.teams[0][0].wound = 190
    game.teams[1][2].hp = 84
    game.apply(Skill(0, enemies=(0, 1, 2, 3)))
    assert hp(game, 1) == [316, 316, 0, 316]
    assert game.teams[0][0].attack == 280


@pytest.mark.parametrize("fighter", [FLAME, SUNFISH])
def test_infight_hurts_a_mate_and_angers_the_fighter(fighter: int) -> None:
    game = duel((fighter, SPRAY, EEL, OCTOPUS), STANDARD_TEAM)
    game.apply(Skill(0, mates=(1,)))
    assert (hp(game, 0), game.teams[0][0].attack) == ([400, 325, 400, 400], 340)


def test_barracuda_crits_for_120() -> None:
    game = duel((BARRACUDA, *PLAIN[:3]), (SPRAY, FLAME, EEL, OCTOPUS))
    game.teams[1][0].hp = 300
    game.apply(Skill(0, enemies=(1,)))
    assert hp(game, 1)[1] == 280


@pytest.mark.parametrize("caster", [MOBULA, OCTOPUS])
def test_subtle_shields_one_fish_without_stacking_and_its_log_names_none(caster: int) -> None:
    game = duel((caster, SPRAY, FLAME, EEL), STANDARD_TEAM)
    game.teams[0][1].shield = True
    game.apply(Skill(0, mates=(1,)))
    assert (game.teams[0][1].shield, game.teams[0][0].attack, game.teams[0][1].attack) == (True, 120, 200)
    assert game.actions[0] is not None
    assert game.actions[0].mates == ()
    itself = duel((caster, SPRAY, FLAME, EEL), STANDARD_TEAM)
    assert itself.apply(Skill(0, mates=(0,))) is None
    assert itself.teams[0][0].shield


@pytest.mark.parametrize(
    ("critic", "own_hp", "target_hp", "damage"),
    [
        (WHITESHARK, 400, 160, 120),
        (WHITESHARK, 400, 159, 140),
        (HAMMERHEAD, 79, 160, 138),
        (HAMMERHEAD, 79, 159, 161),
        (HAMMERHEAD, 80, 159, 140),
    ],
)
def test_whiteshark_and_hammerhead_crit_harder_at_the_weak(
    critic: int, own_hp: int, target_hp: int, damage: int
) -> None:
    game = duel((critic, SPRAY, FLAME, EEL), (BARRACUDA, HAMMERHEAD, MOBULA, OCTOPUS))
    game.teams[0][0].hp = own_hp
    game.teams[1][0].hp = target_hp
    game.apply(Skill(0, enemies=(0,)))
    assert hp(game, 1)[0] == target_hp - damage


def test_an_actor_killed_by_counters_finishes_its_sweep() -> None:
    game = duel((SPRAY, *PLAIN[:3]), (HAMMERHEAD, SPRAY, FLAME, BARRACUDA))
    game.teams[0][0].hp = 20
    game.teams[1][0].hp = 100
    game.apply(Skill(0, enemies=(0, 1, 2, 3)))
    assert hp(game, 1) == [30, 330, 330, 330]
    assert (hp(game, 0)[0], game.teams[0][0].dead) == (-40, True)


# Section 3.3: assertions.


def test_a_right_assertion_exposes_and_costs_every_enemy_fifty() -> None:
    game = Game((STANDARD_TEAM, STANDARD_TEAM), Dice(1.0))
    for fish, points in zip(game.teams[1], (50, 49, 400, -7), strict=True):
        fish.hp = points
    game.teams[1][3].dead = True
    assert game.apply(Assert(2, EEL)) is None
    assert (hp(game, 1), [fish.exposed for fish in game.teams[1]]) == ([0, 0, 350, 0], [False, False, True, False])
    assert (game.events, game.teams[1][2].wound) == ((), 0)
    assert [fish.dead for fish in game.teams[1]] == [True, True, False, True]


def test_a_wrong_assertion_only_lifts_the_own_dead_to_zero() -> None:
    game = Game((STANDARD_TEAM, STANDARD_TEAM), Dice(1.0))
    game.teams[0][0].hp = -30
    game.teams[1][0].hp = -30
    game.apply(Assert(2, SPRAY))
    assert (hp(game, 0)[0], hp(game, 1)[0]) == (0, -30)
    assert game.assertions[0] == (Assert(2, SPRAY), False)


# Legality.

ILLEGAL: list[tuple[Sequence[int], Move]] = [
    (STANDARD_TEAM, Assert(0, SPRAY)),
    (STANDARD_TEAM, Pass()),
    (STANDARD_TEAM, Attack(3, 0)),
    (STANDARD_TEAM, Attack(0, 3)),
    (STANDARD_TEAM, Attack(0, 4)),
    (STANDARD_TEAM, Attack(-1, 0)),
    (STANDARD_TEAM, Skill(0, enemies=(0, 1))),
    (STANDARD_TEAM, Skill(0, enemies=(0, 1, 2, 3))),
    (STANDARD_TEAM, Skill(0, enemies=(0, 1, 2, 2))),
    (STANDARD_TEAM, Skill(0, mates=(1,), enemies=(0, 1, 2))),
    (STANDARD_TEAM, Skill(1, mates=(1,))),
    (STANDARD_TEAM, Skill(1, mates=(3,))),
    (STANDARD_TEAM, Skill(1, mates=(0, 2))),
    (STANDARD_TEAM, Skill(1, enemies=(0,))),
    ((BARRACUDA, WHITESHARK, HAMMERHEAD, SPRAY), Skill(0, enemies=(3,))),
    ((BARRACUDA, WHITESHARK, HAMMERHEAD, SPRAY), Skill(0, enemies=(0, 1))),
    ((BARRACUDA, WHITESHARK, HAMMERHEAD, SPRAY), Skill(1, enemies=(0,))),
    ((BARRACUDA, WHITESHARK, HAMMERHEAD, SPRAY), Skill(2, enemies=(0,))),
    ((MOBULA, OCTOPUS, SPRAY, FLAME), Skill(0, mates=(3,))),
    ((MOBULA, OCTOPUS, SPRAY, FLAME), Skill(1, enemies=(0,))),
]


@pytest.mark.parametrize(("team", "move"), ILLEGAL)
def test_an_illegal_action_is_told_and_loses_the_game(team: Sequence[int], move: Move) -> None:
    game = duel(team, STANDARD_TEAM)
    kill(game, 0, 3)
    kill(game, 1, 3)
    game.teams[1][1].hp = 200
    assert game.apply(move)
    assert (game.over, game.winner) == (True, 1)


@pytest.mark.parametrize("move", [Assert(3, EEL), Assert(2, EEL), Assert(4, EEL), Assert(0, 7), Attack(0, 0)])
def test_an_illegal_assertion_is_told_and_loses_the_game(move: Move) -> None:
    game = Game((STANDARD_TEAM, STANDARD_TEAM), Dice(1.0))
    kill(game, 1, 3)
    game.teams[1][2].exposed = True
    assert game.apply(move)
    assert (game.over, game.winner) == (True, 1)


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


def test_who_loses_all_fish_loses_and_if_both_do_the_acting_player_wins() -> None:
    for rules, both, winner in ((CODE, False, 0), (CODE, True, 0), (PAPER, False, 0), (PAPER, True, None)):
        game = duel(STANDARD_TEAM, (SPRAY, FLAME, EEL, SUNFISH), rules=rules)
        kill(game, 1, 0, 1, 2)
        game.teams[1][3].hp = 1
        if both:
            kill(game, 0, 1, 2, 3)
            game.teams[0][0].hp = 0
        game.apply(Attack(0, 3))
        assert (game.over, game.winner) == (True, winner)


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
