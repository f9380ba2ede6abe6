"""Games of our own: as promised, equal for equal seeds, and proven."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from environments.alfworld.engine.game import ReadyGame
from environments.alfworld.engine.world import GameWorld
from environments.alfworld.environment import ALFWorld
from environments.alfworld.texts import OwnGame
from proctor.session.play import PolicyAgent, play_to_finish
from tools.datagen.alfworld.generator import LONGEST_PLAN, generate

GAMES = 60

Games = tuple[OwnGame, ...]


@pytest.fixture(scope="module")
def games() -> Games:
    return tuple(generate(GAMES, seed=5))


@pytest.fixture(params=range(GAMES))
def game(games: Games, request: pytest.FixtureRequest) -> OwnGame:
    return games[int(request.param)]


def facts(game: OwnGame, predicate: str) -> list[list[str]]:
    start = game.problem.partition("(:goal")[0]
    return [found.split() for found in re.findall(rf"^\({predicate} (.*)\)$", start, re.MULTILINE)]


def test_every_command_of_the_plan_is_on_offer_and_the_last_alone_wins(game: OwnGame) -> None:
    texts = game.texts()
    world = GameWorld(ReadyGame(texts.pddl_domain, texts.grammar, texts.pddl_problem))
    assert len(game.plan) <= LONGEST_PLAN
    for command in game.plan:
        assert not world.won
        assert command in world.admissible()
        world.step(command)
    assert world.won


def test_rooms_are_furnished_as_promised(game: OwnGame) -> None:
    receptacles, objects = facts(game, "receptacleType"), facts(game, "objectType")
    assert 8 <= len(receptacles) <= 25
    assert 15 <= len(objects) <= 60
    number = r"_(plus|minus)_\d\d_dot_\d\d"
    assert all(re.fullmatch(rf"[A-Za-z]+(_bar_{number}){{3}}(_bar_SinkBasin)?", name) for name, _ in objects)
    allowed = {tuple(pair) for pair in facts(game, "canContain")}
    types = {fact[0]: fact[1] for fact in (*receptacles, *objects)}
    inside = [(types[where], types[item]) for item, where in facts(game, "inReceptacle") if "Lamp" not in item]
    assert set(inside) <= allowed


def test_some_receptacles_share_a_place_some_are_closed_and_some_objects_are_in_two(games: Games) -> None:
    places = [Counter(place for _, place in facts(game, "receptacleAtLocation")) for game in games]
    assert sum(max(each.values()) > 1 for each in places) > 30
    assert all(facts(game, "openable") for game in games)
    assert any(max(Counter(item for item, _ in facts(game, "inReceptacle")).values()) > 1 for game in games)


def test_equal_seeds_give_equal_games_and_others_others(games: Games) -> None:
    assert tuple(generate(6, seed=5)) == games[:6]
    assert tuple(generate(6, seed=6)) != games[:6]


async def test_generated_games_are_self_contained_files_that_can_be_played(tmp_path: Path) -> None:
    for game in generate(7, seed=9):
        path = tmp_path / game.path
        path.parent.mkdir(parents=True)
        path.write_text(game.texts().model_dump_json(exclude_none=True), encoding="utf-8")
    environment = ALFWorld(data=tmp_path)
    assert len(environment.samples()) == 7
    for sample in environment.samples():
        finish = await play_to_finish(environment, sample, PolicyAgent(environment.reference(sample)))
        assert finish.score == 1.0
    content = json.loads(next(tmp_path.rglob("game.tw-pddl")).read_text(encoding="utf-8"))
    assert set(content) == {"pddl_domain", "grammar", "pddl_problem", "solvable", "walkthrough"}
