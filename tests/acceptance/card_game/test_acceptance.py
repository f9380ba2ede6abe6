"""The acceptance list of the card game environment, one test a line under its number.

Line 6 is tests/unit/environments/card_game/test_engine.py.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from environments.card_game import policies
from environments.card_game.environment import CardGame
from environments.card_game.rules.engine import Game
from environments.card_game.rules.fish import SPECIES, STANDARD_TEAM
from environments.card_game.rules.moves import Assert, Attack, GameEvent, Move, Pass, Skill
from environments.card_game.rules.opponents import Chance, Greedy, Opponent
from environments.card_game.rules.variants import CODE, PAPER
from environments.card_game.rules.view import seen_by
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Finish, FinishReason
from tests.support import SHARED_DATA
from tests.unit.environments.fixed_policies import garbage

Json = Mapping[str, Any]
WINNERS = {0: 1, 1: 1, 20: 1, 21: 1, 24: 1, 2: 0, 3: 0, 4: 0, 5: 0, 22: 0, 23: 0, 25: 0}
REDUCING = (5, 6)


class Recorded(random.Random):
    """Dice that give what a trace says about dodges."""

    def __init__(self) -> None:
        super().__init__(0)
        self.dodges: list[bool] = []

    def random(self) -> float:
        return 0.0 if self.dodges.pop(0) else 1.0


def traces() -> list[Json]:
    path = SHARED_DATA / "card_game" / "sample_traces_12.json"
    games: list[Json] = json.loads(path.read_text(encoding="utf-8"))
    return games


def recorded_move(op: Json) -> Move:
    if op["Action"] == "Null":
        return Pass()
    if op["Action"] == "Assert":
        return Assert(op["Pos"], op["id"])
    if op["Type"] == 0:
        return Attack(op["MyPos"], op["EnemyPos"])
    return Skill(op["MyPos"], tuple(op["MyList"]), tuple(op["EnemyList"]))


def recorded_dodges(events: Sequence[Json], teams: Sequence[Sequence[int]]) -> Iterator[bool]:
    for before, event in zip([{"kind": "none"}, *events], events, strict=False):
        if event["kind"] == "hit" and teams[event["player"]][event["target"]] in REDUCING:
            reduced = before["kind"] == "reduce" and before["value"] == 0
            same = reduced and (before["player"], before["source"]) == (event["player"], event["target"])
            yield same and event["value"] == 0


def state(game: Game) -> list[list[Json]]:
    return [
        [
            {
                "id": fish.id,
                "hp": fish.hp,
                "atk": fish.effective_attack,
                "state": 2 if fish.dead else 1,
                "is_expose": fish.exposed,
            }
            for fish in team
        ]
        for team in game.teams
    ]


def as_recorded(time: int, event: GameEvent) -> Json:
    place = "target" if event.kind == "hit" else "source"
    told = {"kind": event.kind, "time": time, "player": event.player, place: event.position}
    value = pytest.approx(event.value, abs=1e-6)
    return told | {"value": value} | ({"traceable": event.traceable} if event.kind == "hit" else {})


def replayed(trace: Json) -> tuple[Game, int]:
    """The game after all steps of a trace, and how many there were; each is compared on the way."""
    dice, steps = Recorded(), 0
    game = Game(trace["teams"], dice)
    for steps, step in enumerate(trace["trace"], 1):
        assert state(game) == step["before"], (trace["game"], steps)
        assert game.player == step["op"]["ID"]
        dice.dodges = list(recorded_dodges(step.get("events", ()), trace["teams"]))
        assert game.apply(recorded_move(step["op"])) is None
        told = [as_recorded(time, event) for time, event in enumerate(game.events, 1)]
        assert told == step.get("events", []), (trace["game"], steps)
        assert dice.dodges == []
    assert state(game) == trace["final"]
    return game, steps


@pytest.mark.shared
def test_01_all_traces_replay_step_by_step_and_event_by_event() -> None:
    steps = [replayed(trace)[1] for trace in traces()]
    assert (len(steps), sum(steps)) == (12, 600)


@pytest.mark.shared
def test_02_the_winners_follow_and_game_23_ends_at_the_phase_limit() -> None:
    games = {trace["game"]: (trace["end"], *replayed(trace)) for trace in traces()}
    assert {number: game.winner for number, (_, game, _) in games.items()} == WINNERS
    assert all(
        end == {str(player): 100 * (player == game.winner) for player in (0, 1)} for end, game, _ in games.values()
    )
    _, game, steps = games[23]
    assert (steps, [sum(fish.hp > 0 for fish in team) for team in game.teams]) == (126, [3, 3])
    assert all(game.over for _, game, _ in games.values())


def baseline(players: Sequence[Opponent], asserting: bool, seed: str) -> Game:
    dice = random.Random(seed)
    game = Game((STANDARD_TEAM, STANDARD_TEAM), dice)
    while not game.over:
        view, player = seen_by(game, game.player), players[game.player]
        if game.asserting:
            game.apply(player.guess(view, dice) if asserting else Pass())
        else:
            game.apply(player.act(view, dice))
    return game


def damage_rate(games: Sequence[Game], player: int) -> float:
    return sum(400 - max(fish.hp, 0) for game in games for fish in game.teams[1 - player]) / (1600 * len(games))


@pytest.mark.parametrize("count", [400, pytest.param(1000, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    ("players", "wins", "damage", "wins_without"),
    [
        ((Chance(), Chance()), 0.552, (0.94, 0.91), 0.540),
        ((Greedy(), Chance()), 0.903, (1.00, 0.77), 0.985),
        ((Chance(), Greedy()), 0.167, (0.83, 0.99), 0.047),
        ((Greedy(), Greedy()), 0.697, (0.99, 0.96), 1.000),
    ],
    ids=["random-random", "greedy-random", "random-greedy", "greedy-greedy"],
)
def test_03_a_thousand_games_a_pairing_give_the_measured_table(
    players: tuple[Opponent, Opponent], wins: float, damage: tuple[float, float], wins_without: float, count: int
) -> None:
    games = [baseline(players, True, f"{number}") for number in range(count)]
    assert sum(game.winner == 0 for game in games) / count == pytest.approx(wins, abs=0.05)
    assert (damage_rate(games, 0), damage_rate(games, 1)) == pytest.approx(damage, abs=0.05)
    without = [baseline(players, False, f"{number}") for number in range(count)]
    assert sum(game.winner == 0 for game in without) / count == pytest.approx(wins_without, abs=0.05)


async def played(environment: CardGame, sample: str, policy: Any, seed: int = 0) -> Finish:
    return await play_to_finish(environment, sample, PolicyAgent(policy), seed)


async def test_04_the_trajectory_hash_follows_the_seed() -> None:
    environment = CardGame()
    for sample in environment.samples():
        policy = policies.blind_aoe(environment.setup(sample), 0)
        once, again, other = [await played(environment, sample, policy, seed) for seed in (1, 1, 2)]
        assert once.detail["trajectory"] == again.detail["trajectory"] != other.detail["trajectory"]
        assert once == again


TEAMS = st.lists(st.sampled_from(sorted(SPECIES)), min_size=4, max_size=4, unique=True)


@settings(max_examples=150)
@given(teams=st.tuples(TEAMS, TEAMS), seed=st.integers(0, 2**32), greedy=st.tuples(st.booleans(), st.booleans()))
@pytest.mark.parametrize("rules", [CODE, PAPER], ids=["code", "paper"])
def test_05_the_invariants_hold_in_every_game(
    rules: Any, teams: tuple[list[int], list[int]], seed: int, greedy: tuple[bool, bool]
) -> None:
    dice = random.Random(seed)
    game = Game(teams, dice, rules)
    fish = [each for team in game.teams for each in team]
    players: list[Opponent] = [Greedy() if each else Chance() for each in greedy]
    steps = 0
    while not game.over:
        before = [(each.attack, each.dead) for each in fish]
        view, player = seen_by(game, game.player), players[game.player]
        assert game.apply(player.guess(view, dice) if game.asserting else player.act(view, dice)) is None
        steps += 1
        for (attack, dead), each in zip(before, fish, strict=True):
            assert each.attack >= attack
            assert each.hp <= 400
            assert each.dead or not dead
            assert each.dead == (each.hp <= 0)
    assert steps <= 126
    assert all(damage_rate([game], player) <= 1 for player in (0, 1))


def test_07_the_enumeration_gives_twelve_dev_samples_with_stable_ids() -> None:
    ids = [
        f"{opponent}-seat{seat}-{number}" for opponent in ("random", "greedy") for seat in (0, 1) for number in range(3)
    ]
    assert list(CardGame().samples()) == ids
    assert len(CardGame(repetitions=5).samples()) == 20
    assert set(ids) < set(CardGame(repetitions=5).samples())


async def test_08_garbage_loses_every_game_in_the_first_act_phase_with_ten_calls() -> None:
    environment = CardGame()
    for sample in environment.samples():
        finish = await played(environment, sample, garbage)
        assert (finish.reason, finish.metrics["win"]) == (FinishReason.INVALID_FORMAT, 0.0)
        assert finish.metrics["calls"] == 10
        assert finish.metrics["phases"] == (1 if "seat0" in sample else 3)


async def test_08_the_dead_picker_is_out_after_the_death_of_its_fish() -> None:
    environment = CardGame()
    reasons = []
    for sample in environment.samples():
        finish = await played(environment, sample, policies.dead_picker)
        reasons.append(finish.reason)
        out = finish.reason is FinishReason.INVALID_ACTION
        assert ("agent's flame [1] is dead!" in str(finish.detail["replay"])) == out
        if out:
            assert finish.metrics["win"] == 0.0
            accepted = int(finish.metrics["guesses"]) + acts(finish)
            assert finish.metrics["calls"] == accepted + 5
    assert set(reasons) <= {FinishReason.INVALID_ACTION, FinishReason.COMPLETED}
    assert set(reasons[6:]) == {FinishReason.INVALID_ACTION}


def acts(finish: Finish) -> int:
    """How often the agent acted, by the text replay."""
    lines = str(finish.detail["replay"]).splitlines()
    return sum(line.lstrip("0123456789").startswith(". agent's") for line in lines)


def test_09_the_profiles_differ_where_the_paper_and_the_code_do() -> None:
    """In damage too: the rows `code` and `paper` of tests/unit/environments/card_game/duels.jsonl."""
    code, paper = (Game(((1, 2, 3, 10), (3, 5, 8, 9)), random.Random(1), rules) for rules in (CODE, PAPER))
    assert [[fish.attack for fish in game.teams[1]] for game in (code, paper)] == [[200, 100, 100, 100], [200] * 4]
    even = [Game((STANDARD_TEAM, STANDARD_TEAM), random.Random(0), rules) for rules in (CODE, PAPER)]
    even[0].teams[0][0].hp = even[1].teams[0][0].hp = 399
    assert [game.leader() for game in even] == [1, None]
    assert CardGame(profile="paper").samples()[:12] != CardGame().samples()
    assert len(CardGame(profile="paper").samples()) == 24


async def test_09_the_paper_averages_both_stages() -> None:
    environment = CardGame(profile="paper", repetitions=1)
    finishes = [await played(environment, sample, environment.random(sample), 0) for sample in environment.samples()]
    metrics = environment.summarize(finishes).metrics
    assert metrics["score"] == pytest.approx((metrics["stage1_score"] + metrics["stage2_score"]) / 2)
    stage1 = [finish for finish in finishes if finish.detail["stage"] == 1]
    assert all("guesses that" not in str(finish.detail["replay"]) for finish in stage1)


@pytest.mark.parametrize("count", [60, pytest.param(400, marks=pytest.mark.thorough)])
async def test_reference_policies_come_near_their_wanted_rates(count: int) -> None:
    environment = CardGame(repetitions=count)
    wanted = [
        (policies.greedy_agent, "random", 0, 0.90),
        (policies.greedy_agent, "random", 1, 0.83),
        (policies.random_agent, "greedy", 0, 0.17),
        (policies.random_agent, "greedy", 1, 0.10),
    ]
    for policy, opponent, seat, rate in wanted:
        samples = [sample for sample in environment.samples() if sample.startswith(f"{opponent}-seat{seat}-")]
        finishes = [await played(environment, sample, policy(environment.setup(sample), 0)) for sample in samples]
        assert {finish.reason for finish in finishes} == {FinishReason.COMPLETED}
        assert sum(finish.metrics["win"] for finish in finishes) / count == pytest.approx(rate, abs=0.08)


async def test_blind_aoe_speaks_only_legal_moves() -> None:
    environment = CardGame()
    for sample in environment.samples():
        finish = await played(environment, sample, policies.blind_aoe(environment.setup(sample), 0))
        assert finish.reason is FinishReason.COMPLETED
        assert finish.metrics["calls"] == finish.metrics["guesses"] + acts(finish)
