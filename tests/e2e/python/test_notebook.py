"""A notebook, executed by a kernel as Jupyter's: worlds and agents of its cells, tables, and a cell run again."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

DEFINED = """\
from proctor import Environment, Finish, FinishReason, Message, Observation, PlanError, aevaluate, open_run, play

class Sums(Environment):
    highest: int = 3

    def samples(self):
        return [str(number) for number in range(self.highest)]

    async def play(self, sample, agent, seed=0):
        asked = Message(role="user", content=f"{sample}+1")
        action = await agent.act(Observation(messages=(asked,)))
        print("played", sample)
        return Finish(reason=FinishReason.COMPLETED, score=float(action.content == str(int(sample) + 1)))
"""
AGENT = """\
ONE = 1

def adds(messages, tools):
    return str(int(messages[-1].content.partition("+")[0]) + ONE)
"""
RESUMED = 'open_run("r").resume(adds, Sums())'
REFUSED = f"try:\n    {RESUMED}\nexcept PlanError as error:\n    print(error)"
CELLS = (
    DEFINED,
    AGENT,
    'await aevaluate(agents=adds, tasks=[Sums()], name="r")',
    "play(Sums(), adds)",
    f"{DEFINED}\n{AGENT}",
    RESUMED,
    AGENT.replace("ONE = 1", "ONE = 2"),
    REFUSED,
)


@pytest.fixture
def outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What each cell shows: its texts by their media types, and what it prints as `printed`."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    made: Any = nbformat.v4  # without types
    notebook = made.new_notebook(cells=[made.new_code_cell(text) for text in CELLS])
    NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = []
    for cell in notebook.cells:
        data = {kind: text for each in cell.outputs for kind, text in each.get("data", {}).items()}
        shown.append({**data, "printed": "".join(each.get("text", "") for each in cell.outputs)})
    return shown


@pytest.mark.thorough  # a kernel takes seconds to start
def test_a_notebook_plays_what_its_cells_define_and_shows_tables(outputs: list[dict[str, Any]]) -> None:
    _, _, evaluated, played, _, resumed, _, refused = outputs
    row = "<tr><td>adds</td><td>sums</td><td>mean_score</td><td>1.000</td>"
    assert "<p>r: finished</p>" in evaluated["text/html"]
    assert row in evaluated["text/html"]
    assert "played 0\nplayed 1\nplayed 2\n" in evaluated["printed"]
    assert "<tr><th>score</th><td>1.0</td></tr>" in played["text/html"]
    assert row in resumed["text/html"], "cells that are run again unchanged go on with the run"
    assert "agents.adds.function: ONE, its contents differs" in refused["printed"]
