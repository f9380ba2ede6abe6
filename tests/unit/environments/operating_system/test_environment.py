"""The environment as configured, its function calls, its checks, and the metrics of many sessions."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from environments.operating_system.dataset import load
from environments.operating_system.environment import SAMPLES, OperatingSystem
from environments.operating_system.functions import toolset
from environments.operating_system.reply import MAX_ANSWER_BYTES, Bash, Commit, Invalid
from environments.operating_system.scoring import CHECKERS, _holds
from environments.operating_system.tampering import named_by_checks, suspects
from proctor.environment import Agent
from proctor.sandbox.base import ENVIRONMENT, Change
from proctor.tools import CallReader, UnreadableCall
from proctor.types import Action, Observation
from tests.support import SHARED_DATA
from tests.tool_calls import call, calls


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


def test_the_digest_follows_what_shapes_a_trial_and_not_where_it_lies(tmp_path: Path) -> None:
    digest = own(tmp_path / "a").digest()
    assert own(tmp_path / "b").digest() == digest
    assert own(tmp_path / "a", answer="2").digest() != digest
    here = tmp_path / "b/dev.json"
    assert OperatingSystem(data=here, command_limit_s=5).digest() != digest
    assert OperatingSystem(data=here, pool=5).digest() == digest
    assert OperatingSystem(data=here, network="bridge").digest() != digest


def test_only_the_published_data_on_docker_are_comparable(tmp_path: Path) -> None:
    published = own(tmp_path)
    assert "Proctor's own words" in str(published.not_comparable_because())
    assert "shipped" in str(OperatingSystem().not_comparable_because())
    assert "errata" in str(published.model_copy(update={"profile": "errata"}).not_comparable_because())
    assert "set on_init_error: fail" in str(
        published.model_copy(update={"on_init_error": "continue"}).not_comparable_because()
    )
    assert "'strict'" in str(published.model_copy(update={"profile": "strict"}).not_comparable_because())
    namespace = published.model_copy(update={"engine": "namespace"})
    assert "namespace" in str(namespace.not_comparable_because())
    assert (published.trusted_agents_only(), namespace.trusted_agents_only()) == (False, True)


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


@pytest.mark.parametrize("fields", [{"engine": "namespace"}, {"disk": "tmpfs"}])
def test_strict_needs_an_engine_that_sees_changes(fields: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="profile: strict needs engine: docker and a disk other than tmpfs"):
        OperatingSystem.model_validate({"profile": "strict", **fields})


def read(action: Action, *, strict: bool) -> object:
    return CallReader(toolset(thought_answers=not strict), strict=strict).read(action).actions[0]


def test_calls_are_the_actions_of_text_replies() -> None:
    assert read(call("bash_action", script="ls"), strict=True) == Bash("ls")
    assert read(call("bash_action", command="ls"), strict=False) == Bash("ls")
    assert read(call("answer_action", answer="4"), strict=True) == Commit("4")
    assert read(calls(("answer_action", '{"answer": 4}')), strict=True) == Commit("4")
    assert read(call("answer_action", answer=""), strict=True) == Commit("")


def test_the_thought_of_finish_action_is_the_answer_in_compat_only() -> None:
    assert read(call("finish_action", thought="42"), strict=False) == Commit("42")
    assert read(call("finish_action", thought="42"), strict=True) == Commit(None)


def test_a_finish_without_arguments_ends_the_session_in_every_profile() -> None:
    for strict in (True, False):
        assert read(call("finish_action"), strict=strict) == Commit(None)
        assert isinstance(read(call("answer_action"), strict=strict), UnreadableCall)
    assert read(call("finish_action", reason="done"), strict=True) == Commit(None)


def test_arguments_beside_the_declared_one_are_no_fault() -> None:
    both = calls(("bash_action", '{"script": "ls", "thought": "I look."}'))
    assert [read(both, strict=strict) for strict in (True, False)] == [Bash("ls")] * 2
    turned = calls(("bash_action", '{"thought": "I look.", "script": "ls"}'))
    assert [read(turned, strict=strict) for strict in (True, False)] == [Bash("ls"), Bash("I look.")]


@pytest.mark.parametrize("name", ["answer_action", "finish_action"])
def test_an_answer_that_no_checker_can_get_is_invalid(name: str) -> None:
    argument = name.replace("answer_action", "answer").replace("finish_action", "thought")
    assert read(call(name, **{argument: "a\0b"}), strict=False) == Invalid("invalid_action")
    longest = "x" * MAX_ANSWER_BYTES
    assert read(call(name, **{argument: longest}), strict=False) == Commit(longest)
    assert not isinstance(read(call(name, **{argument: longest + "x"}), strict=False), Commit)


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
