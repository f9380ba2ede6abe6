"""A Jupyter kernel plays the notebook of the examples, with pandas, and its stop button drains a run.

The counterpart `jupyter` has ipykernel, jupyter_client and pandas. The kernel gets Proctor and its libraries from this
interpreter.
"""

import json
import os
import subprocess
import sysconfig
from pathlib import Path

from tests.interop.counterparts import interpreter
from tests.pace import slowly
from tests.support import ROOT

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


def in_a_kernel(file: Path, folder: Path) -> list[dict[str, str | None]]:
    """What each cell of the file printed and raised."""
    places = os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")])
    done = subprocess.run(
        [interpreter("jupyter"), str(ROOT / "tests/interop/drivers/jupyter.py"), str(file)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
        timeout=slowly(300),
        check=False,
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
    assert after == {"output": "finished\n", "error": None}
