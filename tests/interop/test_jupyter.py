"""A Jupyter kernel plays the notebook of the examples, with pandas, and its stop button drains a run.

The counterpart `jupyter` has ipykernel, jupyter_client and pandas. The kernel gets Proctor and its libraries from this
interpreter.
"""

import json
import os
import sysconfig
from pathlib import Path

from tests.interop.counterparts import interpreter
from tests.pace import slowly
from tests.support import ROOT, finished

STOPPED = """\
# %%
import time
from proctor import RunInterrupted, aevaluate, evaluate, play
def slow(messages, tools):
    print("called", flush=True)
    time.sleep(0.2)
    return "ACTION: look"
# %%
try:
    evaluate(agents=slow, tasks=["alfworld"], overrides={"limits.trial.turns": 2})
except RunInterrupted as stopped:
    print(stopped.run.state, {trial.score for trial in stopped.run.trials()})
# %%
play("alfworld", slow)
# %%
run = await aevaluate(agents="naive", tasks=["alfworld"], limit=1)
print(run.state)
"""

DEFINED = """\
# %%
from proctor import Environment, Finish, FinishReason, Message, Observation, PlanError, aevaluate, open_run, play

class Sums(Environment):
    highest: int = 3

    def samples(self):
        return [str(number) for number in range(self.highest)]

    async def play(self, sample, agent, seed=0):
        asked = Message(role="user", content=f"{sample}+1")
        breakpoint()
        action = await agent.act(Observation(messages=(asked,)))
        print("played", sample)
        return Finish(reason=FinishReason.COMPLETED, score=float(action.content == str(int(sample) + 1)))

ONE = 1

def adds(messages, tools):
    return str(int(messages[-1].content.partition("+")[0]) + ONE)
"""
PLAYED = """\
# %%
await aevaluate(agents=adds, tasks=[Sums()], name="r")
# %%
play(Sums(), adds)
"""
RESUMED = """\
# %%
try:
    run = open_run("r").resume(adds, Sums())
except PlanError as error:
    print(error)
else:
    print(run.state)
"""


def in_a_kernel(file: Path, folder: Path) -> list[dict[str, str | None]]:
    """What each cell of the file printed and raised."""
    places = os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")])
    done = finished(
        [interpreter("jupyter"), str(ROOT / "tests/interop/drivers/jupyter.py"), str(file)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": places},
        timeout=slowly(300),
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_notebook_of_the_examples(tmp_path: Path) -> None:
    cells = in_a_kernel(ROOT / "examples/notebook.py", tmp_path)
    assert [cell["error"] for cell in cells] == [None] * len(cells)
    output = "".join(cell["output"] or "" for cell in cells)
    assert "reference  success_rate 1.00 (2 of 2 scored)" in output
    assert "reference  alfworld    1.0" in output, "the frame of pandas"


def test_the_stop_button_drains_a_run_and_ends_a_session(tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(STOPPED)
    _, run, session, after = in_a_kernel(tmp_path / "cells.py", tmp_path)
    assert run["error"] is None
    assert "draining" in (run["output"] or "")
    assert (run["output"] or "").splitlines()[-1] in {"interrupted {0.0, None}", "interrupted {None, 0.0}"}
    assert session["error"] == "KeyboardInterrupt"
    assert after == {"output": "finished\n", "tables": "", "error": None}


def test_a_notebook_plays_what_its_cells_define_and_shows_tables(tmp_path: Path) -> None:
    cells = [DEFINED, PLAYED, DEFINED, RESUMED, DEFINED.replace("ONE = 1", "ONE = 2"), RESUMED]
    (tmp_path / "cells.py").write_text("".join(cells))
    _, evaluated, played, _, again, _, changed = in_a_kernel(tmp_path / "cells.py", tmp_path)
    assert "<tr><td>adds</td><td>sums</td><td>mean_score</td><td>1.000</td>" in str(evaluated["tables"])
    told = [line for line in str(evaluated["output"]).splitlines() if line.startswith("played ")]
    assert sorted(told) == ["played 0", "played 1", "played 2"], "three play at once, in no order"
    said = "breakpoint() does not stop here, since a notebook has no terminal"
    assert [str(cell["output"]).count(said) for cell in (evaluated, played)] == [1, 0], "it is said once"
    assert "<tr><th>score</th><td>1.0</td></tr>" in str(played["tables"])
    assert str(again["output"]).endswith("finished\n"), "cells that are run again unchanged go on with the run"
    assert "agents.adds.function: ONE, its contents differs" in str(changed["output"])
