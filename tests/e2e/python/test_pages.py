"""The Python of the documentation runs as written, in a script and in a notebook, and passes type checks."""

import ast
import asyncio
import inspect
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from tests.e2e.preloaded import python
from tests.e2e.proctor import environment
from tests.pace import slowly
from tests.support import ROOT

SNIPPET = re.compile(r"```python\n(.*?)```", re.DOTALL)
NOTEBOOK = ROOT / "examples/notebook.py"


def snippets(page: str) -> str:
    found = SNIPPET.findall((ROOT / page).read_text(encoding="utf-8"))
    assert found
    return "\n".join(found)


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/python.md"])
def test_the_snippets_of_a_page_run_as_written(page: str, tmp_path: Path) -> None:
    pipe, variables = subprocess.PIPE, environment()
    with python("-c", snippets(page), cwd=tmp_path, environment=variables, stdout=pipe, stderr=pipe) as running:
        _, errors = running.communicate(timeout=slowly(300))
    assert running.returncode == 0, errors


async def test_the_notebook_runs_cell_by_cell_where_a_loop_runs_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As IPython does it: each cell is compiled by itself and executed within a running event loop."""
    monkeypatch.chdir(tmp_path)
    cells = re.split(r"^# %%.*\n", NOTEBOOK.read_text(encoding="utf-8"), flags=re.MULTILINE)
    names: dict[str, object] = {"__name__": "__main__"}
    for cell in cells:
        code = compile(cell, str(NOTEBOOK), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        answer = types.FunctionType(code, names)()
        if inspect.iscoroutine(answer):
            await answer
        await asyncio.sleep(0)
    output = capsys.readouterr().out
    assert "reference  success_rate 1.00 (2 of 2 scored)" in output
    assert "own-00000 None the agent's function raised KeyError: 'the cupboard'" in output


USER = """
from collections.abc import Sequence

from proctor import Action, Agent, Message, Observation, Run, Tool, ToolCall, aevaluate, evaluate, open_run, play


class Stateful:
    async def __call__(self, messages: Sequence[Message], tools: Sequence[Tool]) -> Action:
        return Action(content="", tool_calls=(ToolCall(id="1", name=tools[0].name, arguments="{}"),))


class Looks(Agent):
    async def act(self, observation: Observation) -> Action:
        return Action(content=observation.messages[-1].content)


def scores(run: Run) -> list[float | None]:
    assert all(turn.action is None or turn.action.content for turn in run.turns())
    return [trial.score for trial in run.trials()]


async def main() -> None:
    both = await aevaluate({"tasks": [{"name": "db", "environment": "db"}]}, agents=Stateful())
    print(both.summary("db").metrics["compat"] + 1, both.report().splitlines(), both.resume(Stateful()).state)
    print(evaluate("plan.yaml", overrides={"limits.run.tokens": 100_000}, folder="runs").scores()[0]["value"])
    print(play("alfworld", Looks(), sample="own-00000", seed=0).score, scores(open_run()))
"""
MISTAKES = {
    'play("alfworld", 3)': "arg-type",
    'evaluate(agents=3, tasks=["db"])': "arg-type",
    'evaluate(agents="naive", tasks=["db"]).summary("db").mean': "attr-defined",
    'open_run("latest").trials().score': "attr-defined",
    'len(open_run("latest").summary("db").primary + 1)': "operator",
}
"""Wrong uses of the package, and what a type checker says of each."""
CHECKS = """
[mypy]
strict = True
[mypy-fastapi.*,httpx.*,rich.*,sqlalchemy.*,starlette.*,uvicorn.*]
follow_imports = skip
"""
"""Packages that no public name of ours has in its types are not read: they take two thirds of the time."""


def test_a_users_file_passes_strict_type_checks_and_mistakes_do_not(tmp_path: Path) -> None:
    good = {"pages.py": snippets("docs/how-to/python.md"), "notebook.py": NOTEBOOK.read_text(), "user.py": USER}
    wrong = ["from proctor import evaluate, open_run, play", *MISTAKES]
    for name, text in {**good, "wrong.py": "\n".join(wrong)}.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "mypy.ini").write_text(CHECKS)
    files = [str(tmp_path / name) for name in (*good, "wrong.py")]
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--config-file=mypy.ini", *files]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = re.findall(r"^(\S+?):(\d+): error: .*\[(.*)\]$", done.stdout, re.MULTILINE)
    assert found == [("wrong.py", str(line), code) for line, code in enumerate(MISTAKES.values(), 2)], done.stdout
