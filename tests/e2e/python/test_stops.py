"""Runs from Python that are killed or interrupted, and go on."""

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import proctor
from proctor import Message, PlanError, Tool, open_run
from tests.e2e.preloaded import python
from tests.e2e.scripted import ScriptedEndpoint
from tests.pace import until
from tests.support import ROOT

KILLED = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's child ignores it
from proctor import evaluate
def slow(messages, tools):
    os.write(1, b"called\\n")
    os.read(0, 1)
    return "ACTION: look"
evaluate(agents=slow, tasks=["alfworld"], limit=3, overrides={"limits.trial.turns": 4}, folder=sys.argv[1], name="r")
"""
"""Its agent gives as many answers as characters are typed, and all of them at the end of its standard input."""


def _python(text: str, folder: Path) -> "subprocess.Popen[str]":
    return python("-c", text, str(folder), cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def begin(folder: Path) -> "subprocess.Popen[str]":
    """A run under way: two of its calls have got their answers, three have not."""
    running = _python(KILLED, folder)
    assert running.stdin is not None
    assert running.stdout is not None
    running.stdin.write("..")
    running.stdin.flush()
    for _ in range(5):
        assert running.stdout.readline() == "called\n"
    return running


def test_a_run_whose_process_was_killed_goes_on_and_pays_nothing_twice(tmp_path: Path) -> None:
    with begin(tmp_path) as killed:
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
    one_at_a_time = KILLED.replace('turns": 4', 'turns": 4, "agents.slow.concurrency": 1')
    text = one_at_a_time.replace("evaluate(agents", "from proctor import RunInterrupted\ntry: evaluate(agents")
    text += "except RunInterrupted as stopped: print(stopped, stopped.run.state)\n"
    output = _interrupted(text, tmp_path)
    assert "draining" in output
    assert "interrupted; go on with: proctor.open_run" in output
    assert output.endswith("interrupted\n")


IN_A_NOTEBOOK = """\
import asyncio, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from proctor import RunInterrupted, evaluate, play
def slow(messages, tools):
    os.write(1, b"called\\n")
    sys.stdin.read()
    return "ACTION: look"
async def cell():
    try:
        {call}
    except RunInterrupted as stopped:
        print(stopped.run.state, *(trial.score for trial in stopped.run.trials()))
    except KeyboardInterrupt:
        print("interrupted")
asyncio.new_event_loop().run_until_complete(cell())
"""


def test_ctrl_c_in_a_cell_drains_while_the_notebooks_loop_runs(tmp_path: Path) -> None:
    """The kernel's loop runs and Ctrl-C raises KeyboardInterrupt in the cell, as in Jupyter."""
    call = "evaluate(agents=slow, tasks=['alfworld'], overrides={'limits.trial.turns': 2}, folder=sys.argv[1])"
    output = _interrupted(IN_A_NOTEBOOK.format(call=call), tmp_path)
    assert "draining" in output
    (ended,) = (line.split() for line in output.splitlines() if line.startswith("interrupted"))
    assert "0.0" in ended, "trials under way were played to their end"
    assert "None" in ended, "no other was begun"


OF_A_SESSION = """\
import asyncio, signal, sys
from contextlib import asynccontextmanager
signal.signal(signal.SIGINT, signal.default_int_handler)
from proctor import play, registry
class World(registry.load("alfworld")):
    @asynccontextmanager
    async def lifespan(self):
        try:
            async with super().lifespan():
                yield
        finally:
            await asyncio.sleep(0.3)
            print("released", flush=True)
def slow(messages, tools):
    print("called", flush=True)
    sys.stdin.read()
    return "ACTION: look"
try:
    play(World(), slow)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_ends_a_session_that_is_played_and_releases_what_it_holds(tmp_path: Path) -> None:
    """It does not wait for the agent's answer, which comes after all is released."""
    with _python(OF_A_SESSION, tmp_path) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stdout.readline() == "called\n"
        running.send_signal(signal.SIGINT)
        assert running.stdout.readline() == "released\n"
        running.stdin.close()
        assert running.stdout.read() == "interrupted\n"


def _interrupted(text: str, folder: Path) -> str:
    """What a program prints after its first call of an agent, when Ctrl-C comes, and then the agents' answers."""
    with _python(text, folder) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stdout.readline() == "called\n"
        running.send_signal(signal.SIGINT)
        running.stdin.close()
        return running.stdout.read()


OF_A_PLAN = """\
import sys
from proctor import evaluate
model = {{"name": "model", "model": "scripted", "endpoint": "mine"}}
plan = {{"endpoints": [{{"name": "mine", "base_url": "{url}"}}], "agents": [model]}}
evaluate(plan, tasks=["db"], limit=3, folder=sys.argv[1], name="r")
"""


def test_a_killed_run_of_a_plan_goes_on_without_being_told_anything(tmp_path: Path, endpoint: ScriptedEndpoint) -> None:
    endpoint.always = True
    with _python(OF_A_PLAN.format(url=endpoint.url), tmp_path) as killed:
        until(lambda: bool(endpoint.requests))
        killed.kill()
    endpoint.hang_up()
    left = open_run("r", folder=tmp_path)
    assert [trial.score for trial in left.trials()] == [None] * 3
    until(lambda: _free(left))
    run = left.resume()
    assert (run.state, run.scores()[0]["scored"]) == ("finished", 3)
