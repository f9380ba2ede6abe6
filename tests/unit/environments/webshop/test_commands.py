"""`proctor webshop index`."""

import json
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from environments.webshop.commands import webshop
from environments.webshop.environment import WebShop
from tests.pace import slowly
from tools.datagen.webshop import generator


def said(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(webshop, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_a_catalogue_is_invented_indexed_and_played(tmp_path: Path) -> None:
    files, made = tmp_path / "files", tmp_path / "made"
    generator.write(files, 80, 9, seed=4)
    code, output = said("index", files, made)
    assert (code, "80 products, 9 goals, nouns by lexical 1" in output) == (0, True)
    assert len(WebShop(data=made).samples()) == 9
    assert "invented" in (WebShop(data=made).not_comparable_because() or "")
    code, output = said("index", files, made)
    assert (code, "already exists" in output) == (2, True)


def test_bad_input_gets_one_message(tmp_path: Path) -> None:
    code, output = said("index", tmp_path, tmp_path / "made")
    assert (code, "no items_shuffle.json" in output) == (2, True)
    generator.write(tmp_path / "files", 5, 5)
    code, output = said("index", tmp_path / "files", tmp_path / "made", "--nouns", "no_such_model")
    assert (code, "use lexical" in output) == (2, True)


def test_a_full_disk_gets_one_message_and_leaves_nothing(tmp_path: Path) -> None:
    generator.write(tmp_path / "files", 300, 5, compress=True)
    script = (
        "import resource; from environments.webshop.commands import webshop; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000)); webshop(['index', 'files', 'made'])"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=slowly(60)
    )
    assert found.returncode == 2
    assert "Traceback" not in found.stderr
    assert "made: can't be written: " in found.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["files"]


def test_expectations_that_can_t_be_read_are_refused_before_the_work(tmp_path: Path) -> None:
    generator.write(tmp_path / "files", 5, 5)
    expected = tmp_path / "expected.json"
    expected.write_text('[{"goal_index": "first"}]')
    code, output = said("index", tmp_path / "files", tmp_path / "made", "--check", expected)
    assert (code, "0.goal_index" in output) == (2, True)
    assert not (tmp_path / "made").exists()
    expected.write_text('[{"goal_index": 99, "instruction": ""}]')
    code, output = said("index", tmp_path / "files", tmp_path / "made", "--check", expected)
    assert (code, "expected.json: 0.goal_index: no goal 99" in output) == (2, True)


def test_the_published_goals_are_held_against_the_index(tmp_path: Path) -> None:
    generator.write(tmp_path / "files", 5, 5)
    expected = tmp_path / "expected.json"
    expected.write_text(json.dumps([{"goal_index": 0, "instruction": ""}]))
    code, output = said("index", tmp_path / "files", tmp_path / "made", "--check", expected)
    assert (code, "1 goals agree" in output) == (0, True)
    expected.write_text(json.dumps([{"goal_index": 0, "instruction": "something else"}]))
    code, output = said("index", tmp_path / "files", tmp_path / "other", "--check", expected)
    assert (code, "goal 0 is" in output) == (2, True)
