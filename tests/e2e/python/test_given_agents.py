"""What functions given in Python are made of is part of their runs: a resume with other ones is refused."""

import functools
import importlib
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor import PlanError, evaluate, open_run
from tests.e2e.proctor import environment, exits
from tests.support import ROOT

AGENT = """\
from pathlib import Path
from helper import said
HEAD = Path(__file__).with_name("head.txt").read_text()

def answer(messages, tools):
    return HEAD + said("look")

def other(messages, tools):
    return "ACTION: go"
"""
HELPER = "def said(word):\n    return word\n"
PLAN = """\
agents: [{name: mine, function: ./agent.py:answer}]
tasks: [{name: house, environment: alfworld}]
limits: {trial: {turns: 1}}
"""
HOUSE = {"name": "house", "environment": "alfworld"}
ONE_TURN = {"limits": {"trial": {"turns": 1}}}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A plan with an agent in a file, which has a module beside it; the working folder, and on the import path."""
    for name, text in {"agent.py": AGENT, "helper.py": HELPER, "head.txt": "ACTION: ", "plan.yaml": PLAN}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in ("agent", "helper"):
        sys.modules.pop(name, None)


def imported(name: str = "answer") -> Any:
    """A function of the agent's file as that is now."""
    for module in ("agent", "helper"):
        sys.modules.pop(module, None)
    importlib.invalidate_caches()
    return getattr(importlib.import_module("agent"), name)


def test_a_run_from_python_goes_on_with_the_same_file_alone_there_and_by_a_plan(folder: Path) -> None:
    evaluate(ONE_TURN, agents={"mine": imported()}, tasks=[HOUSE], limit=1, name="r")
    again = ("resume", "r", "--plan", "plan.yaml", "--retry=0", "-q")
    (folder / "agent.py").write_text(AGENT.replace("\ndef", "\n\n# a line more\ndef"))
    open_run("r").resume({"mine": imported()})
    assert "it is a Python function; play the run from Python" in exits(2, "resume", "r", cwd=folder).stderr
    exits(0, *again, cwd=folder)
    with pytest.raises(PlanError, match="function: 'answer' -> 'other'"):
        open_run("r").resume({"mine": imported("other")})
    (folder / "helper.py").write_text(HELPER.replace("return word", "return word.upper()"))
    with pytest.raises(PlanError, match=r"agents\.mine\.function: helper\.py, line 2 differs"):
        open_run("r").resume({"mine": imported()})
    assert "agents.mine.function: helper.py, line 2 differs" in exits(2, *again, cwd=folder).stderr


def test_a_run_of_a_plan_goes_on_in_python_with_the_function_that_is_given(folder: Path) -> None:
    exits(0, "run", "plan.yaml", "--name", "r", "--limit", "1", "-q", cwd=folder)
    open_run("r").resume({"mine": imported()})
    (folder / "elsewhere.py").write_text(AGENT.replace("HEAD +", "HEAD  +").replace("look", "inventory"))
    changed = importlib.import_module("elsewhere").answer
    with pytest.raises(PlanError, match=r"agents\.mine\.function: elsewhere\.py is new differs"):
        open_run("r").resume({"mine": changed})


SCRIPT = """\
import sys
from pathlib import Path
from proctor import PlanError, evaluate, open_run

WORD, HERE, CALLS = "look", Path(__file__).parent, iter("abc")

def said(messages):
    return f"ACTION: {WORD}"

def answer(messages, tools):
    assert HERE.is_dir()
    next(CALLS)
    return said(messages)

if sys.argv[1] == "begin":
    evaluate({"limits": {"trial": {"turns": 1}}}, agents=answer, tasks=["alfworld"], limit=1, name="r")
else:
    open_run("r").resume(answer)
"""


def script(text: str, word: str, name: str = "script.py") -> str:
    """The last line that a script with the text says as an error."""
    Path(name).write_text(text)
    full = environment(PYTHONPATH=str(ROOT))
    done = subprocess.run([sys.executable, name, word], env=full, capture_output=True, text=True, check=False)
    return "".join(line for line in done.stderr.splitlines() if "function" in line or "unchecked" in line)


def test_a_function_of_a_script_is_known_by_its_text_and_by_what_it_names(folder: Path) -> None:
    assert script(SCRIPT, "begin") == ""
    rest = f"{SCRIPT}# the rest may change\n".replace("import sys\n", "import sys\nimport json\n")
    assert script(rest, "resume", "other.py") == "agent answer: unchecked since the run began: CALLS, HERE"
    assert "agents.answer.function: WORD, its contents differs" in script(SCRIPT.replace('"look"', '"go"'), "resume")
    assert "agents.answer.function: said, line 2 differs" in script(SCRIPT.replace("ACTION: {", "A: {"), "resume")


def closure(word: str) -> Any:
    return lambda messages, tools: f"ACTION: {word}"


class Speaks:
    def __call__(self, messages: Any, tools: Any) -> str:
        return "ACTION: look"


def looks(messages: Any, tools: Any) -> str:
    return "ACTION: look"


def test_what_can_not_be_checked_is_said_and_not_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {"closed": closure("look"), "partial": functools.partial(looks), "made": Speaks(), "plain": looks}
    run = evaluate(ONE_TURN, agents=first, tasks=[HOUSE], limit=1, name="r", folder=tmp_path)
    with caplog.at_level(logging.WARNING):
        run.resume({**first, "closed": closure("go"), "made": Speaks()})
    said = [f"agent {name}: its function is unchecked since the run began" for name in ("closed", "partial", "made")]
    assert [line for line in caplog.messages if "unchecked" in line] == said
    assert all(run.report().count(line) == 1 for line in said)
    with pytest.raises(PlanError, match=r"agents\.plain\.function"):
        run.resume({**first, "plain": closure})


def test_a_run_of_an_earlier_version_goes_on_with_any_function(tmp_path: Path) -> None:
    run = evaluate(ONE_TURN, agents={"mine": looks}, tasks=[HOUSE], limit=1, name="r", folder=tmp_path)
    manifest = run.store.manifest()
    agents: Any = manifest.identity["agents"]
    earlier = {name: each for name, each in agents["mine"].items() if name not in {"function", "source"}}
    identity = {**manifest.identity, "agents": {"mine": earlier}}
    run.store.update_manifest(manifest.model_copy(update={"identity": identity}))
    assert run.resume({"mine": closure("go")}).state == "finished"
    assert "agent mine: its function is unchecked since the run began" in run.report()
