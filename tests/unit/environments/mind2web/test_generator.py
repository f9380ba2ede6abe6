"""Generated tasks: official form, the shares that are promised, and equal seeds equal packs."""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from lxml import etree

from environments.mind2web import commands
from environments.mind2web.commands import mind2web
from environments.mind2web.data.files import opened, task_files
from environments.mind2web.environment import OWN_SCORES, SAMPLES, Mind2Web
from environments.mind2web.generate import generator
from environments.mind2web.generate.sites.templates import KINDS
from proctor.session.play import PolicyAgent, play_to_finish

SHIPPED_SEED = 49
Record = dict[str, Any]


@cache
def shipped() -> list[Record]:
    return [task for path in task_files(SAMPLES, "own") for task in json.loads(opened(path).read())]


def actions() -> list[Record]:
    return [action for task in shipped() for action in task["actions"]]


def test_the_shipped_pack_is_as_large_as_promised() -> None:
    assert len(shipped()) == 60
    assert len(actions()) == pytest.approx(300, abs=15)
    assert {3, 10} <= {len(task["actions"]) for task in shipped()} <= set(range(3, 11))
    assert len({task["website"] for task in shipped()}) >= 10
    assert {task["source"] for task in shipped()} == {"proctor"}
    assert sum(path.stat().st_size for path in SAMPLES.iterdir()) < 3_000_000


def test_operations_positives_and_small_steps_have_their_shares() -> None:
    ops = Counter(action["operation"]["op"] for action in actions())
    total = ops.total()
    assert [ops[op] / total for op in ("CLICK", "TYPE", "SELECT")] == pytest.approx([0.55, 0.30, 0.15], abs=0.03)
    positives = Counter(len(action["pos_candidates"]) for action in actions())
    assert positives[2] / total == pytest.approx(0.2, abs=0.05)
    assert positives[0] / total == pytest.approx(0.05, abs=0.02)
    sizes = Counter(len(action["pos_candidates"]) + len(action["neg_candidates"]) for action in actions())
    assert (sizes[1], sizes[6]) == (2, 2)


def test_pages_have_300_to_2000_nodes_and_hold_every_candidate() -> None:
    for action in actions():
        root = etree.fromstring(action["cleaned_html"])
        ids = [node.get("backend_node_id") for node in root.iter()]
        assert 300 <= len(ids) <= 2_000
        assert len(set(ids)) == len(ids)
        candidates = [each["backend_node_id"] for each in (*action["pos_candidates"], *action["neg_candidates"])]
        assert len(set(candidates)) == len(candidates)
        assert set(candidates) <= set(ids)
        assert all(json.loads(each["attributes"])["backend_node_id"] in ids for each in action["pos_candidates"])


def test_pages_change_with_what_is_done() -> None:
    grown = 0
    for task in shipped():
        for action, after in zip(task["actions"], task["actions"][1:], strict=False):
            value = action["operation"]["value"]
            if action["operation"]["op"] == "TYPE":
                assert f'input_value="{value}"' in after["cleaned_html"]
            grown += len(after["cleaned_html"]) > len(action["cleaned_html"]) + 300
    assert grown > 40, "lists and months open"


def test_scores_rank_all_candidates_and_the_best_ten_hold_what_was_promised() -> None:
    keys = {
        f"{task['annotation_id']}_{action['action_uid']}": action for task in shipped() for action in task["actions"]
    }
    lines = [json.loads(line) for line in opened(OWN_SCORES)]
    assert {line["key"] for line in lines} == set(keys)
    hits = 0
    for line in lines:
        action = keys[line["key"]]
        positives = {each["backend_node_id"] for each in action["pos_candidates"]}
        assert positives <= set(line["ranks"]) == set(line["scores"])
        assert sorted(line["ranks"].values()) == list(range(len(line["ranks"])))
        best = sorted(line["ranks"], key=line["ranks"].__getitem__)
        assert [line["scores"][name] for name in best] == sorted(line["scores"].values(), reverse=True)
        hits += bool(positives & set(best[:10]))
    assert 0.75 <= hits / len(lines) <= 0.85


def test_equal_seeds_give_equal_tasks_the_shipped_ones_among_them() -> None:
    pack = generator.generate(5, SHIPPED_SEED)
    assert list(pack.tasks) == shipped()[:5]
    assert {task["domain"] for task in shipped()[:5]} == {kind.domain for kind in KINDS}
    assert generator.generate(1, SHIPPED_SEED + 1).tasks[0] != pack.tasks[0]


def test_the_commands_refuse_what_they_cannot_do(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for arguments in (
        ["generate", str(tmp_path / "file" / "below"), "--tasks", "1"],
        ["generate", str(tmp_path), "--split", "../x"],
        ["scores", str(tmp_path / "file"), str(tmp_path / "scores.jsonl")],
        ["scores", str(tmp_path / "gone"), str(tmp_path / "scores.jsonl")],
    ):
        assert CliRunner().invoke(mind2web, arguments).exit_code == 2, arguments
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


def test_tasks_are_not_mixed_with_those_of_an_earlier_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "TASKS_A_FILE", 1)
    options = ["generate", str(tmp_path), "--tasks"]
    assert CliRunner().invoke(mind2web, [*options, "2"]).exit_code == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(before) == {"own_0.json", "own_1.json", "own_scores.jsonl"}
    again = CliRunner().invoke(mind2web, [*options, "1"])
    assert (again.exit_code, "own_0.json already exists" in again.output) == (2, True)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert CliRunner().invoke(mind2web, [*options, "1", "--split", "other"]).exit_code == 0


async def test_the_command_writes_tasks_that_can_be_played(tmp_path: Path) -> None:
    options = ["--tasks", "3", "--seed", "4", "--split", "mine", "--raw-html"]
    done = CliRunner().invoke(mind2web, ["generate", str(tmp_path / "out"), *options])
    assert done.exit_code == 0, done.output
    out = tmp_path / "out"
    assert sorted(path.name for path in out.iterdir()) == ["mine_0.json", "mine_scores.jsonl"]
    (first, *_) = json.loads((out / "mine_0.json").read_text())[0]["actions"]
    assert "bounding_box_rect" in first["raw_html"]
    assert "bounding_box_rect" not in first["cleaned_html"]
    environment = Mind2Web(data=out, split="mine", scores=out / "mine_scores.jsonl", cache=tmp_path, profile="strict")
    finishes = [
        await play_to_finish(environment, sample, PolicyAgent(environment.reference(sample)))
        for sample in environment.samples()
    ]
    metrics = environment.summarize(finishes).metrics
    assert metrics["step_sr"] == pytest.approx(metrics["recall@10"])
    assert metrics["step_sr"] > 0
