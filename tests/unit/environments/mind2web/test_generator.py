"""Generated tasks: equal seeds give equal packs, the shipped one among them, which can be written and played."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from environments.mind2web.commands import mind2web
from environments.mind2web.data.files import opened, task_files
from environments.mind2web.environment import SAMPLES, Mind2Web
from proctor.session.play import PolicyAgent, play_to_finish
from tools.datagen.mind2web import generator
from tools.datagen.mind2web.templates import KINDS

SHIPPED_SEED = 49
Record = dict[str, Any]


@cache
def shipped() -> list[Record]:
    return [task for path in task_files(SAMPLES, "own") for task in json.loads(opened(path).read())]


def test_equal_seeds_give_equal_tasks_the_shipped_ones_among_them() -> None:
    pack = generator.generate(5, SHIPPED_SEED)
    assert list(pack.tasks) == shipped()[:5]
    assert {task["domain"] for task in shipped()[:5]} == {kind.domain for kind in KINDS}
    assert generator.generate(1, SHIPPED_SEED + 1).tasks[0] != pack.tasks[0]


def test_scores_that_can_t_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for pickled in ("file", "gone"):
        done = CliRunner().invoke(mind2web, ["scores", str(tmp_path / pickled), str(tmp_path / "scores.jsonl")])
        assert done.exit_code == 2, pickled
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


async def test_the_files_that_are_written_can_be_played(tmp_path: Path) -> None:
    written = generator.write(generator.generate(3, 4), tmp_path, "mine", tasks_a_file=2)
    assert [path.name for path in written] == ["mine_scores.jsonl", "mine_0.json", "mine_1.json"]
    (first, *_) = json.loads(written[1].read_text())[0]["actions"]
    assert "bounding_box_rect" not in first["cleaned_html"]
    environment = Mind2Web(data=tmp_path, split="mine", scores=written[0], cache=tmp_path / "kept", profile="strict")
    finishes = [
        await play_to_finish(environment, sample, PolicyAgent(environment.reference(sample)))
        for sample in environment.samples()
    ]
    metrics = environment.summarize(finishes).metrics
    assert metrics["step_sr"] == pytest.approx(metrics["recall@10"])
    assert metrics["step_sr"] > 0
