"""Which games a split has, which are left out, and what broken files are called."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from environments.alfworld import dataset, texts
from environments.alfworld.dataset import load
from environments.alfworld.engine.s_expressions import GameError
from environments.alfworld.environment import ALFWorld
from environments.alfworld.texts import task_type
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, FinishReason

GOOD = dataset.own_games()[0]


def write(root: Path, path: str, **changes: object) -> str:
    """A game file of this path; fields that are None are left out."""
    fields: Mapping[str, object] = GOOD.texts().model_dump() | changes
    file = root / path / "trial" / "game.tw-pddl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({key: value for key, value in fields.items() if value is not None}), encoding="utf-8")
    return str(file.relative_to(root))


@pytest.fixture
def split(tmp_path: Path) -> Path:
    """A split file beside its games: one good, one unsolvable, one that doesn't say, one of moving, one good."""
    games = [
        write(tmp_path, "pick_two_obj_and_place-A"),
        write(tmp_path, "look_at_obj_in_light-B", solvable=False),
        write(tmp_path, "look_at_obj_in_light-C", solvable=None),
        write(tmp_path, "pick_and_place_with_movable_recep-D"),
        write(tmp_path, "look_at_obj_in_light-E"),
    ]
    file = tmp_path / "some.json"
    file.write_text(json.dumps({"pick_two_obj": games[:1], "look_at_obj": games[1:]}), encoding="utf-8")
    return file


def test_skipped_games_keep_their_index_and_are_counted(split: Path) -> None:
    listed = load(split.parent, split, None)
    assert [entry.sample for entry in listed.entries] == ["some-00000", "some-00004"]
    assert listed.skipped == 3
    summary = ALFWorld(data=split.parent, split=split).summarize([])
    assert summary.metrics["skipped_games"] == 3
    assert any("3 further games" in note for note in summary.notes)


def test_a_folder_lists_its_games_by_path(split: Path) -> None:
    listed = load(split.parent, None, None)
    assert [Path(entry.path).parts[0][-1] for entry in listed.entries] == ["E", "A"]
    assert listed.entries[0].sample == f"{split.parent.name}-00002"


def test_of_each_type_the_first_games_can_be_asked_for() -> None:
    environment = ALFWorld(per_type=1)
    assert environment.samples() == tuple(f"own-{index:05}" for index in range(6))
    assert len(ALFWorld(per_type=2).samples()) == 12


async def test_a_broken_game_is_a_fault_of_its_own_and_the_others_are_played(split: Path) -> None:
    broken = split.parent / "pick_two_obj_and_place-A" / "trial" / "game.tw-pddl"
    environment = ALFWorld(data=split.parent, split=split)
    cases = {
        "{": "not JSON",
        json.dumps({"solvable": True, "grammar": "", "pddl_domain": "x", "pddl_problem": "y"}): "grammar: ",
        json.dumps({"solvable": True, "grammar": "x", "pddl_domain": "x"}): "pddl_problem: is missing",
        json.dumps(GOOD.texts().model_dump() | {"pddl_problem": "(define"}): "never closed",
    }
    for content, problem in cases.items():
        broken.write_text(content, encoding="utf-8")
        policy = environment.random("some-00000")
        finish = await play_to_finish(environment, "some-00000", PolicyAgent(policy))
        assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)
        assert problem in str(finish.detail["cause"])
        assert str(broken) in str(finish.detail["cause"])
    broken.unlink()
    finish = await play_to_finish(environment, "some-00000", PolicyAgent(environment.random("some-00000")))
    assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)
    assert f"{broken}: can't be read" in str(finish.detail["cause"])
    played = await play_to_finish(environment, "some-00004", PolicyAgent(environment.reference("some-00004")))
    assert played.score == 1.0


def test_a_missing_or_broken_file_stays_a_sample(split: Path) -> None:
    (split.parent / "pick_two_obj_and_place-A" / "trial" / "game.tw-pddl").write_text("{", encoding="utf-8")
    (split.parent / "look_at_obj_in_light-E" / "trial" / "game.tw-pddl").unlink()
    assert len(load(split.parent, split, None).entries) == 2


async def test_a_folder_of_no_known_type_is_a_fault(tmp_path: Path) -> None:
    write(tmp_path, "juggle_obj-A")
    environment = ALFWorld(data=tmp_path)
    (sample,) = environment.samples()
    finish = await play_to_finish(environment, sample, PolicyAgent(environment.random(sample)))
    assert finish.reason is FinishReason.TASK_ERROR
    assert "'juggle_obj-A' names no task type" in str(finish.detail["cause"])
    with pytest.raises(GameError):
        task_type("juggle_obj-A")


def test_a_split_of_which_nothing_can_be_played_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, "look_at_obj_in_light-A", solvable=False)
    with pytest.raises(ValueError, match="none of its 1 games can be played"):
        load(tmp_path, None, None)


def test_the_plan_of_the_file_comes_before_that_of_the_list(split: Path, tmp_path: Path) -> None:
    plans = tmp_path / "plans.json"
    plans.write_text('{"look_at_obj_in_light-E/trial/game.tw-pddl": ["look"]}', encoding="utf-8")
    environment = ALFWorld(data=split.parent, split=split, plans=plans)
    assert environment.plan("some-00004") == GOOD.plan
    file = split.parent / "look_at_obj_in_light-E" / "trial" / "game.tw-pddl"
    file.write_text(json.dumps(GOOD.texts().model_dump(exclude={"walkthrough"})), encoding="utf-8")
    assert environment.plan("some-00004") == ("look",)
    with pytest.raises(ValueError, match="no plan is known; give `plans`"):
        ALFWorld(data=split.parent, split=split).plan("some-00004")


def test_the_digest_follows_what_shapes_a_trial(split: Path) -> None:
    first = ALFWorld(data=split.parent, split=split).digest()
    assert ALFWorld(data=split.parent, split=split, profile="strict").digest() != first
    file = split.parent / "look_at_obj_in_light-E" / "trial" / "game.tw-pddl"
    file.write_text(file.read_text(encoding="utf-8") + " ", encoding="utf-8")
    assert ALFWorld(data=split.parent, split=split).digest() != first


@pytest.mark.parametrize("name", ["domain.pddl", "grammar.twl2", "help.pddl", "help.twl2"])
def test_the_digest_follows_each_text_that_our_own_games_are_made_of(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ALFWorld().digest()
    shutil.copytree(texts.SAMPLES, tmp_path / "samples")
    with (tmp_path / "samples" / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    monkeypatch.setattr(texts, "SAMPLES", tmp_path / "samples")
    try:
        forget_own_games()
        assert ALFWorld().digest() != first
    finally:
        monkeypatch.undo()
        forget_own_games()


def forget_own_games() -> None:
    for kept in (texts.own_domain, texts.own_grammar, dataset.own_entries):
        kept.cache_clear()


async def test_a_game_that_fails_in_mid_session_is_named(tmp_path: Path) -> None:
    broken = (
        GOOD.texts()
        .grammar.replace("You open the {r.name}", "You open the {x.name}")
        .replace("You are carrying: ", "You are carrying {x.name}: ")
        .replace("You are not carrying anything.", "You, {x.name}, carry nothing.")
    )
    path = write(tmp_path, "look_at_obj_in_light-A", grammar=broken)
    environment = ALFWorld(data=tmp_path)
    (sample,) = environment.samples()
    agent = PolicyAgent(lambda conversation, transcript: Action(content="ACTION: inventory"))
    finish = await play_to_finish(environment, sample, agent)
    assert finish.reason is FinishReason.TASK_ERROR
    assert f"{tmp_path / path}: grammar: {{x.name}} is used where x has no value" in str(finish.detail["cause"])


def test_a_file_of_endless_brackets_stays_a_sample(tmp_path: Path) -> None:
    path = write(tmp_path, "look_at_obj_in_light-A")
    (tmp_path / path).write_text("[" * 200_000, encoding="utf-8")
    assert len(load(tmp_path, None, None).entries) == 1


def test_samples_of_the_folder_that_one_is_in_have_its_name(split: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(split.parent)
    assert load(Path(), None, None).entries[0].sample == f"{split.parent.name}-00002"
