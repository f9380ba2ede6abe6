"""Wrong plans as users write them: each ends with exit code 2 and one message that names line, field and fix.

The plans were written by somebody who had not seen the messages; the files beside this one hold them by kind.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from eval_client.cli.plans.plan_file import check
from tests.e2e.proctor import exits

VALIDATORS_WORDS = (
    "Extra inputs",
    "Value error",
    "Input should",
    "should have at least",
    "Field required",
    "valid string",
)
CLASSES = ("TaskDefinition", "RemoteTask", "AgentEntry", "function-")


def wrong_plans() -> Iterator[Any]:
    for file in sorted(Path(__file__).parent.glob("*.yaml")):
        for entry in yaml.load(file.read_text(encoding="utf-8"), yaml.CSafeLoader):
            yield pytest.param(entry, id=entry["id"])


def written(entry: dict[str, Any], folder: Path) -> None:
    for name, text in {"plan.yaml": entry["plan"], **entry.get("files", {})}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8", newline="")


@pytest.mark.smoke
@pytest.mark.parametrize("entry", list(wrong_plans()))
def test_a_wrong_plan_gets_one_message(entry: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(entry, tmp_path)
    monkeypatch.chdir(tmp_path)
    overrides = [f"--set={override}" for override in entry.get("set", ())]
    ended = CliRunner().invoke(check, ["plan.yaml", *overrides])
    assert ended.exit_code == 2, ended.output
    (message,) = ended.output.splitlines()
    if entry.get("line") is not None:
        assert message.startswith(f"Error: plan.yaml:{entry['line']}: ")
    for text in (entry.get("file", ""), *entry["mentions"]):
        assert text.lower() in message.lower()
    for text in (*entry.get("never", ()), *VALIDATORS_WORDS, *CLASSES):
        assert text not in message


@pytest.mark.parametrize("place", range(0, 180, 45))
def test_the_installed_command_refuses_it_too(place: int, tmp_path: Path) -> None:
    entry = list(wrong_plans())[place].values[0]
    written(entry, tmp_path)
    ended = exits(2, "run", "plan.yaml", *(f"--set={override}" for override in entry.get("set", ())), cwd=tmp_path)
    assert "Traceback" not in ended.stderr
    assert entry["mentions"][0].lower() in ended.stderr.lower()
    assert not (tmp_path / "runs").exists()
