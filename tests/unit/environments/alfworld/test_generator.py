"""Games of our own: as promised, equal for equal seeds, and proven."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from environments.alfworld import dataset
from environments.alfworld.commands import alfworld
from environments.alfworld.engine.game import ReadyGame
from environments.alfworld.engine.world import GameWorld
from environments.alfworld.environment import ALFWorld
from environments.alfworld.generate.generator import LONGEST_PLAN, generate
from environments.alfworld.task_types import TASK_TYPES, task_type
from environments.alfworld.texts import OwnGame
from proctor.session.play import PolicyAgent, play_to_finish

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


def test_types_take_turns_and_formats_every_six(games: Games) -> None:
    assert [task_type(game.path) for game in games] == list(TASK_TYPES) * 10
    assert [game.format for game in games[:24:6]] == ["put", "move", "put", "move"]


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


def test_the_shipped_games_are_those_of_seed_0() -> None:
    assert tuple(generate(36)) == tuple(dataset.own_games())


async def test_generated_files_are_self_contained_and_can_be_played(tmp_path: Path) -> None:
    made = CliRunner().invoke(alfworld, ["generate", str(tmp_path / "games"), "--games", "7", "--seed", "9"])
    assert made.exit_code == 0, made.output
    environment = ALFWorld(data=tmp_path / "games")
    assert len(environment.samples()) == 7
    for sample in environment.samples():
        finish = await play_to_finish(environment, sample, PolicyAgent(environment.reference(sample)))
        assert finish.score == 1.0
    content = json.loads(next((tmp_path / "games").rglob("game.tw-pddl")).read_text(encoding="utf-8"))
    assert set(content) == {"pddl_domain", "grammar", "pddl_problem", "solvable", "walkthrough"}
    again = CliRunner().invoke(alfworld, ["generate", str(tmp_path / "games")])
    assert (again.exit_code, "is not empty" in again.output) == (2, True)


def test_the_shipped_games_can_be_written_out(tmp_path: Path) -> None:
    done = CliRunner().invoke(alfworld, ["export", str(tmp_path / "own")])
    assert (done.exit_code, len(list((tmp_path / "own").rglob("game.tw-pddl")))) == (0, 36)
    own = {game.path: game.texts() for game in dataset.own_games()}
    assert {path: dataset.read(tmp_path / "own" / path) for path in own} == own


def test_the_cross_check_says_what_to_install_or_what_file_is_broken(tmp_path: Path) -> None:
    broken = tmp_path / "game.tw-pddl"
    broken.write_text("{", encoding="utf-8")
    result = CliRunner().invoke(alfworld, ["cross-check", str(broken)])
    assert result.exit_code == 2
    assert f"{broken}: " in result.output
    game = dataset.own_games()[0].texts()
    broken.write_text(game.model_copy(update={"pddl_problem": "(define"}).model_dump_json(), encoding="utf-8")
    result = CliRunner().invoke(alfworld, ["cross-check", str(broken)])
    assert result.exit_code == 2
    assert f"{broken}: pddl_problem: " in result.output


def test_a_cross_check_of_no_games_is_an_error(tmp_path: Path) -> None:
    result = CliRunner().invoke(alfworld, ["cross-check", str(tmp_path)])
    assert (result.exit_code, f"{tmp_path}: holds no game.tw-pddl" in result.output) == (2, True)


@pytest.mark.parametrize("command", ["generate", "export"])
def test_a_folder_that_cannot_be_written_is_named(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    result = CliRunner().invoke(alfworld, [command, str(tmp_path / "file" / "games")])
    assert (result.exit_code, f"{tmp_path / 'file' / 'games'}: can't be written: " in result.output) == (2, True)


def test_a_folder_that_holds_something_is_refused_before_games_are_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    result = CliRunner().invoke(alfworld, ["generate", str(tmp_path), "--games", "1000000000"])
    assert (result.exit_code, "is not empty" in result.output) == (2, True)
