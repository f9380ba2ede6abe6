"""Worlds given in Python: they are played in the client's process, and resumed there."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from proctor import (
    Action,
    Agent,
    Environment,
    Finish,
    FinishReason,
    Message,
    Observation,
    PlanError,
    RunInterrupted,
    Tool,
    evaluate,
    open_run,
)
from tests.e2e.proctor import environment
from tests.pace import slowly, until

THREADS: set[str] = set()
IN_NOTEBOOKS = "_repr_html_"
"""The method that notebooks show a value by."""


class AddUp(Environment):
    """Sums of two numbers; the score is the share of right answers in three."""

    highest: int = 3

    def samples(self) -> Sequence[str]:
        return [str(number) for number in range(self.highest)]

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        THREADS.add(f"{os.getpid()} {threading.get_native_id()}")
        right = 0
        for more in range(3):
            asked = Message(role="user", content=f"{sample}+{more}")
            action = await agent.act(Observation(messages=(asked,)))
            right += action.content == str(int(sample) + more)
        return Finish(reason=FinishReason.COMPLETED, score=right / 3)


def adds(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    left, plus, right = messages[-1].content.partition("+")
    return str(int(left) + int(right)) if plus else "ACTION: look"


def test_a_world_given_in_python_is_played_in_this_process_beside_others(tmp_path: Path) -> None:
    THREADS.clear()
    tasks: list[Any] = [AddUp(), "alfworld", {"name": "toys", "environment": "alfworld"}]
    run = evaluate(agents=adds, tasks=tasks, limit=2, overrides={"limits.trial.turns": 4}, folder=tmp_path)
    rows = {row["task"]: (row["value"], row["scored"]) for row in run.scores()}
    assert rows == {"add_up": (1.0, 2), "alfworld": (0.0, 2), "toys": (0.0, 2)}
    assert {each.split()[0] for each in THREADS} == {str(os.getpid())}
    assert not list((tmp_path / run.name / "logs").glob("worker*")), "no worker was started"
    named = evaluate(agents=adds, tasks={"sums": AddUp(highest=5)}, folder=tmp_path)
    assert [(row["task"], row["planned"], row["value"]) for row in named.scores()] == [("sums", 5, 1.0)]
    shown = getattr(named, IN_NOTEBOOKS)()
    assert f"<p>{named.name}: finished</p>" in shown
    assert "<td>adds</td><td>sums</td><td>mean_score</td><td>1.000</td>" in shown


def test_a_world_given_in_python_is_played_on_by_its_object_alone(tmp_path: Path) -> None:
    broken = threading.Event()

    def sometimes(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        if not broken.is_set():
            raise ValueError("not yet")
        return adds(messages, tools)

    run = evaluate(agents=sometimes, tasks=AddUp(), folder=tmp_path, name="r")
    assert {trial.score for trial in run.trials()} == {None}
    broken.set()
    with pytest.raises(PlanError, match="task add_up: its data"):
        open_run("r", folder=tmp_path).resume(sometimes, [_Harder()])
    with pytest.raises(PlanError, match="highest"):
        open_run("r", folder=tmp_path).resume(sometimes, [AddUp(highest=4)])
    assert [row["value"] for row in open_run("r", folder=tmp_path).resume(sometimes, AddUp()).scores()] == [1.0]


class _Harder(AddUp):
    revision = 2


_Harder.__name__, _Harder.__qualname__ = AddUp.__name__, AddUp.__qualname__


def test_what_can_not_be_a_task_is_said(tmp_path: Path) -> None:
    class Odd(AddUp):
        kept: Any = None

    with pytest.raises(PlanError, match=r"Odd: .*values that JSON can hold"):
        evaluate(agents=adds, tasks=[Odd(kept=threading.Lock())], folder=tmp_path)
    with pytest.raises(PlanError, match="add_up"):
        evaluate(agents=adds, tasks=[AddUp(), AddUp(highest=2)], folder=tmp_path)


PROGRAM = """\
import sys, time
from pathlib import Path
from proctor import evaluate, open_run
from tests.e2e.python.test_own_worlds import AddUp, adds

def counts(messages, tools):
    with Path("calls").open("a") as file:
        file.write(messages[-1].content + "\\n")
    time.sleep(0.05)
    return adds(messages, tools)

if sys.argv[1] == "evaluate":
    run = evaluate(agents=counts, tasks=[AddUp(highest=20)], overrides={"agents.counts.concurrency": 2}, name="r")
else:
    run = open_run("r").resume(counts, [AddUp(highest=20)])
print([row["value"] for row in run.scores()])
"""


def test_a_client_that_is_killed_with_its_world_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    full = environment(PYTHONPATH=str(Path(__file__).parents[3]))
    calls = tmp_path / "calls"
    command = [sys.executable, "program.py"]
    with subprocess.Popen([*command, "evaluate"], cwd=tmp_path, env=full) as killed:
        until(lambda: calls.exists() and len(calls.read_text().split()) >= 15)
        killed.send_signal(signal.SIGKILL)
    resumed = subprocess.run([*command, "resume"], cwd=tmp_path, env=full, capture_output=True, text=True, check=False)
    assert resumed.stdout.strip() == "[1.0]", resumed.stderr
    asked = calls.read_text().split()
    assert 60 <= len(asked) <= 60 + 2, "what was in flight is asked again"


def test_a_worlds_fault_and_a_plan_for_other_servers_are_said(tmp_path: Path) -> None:
    class Broken(AddUp):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            raise KeyError(f"no {sample}")

    (trial,) = evaluate(agents=adds, tasks=Broken(), limit=1, folder=tmp_path).trials()
    assert trial.finish is not None
    assert trial.finish.detail["cause"] == "KeyError: 'no 0'"
    assert "<th>cause</th><td>KeyError: &#x27;no 0&#x27;</td>" in getattr(trial.finish, IN_NOTEBOOKS)()
    elsewhere: Mapping[str, Any] = {"controller": "http://127.0.0.1:9"}
    with pytest.raises(PlanError, match="played at http://127"):
        evaluate(elsewhere, agents=adds, tasks=[AddUp()], folder=tmp_path)
    with pytest.raises((PlanError, RunInterrupted)):
        evaluate(agents=cast(Any, 3), tasks=[AddUp()], folder=tmp_path)


def test_an_action_may_answer_too(tmp_path: Path) -> None:
    async def acts(messages: Sequence[Message], tools: Sequence[Tool]) -> Action:
        return Action(content=adds(messages, tools))

    assert [row["value"] for row in evaluate(agents=acts, tasks=[AddUp()], folder=tmp_path).scores()] == [1.0]


class Wide(AddUp):
    highest: int = 200
    capacity = 200


def test_a_plain_function_is_called_as_often_at_once_as_its_concurrency_says(tmp_path: Path) -> None:
    many = threading.Barrier(200, timeout=slowly(60.0))

    def waits_for_all(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        many.wait()
        return adds(messages, tools)

    overrides = {"agents.waits_for_all.concurrency": 200}
    run = evaluate(agents=waits_for_all, tasks=Wide(), overrides=overrides, folder=tmp_path)
    assert [(row["scored"], row["value"]) for row in run.scores()] == [(200, 1.0)]
