"""The environment as configured, its function calls, its checks, and the metrics of many sessions."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from environments.operating_system.dataset import load
from environments.operating_system.environment import SAMPLES, OperatingSystem
from environments.operating_system.functions import toolset
from environments.operating_system.reply import MAX_ANSWER_BYTES, Commit, Invalid
from environments.operating_system.scoring import CHECKERS, _holds
from environments.operating_system.tampering import named_by_checks, suspects
from proctor.environment import Agent
from proctor.sandbox.base import ENVIRONMENT, Change
from proctor.tools import CallReader, UnreadableCall
from proctor.types import Action, Observation
from tests.support import SHARED_DATA
from tests.tool_calls import calls


class Nobody(Agent):
    """An agent that is never asked."""

    async def act(self, observation: Observation) -> Action:
        raise AssertionError("asked")


def own(folder: Path, answer: str = "1") -> OperatingSystem:
    folder.mkdir(exist_ok=True)
    (folder / "dev.json").write_text(json.dumps([{"description": "Why?", "evaluation": {"match": answer}}]))
    return OperatingSystem(data=folder / "dev.json")


def test_the_shipped_samples_have_every_kind_of_script() -> None:
    records = OperatingSystem().dataset.records.values()
    assert len(records) >= 16
    assert {record.kind for record in records} == {"match", "check"}
    assert any(record.start for record in records)
    languages = {script.language for record in records for script in (*record.init, *record.checks) if script}
    assert languages == {"bash", "python"}
    assert any(None not in record.checks for record in records if record.checks)
    assert OperatingSystem().dataset.warnings == ()


def test_namespaces_are_for_trusted_agents_only() -> None:
    assert [OperatingSystem(engine=engine).trusted_agents_only() for engine in ("docker", "namespace")] == [False, True]


def test_an_unknown_sample_is_told_with_what_ids_look_like(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no sample 'x'; ids look like dev-dev-00000"):
        own(tmp_path).reference("x")


async def test_playing_needs_the_lifespan(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="lifespan"):
        await own(tmp_path).play("dev-dev-00000", Nobody())


def test_no_shipped_sample_has_its_work_watched() -> None:
    """What the examples of these samples change is named by them; the rest are programs of the system."""
    records = load(SAMPLES, None, "own").records.values()
    assert {path for record in records for path in named_by_checks(record) if path.startswith("/srv")} == set()


def read(name: str, arguments: str, strict: bool = False) -> object:
    """The action that a call is, None for one that can't be read."""
    reader = CallReader(toolset(thought_answers=not strict), strict=strict)
    action = reader.read(calls((name, arguments))).actions[0]
    return None if isinstance(action, UnreadableCall) else action


@pytest.mark.parametrize(("name", "argument"), [("answer_action", "answer"), ("finish_action", "thought")])
def test_an_answer_that_no_checker_can_get_is_invalid(name: str, argument: str) -> None:
    assert read(name, json.dumps({argument: "a\0b"})) == Invalid("invalid_action")
    longest = "x" * MAX_ANSWER_BYTES
    assert read(name, json.dumps({argument: longest})) == Commit(longest)
    assert not isinstance(read(name, json.dumps({argument: longest + "x"})), Commit)


PAIRS = [("5", "5\n"), (" 5 ", "05"), ("5", "6"), ("five", "5"), ("5.0", "5"), ("a\r\nb", "a\nb "), ("b", "abc")]
PAIRS += [("abc", "b"), ("", ""), ("8.0K", "8.0K"), ("8K", "8192"), ("1MB", "1024KB"), ("1G", "1024M"), ("8k", "8192")]
PAIRS += [("1TB", "1024GB"), ("7B", "7"), ("7Byte", "7")]


@pytest.mark.shared
@pytest.mark.parametrize("name", sorted(CHECKERS))
def test_a_checker_outside_decides_as_the_published_script(name: str) -> None:
    script = SHARED_DATA / "os/scripts/dev/check" / f"{name}.py"
    for given, expected in PAIRS:
        ran = subprocess.run([sys.executable, str(script), given, expected], stderr=subprocess.DEVNULL, check=False)
        assert _holds(CHECKERS[name], given, expected) == (ran.returncode == 0), (given, expected)


@pytest.mark.parametrize("change", [Change.CHANGED, Change.DELETED])
def test_libraries_in_the_home_of_the_sandbox_s_user_are_watched(change: Change) -> None:
    """The table of what is suspect has all paths but these, which begin with the home."""
    home = Path(ENVIRONMENT["HOME"])
    module = home / ".local/lib/python3.11/site-packages/usercustomize.py"
    for path in (module, *[each for each in module.parents if each.is_relative_to(home)]):
        assert suspects({str(path): change}) == [str(path)]
    assert suspects({str(module): Change.ADDED}) == [str(module)]
    assert suspects({str(home / "json.py"): Change.ADDED}) == []
