"""What the tests rest on: deadlines by the pace of the machine, skips, and agents that fail a test."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from proctor.environment import Agent, Environment
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, FinishReason, Message, Observation, Tool
from tests import pace
from tests.conftest import ALLOWED_SKIPS
from tests.random_calls import fuzz
from tests.support import ROOT
from tests.tool_calls import CallingAgent, calls, replying


@pytest.mark.parametrize(
    ("measured", "processes", "processors", "busy", "expected"),
    [
        (1.0, 1, 2, 2.0, 1.0),
        (3.0, 1, 1, 2.0, 3.0),
        (0.5, 1, 2, 2.0, 1.0),
        (2.0, 2, 2, 2.0, 4.0),
        (2.0, 4, 16, 2.0, 2.0),
        (15.0, 2, 2, 2.0, pace.MOST),
        (2.0, 8, 2, 0.5, 4.0),
        (2.0, 4, 2, 0.25, 2.0),
    ],
)
def test_a_slow_machine_and_many_processes_stretch_deadlines_up_to_a_bound(
    measured: float, processes: int, processors: int, busy: float, expected: float
) -> None:
    assert pace.factor(measured, processes, processors, busy) == expected


def told(**variables: str) -> "subprocess.CompletedProcess[str]":
    """A fresh process's factor, and the variable that its children would get."""
    code = "import json, os; from tests import pace; print(json.dumps([pace.FACTOR, os.environ[pace.VARIABLE]]))"
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    surroundings.pop(pace.VARIABLE)
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=ROOT, env={**surroundings, **variables}, capture_output=True, text=True, check=False
    )


def test_the_pace_is_measured_once_and_handed_on() -> None:
    measured, handed_on = json.loads(told().stdout)
    assert 1 <= measured <= pace.MOST
    assert float(handed_on) == pytest.approx(measured, abs=0.01)
    assert json.loads(told(PROCTOR_TEST_PACE="7.5").stdout) == [7.5, "7.5"]


def test_a_pace_that_is_no_number_is_refused() -> None:
    assert "PROCTOR_TEST_PACE: 'slow' is not a number" in told(PROCTOR_TEST_PACE="slow").stderr


def test_a_cost_is_the_multiple_of_a_piece_and_the_best_try_counts() -> None:
    assert pace.cost_s(lambda: [pace.piece() for _ in range(5)], 25) == pytest.approx(5 * pace.PIECE_S, rel=0.4)
    meter = pace.Meter()
    for pieces in (40, 1):
        with meter:
            for _ in range(pieces):
                pace.piece()
    assert meter.cost_s < 10 * pace.PIECE_S


TWICE = """
import os, pytest
for ci in ("", "true"):
    os.environ["CI"] = ci
    code = pytest.main(["-p", "tests.conftest", "-p", "no:cacheprovider", "-rs", "test_one.py"])
    print(f"exit code {int(code)}")
"""
SKIPPED = "import pytest\n\ndef test_skipped():\n    pytest.skip('nothing to see')\n"


def test_a_skipped_test_fails_in_ci_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(SKIPPED)
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, "-c", TWICE], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    runs = done.stdout.split("exit code ")
    assert [run[:1] for run in runs[1:]] == ["0", "1"], done.stdout + done.stderr
    assert all("nothing to see" in run for run in runs[:2])


def test_the_allowed_ones_exist_and_have_a_reason() -> None:
    lines = [line for line in ALLOWED_SKIPS.read_text().splitlines() if not line.startswith("#")]
    for line in lines:
        node, _, reason = line.partition("#")
        file, _, name = node.strip().partition("::")
        assert f"def {name}(" in (ROOT / file).read_text()
        assert reason.strip()


class Careless(Environment):
    """Asks some times, and answers the first calls of a reply alone."""

    instructed: bool = True
    tools: tuple[Tool, ...] = (Tool(name="look", parameters={"type": "object", "properties": {}}),)
    turns: int = 2
    answers: int = 1

    @property
    def max_turns(self) -> int:
        return 2

    def samples(self) -> tuple[str, ...]:
        return ("one",)

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        messages: tuple[Message, ...] = (Message(role="system" if self.instructed else "user", content="Look."),)
        for _ in range(self.turns):
            action = await agent.act(Observation(messages=messages, tools=self.tools))
            answered = [Message(role="tool", content="-", tool_call_id=each.id) for each in action.tool_calls]
            messages = tuple(answered[: self.answers]) or (Message(role="user", content="-"),)
        return Finish(reason=FinishReason.COMPLETED, score=1.0)


async def test_a_call_without_an_answer_fails_the_test() -> None:
    finish = await play_to_finish(Careless(), "one", replying(calls(("look", {}))))
    assert finish.score == 1
    agent = CallingAgent(lambda _conversation, _history: calls(("look", {}), ("look", {})), "here")
    with pytest.raises(pytest.fail.Exception, match=r"^here, turn 2: the last calls have no answer"):
        await play_to_finish(Careless(), "one", agent)
    assert len(agent.seen) == 2


@pytest.mark.parametrize(
    ("environment", "why"),
    [
        (Careless(instructed=False), "turn 1: the history begins without instructions"),
        (Careless(tools=()), "turn 1: the observation offers no function"),
        (Careless(turns=3, answers=100), "turn 3: the session has more than 2 turns"),
    ],
)
async def test_a_session_that_breaks_a_rule_fails_the_test_and_is_named(environment: Careless, why: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=rf"Careless.*sample 'one', seed 0, {why}"):
        await fuzz(environment, "one", 0)


async def test_an_environment_that_raises_fails_the_test() -> None:
    class Raising(Careless):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            await agent.act(Observation(messages=(Message(role="system", content="Look."),), tools=self.tools))
            raise KeyError(sample)

    with pytest.raises(AssertionError, match=r"sample 'one', seed 3: .*KeyError"):
        await fuzz(Raising(), "one", 3)


async def test_equal_seeds_give_equal_calls() -> None:
    told = []

    class Overheard(Careless):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            action: Action = await agent.act(
                Observation(messages=(Message(role="system", content="Look."),), tools=self.tools)
            )
            told.append(action)
            return Finish(reason=FinishReason.COMPLETED, score=1.0)

    for seed in (1, 1, 2):
        await fuzz(Overheard(), "one", seed)
    assert told[0] == told[1] != told[2]
