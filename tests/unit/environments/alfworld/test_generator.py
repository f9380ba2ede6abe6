"""Games of our own: as promised, equal for equal seeds, and proven."""

import json
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


def test_every_command_of_the_plan_is_on_offer_and_the_last_alone_wins(game: OwnGame) -> None:
    texts = game.texts()
    world = GameWorld(ReadyGame(texts.pddl_domain, texts.grammar, texts.pddl_problem))
    assert len(game.plan) <= LONGEST_PLAN
    for command in game.plan:
        assert not world.won
        assert command in world.admissible()
        world.step(command)
    assert world.won


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
