"""The Python interface: `from proctor import ...`."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

import proctor
from proctor import Action, Message, PlanError, Tool, aevaluate, assert_scores, evaluate, open_run, play
from tests.pace import slowly, until
from tests.support import ROOT

SHORT = {"limits.trial.turns": 2}


def look(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    return "ACTION: look"


def test_a_session_in_this_process() -> None:
    finish = play("alfworld", "reference")
    assert (finish.reason, finish.score) == ("completed", 1.0)
    seen: list[int] = []

    async def counts(messages: Sequence[Message], tools: Sequence[Tool]) -> Action:
        seen.append(len(messages))
        return Action(content="ACTION: look")

    sample = "own-00001"
    assert play("alfworld", counts, sample=sample).score == 0.0
    assert len(seen) > 3
    assert seen == [seen[0] + 2 * number for number in range(len(seen))], "it gets the whole conversation each time"


def test_what_cannot_be_played_is_said() -> None:
    for make, words in (
        (lambda: play("alfworld", "reference", sample="nowhere"), "sample: there is no 'nowhere'"),
        (lambda: play("alfworld", "wizard"), "agent: there is no 'wizard'"),
        (lambda: play("alfworlds", "reference"), "unknown environment 'alfworlds'"),
        (lambda: play("alfworld", "reference", max_steps="many"), "max_steps"),
        (lambda: evaluate(agents=look, tasks=["nothing"]), "nothing"),
        (lambda: evaluate({"agents": [{"name": "a", "builtin": "naive"}]}), "tasks"),
        (lambda: evaluate("nowhere.yaml"), "nowhere.yaml"),
        (lambda: open_run("never", folder="nowhere"), "never"),
    ):
        with pytest.raises(PlanError, match=re.escape(words)):
            make()


def test_a_function_is_evaluated_and_its_results_are_read(tmp_path: Path) -> None:
    run = evaluate(agents=[look, "reference"], tasks=["alfworld"], limit=2, overrides=SHORT, folder=tmp_path, name="r")
    assert run.state == "finished"
    rows = {row["agent"]: row for row in run.scores()}
    assert {(row["scored"], row["planned"]) for row in rows.values()} == {(2, 2)}
    assert rows["look"]["value"] == 0.0
    assert run.summary("alfworld", "look").metrics["requested"] == 2
    with pytest.raises(ValueError, match="look x alfworld"):
        run.summary("alfworld")
    trials, turns = list(run.trials()), list(run.turns())
    assert len(trials) == 4
    assert sum(trial.turns for trial in trials) == len(turns)
    said = {turn.action.content for turn in turns if turn.agent == "look" and turn.action is not None}
    assert said == {"ACTION: look"}
    assert "success_rate" in run.report()
    again = open_run("latest", folder=tmp_path)
    assert (again.name, again.scores()) == ("r", run.scores())
    with pytest.raises(AssertionError, match=r"own-00000: 0\.000"):
        assert_scores(run, "alfworld", agent="look", at_least=0.5)
    assert_scores(run, "alfworld", agent="look", at_least=0.0)
    with pytest.raises(PlanError, match="exists"):
        evaluate(agents=look, tasks=["alfworld"], limit=2, folder=tmp_path, name="r")


async def test_it_works_where_an_event_loop_runs_already(tmp_path: Path) -> None:
    run = evaluate(agents=look, tasks=["alfworld"], limit=1, overrides=SHORT, folder=tmp_path)
    also = await aevaluate(agents={"other": look}, tasks=["alfworld"], limit=1, overrides=SHORT, folder=tmp_path)
    assert [run.state, also.state] == ["finished", "finished"]
    assert also.scores()[0]["agent"] == "other"
    assert play("alfworld", "reference").score == 1.0


def test_two_at_once_do_not_mix(tmp_path: Path) -> None:
    def named(name: str) -> proctor.Run:
        def agent(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
            return f"ACTION: look {name}"

        return evaluate(agents={name: agent}, tasks=["alfworld"], limit=2, overrides=SHORT, folder=tmp_path, name=name)

    with ThreadPoolExecutor(2) as threads:
        runs = list(threads.map(named, ["one", "two"]))
    for run, name in zip(runs, ["one", "two"], strict=True):
        assert {turn.action and turn.action.content for turn in run.turns()} <= {f"ACTION: look {name}", None}
        assert run.state == "finished"


def test_a_function_that_raises_is_a_fault_with_what_it_said(tmp_path: Path) -> None:
    def raises(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        raise KeyError("the cupboard")

    run = evaluate(agents=raises, tasks=["alfworld"], limit=1, folder=tmp_path)
    (trial,) = run.trials()
    assert trial.score is None
    assert trial.finish is not None
    assert "raised KeyError: 'the cupboard'" in str(trial.finish.detail["cause"])
    with pytest.raises(AssertionError, match="1 of 1 trials without a score"):
        assert_scores(run, "alfworld", at_least=0.0)
    finish = play("alfworld", raises)
    assert (finish.reason, finish.score) == ("agent_error", None)
    assert "KeyError: 'the cupboard'" in str(finish.detail["cause"])
    wrong = play("alfworld", cast(Any, lambda messages, tools: 3))
    assert "returned int; return a text or an Action" in str(wrong.detail["cause"])


KILLED = """\
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's child ignores it
from proctor import evaluate
def slow(messages, tools):
    os.write(1, b"called\\n")
    time.sleep({wait})
    return "ACTION: look"
evaluate(agents=slow, tasks=["alfworld"], limit=3, overrides={{"limits.trial.turns": 4}}, folder=sys.argv[1], name="r")
"""


def _python(text: str, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", text, str(folder)], stdout=subprocess.PIPE, text=True, cwd=ROOT)


def begin(folder: Path, wait_s: float) -> "subprocess.Popen[str]":
    text = KILLED.format(wait=wait_s)
    running = _python(text, folder)
    assert running.stdout is not None
    for _ in range(5):
        assert running.stdout.readline() == "called\n"
    return running


def test_a_run_whose_process_was_killed_goes_on_and_pays_nothing_twice(tmp_path: Path) -> None:
    with begin(tmp_path, 0.2) as killed:
        killed.kill()
    calls: list[int] = []

    def slow(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        calls.append(1)
        return "ACTION: look"

    left = open_run("r", folder=tmp_path)
    kept = _answered(left)
    with pytest.raises(PlanError, match="slow"):
        left.resume()
    until(lambda: _free(left))
    run = left.resume(slow)
    assert run.state == "finished"
    assert kept > 0
    assert kept + len(calls) == _answered(run) == 12


def _answered(run: proctor.Run) -> int:
    return sum(turn.action is not None for turn in run.turns())


def _free(run: proctor.Run) -> bool:
    """Whether the servers of the killed process are gone, and the run can be worked on."""
    from eval_client.store.lock import is_worked_on

    return not is_worked_on(run.store)


def test_ctrl_c_drains_and_the_run_can_be_gone_on_with(tmp_path: Path) -> None:
    text = KILLED.format(wait=0.2).replace(
        "evaluate(agents", "from proctor import RunInterrupted\ntry: evaluate(agents"
    )
    text += "except RunInterrupted as stopped: print(stopped, stopped.run.state)\n"
    running = _python(text, tmp_path)
    with running:
        assert running.stdout is not None
        assert running.stdout.readline() == "called\n"
        running.send_signal(signal.SIGINT)
        output = running.stdout.read()
    assert "draining" in output
    assert "interrupted; go on with: proctor.open_run" in output
    assert output.endswith("interrupted\n")


def test_import_loads_nothing_but_the_package_itself() -> None:
    def loaded(code: str) -> set[str]:
        command = [sys.executable, "-c", f"{code}; import sys; print(' '.join(sys.modules))"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return set(done.stdout.split())

    assert loaded("import proctor") - loaded("pass") == {"proctor"}


def test_all_names_are_there_and_on_the_page() -> None:
    for name in proctor.__all__:
        assert getattr(proctor, name).__name__ if name != "Policy" else True
    assert sorted(proctor.__all__) == sorted(proctor._MODULE_OF) == dir(proctor)
    page = (ROOT / "docs/python.md").read_text()
    assert set(re.findall(r"^\| `(\w+)", page, re.MULTILINE)) == set(proctor.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        vars(proctor)["__getattr__"]("nothing")


SNIPPET = re.compile(r"```python\n(.*?)```", re.DOTALL)


def test_the_snippets_of_the_page_run_as_written(tmp_path: Path) -> None:
    page = (ROOT / "docs/python.md").read_text()
    text = "\n".join(SNIPPET.findall(page))
    assert text
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=slowly(300),
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_users_file_passes_strict_type_checks(tmp_path: Path) -> None:
    page = (ROOT / "docs/python.md").read_text()
    (tmp_path / "user.py").write_text("\n".join(SNIPPET.findall(page)))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(tmp_path / "user.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
