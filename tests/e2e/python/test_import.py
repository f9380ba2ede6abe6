"""The package as it is imported: what it loads, what that costs, which names it has."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import proctor
from tests.support import ROOT


def loaded(code: str, *arguments: str, **variables: str) -> set[str]:
    """The names of the modules that an interpreter has after it ran the code."""
    command = [sys.executable, "-c", f"{code}\nimport sys; print(' '.join(sys.modules))", *arguments]
    settings = {**os.environ, **variables}
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_nothing_but_the_package_itself() -> None:
    assert loaded("import proctor") - loaded("pass") == {"proctor"}


@pytest.mark.parametrize(
    ("modules", "not_needed"),
    [
        (
            "task_server.serve, task_server.worker.worker",
            "aiohttp difflib proctor.llm.cached_model rich sqlalchemy",
        ),
        (
            "agent_server.serve",
            "aiohttp difflib proctor.llm.cached_model rich sqlalchemy",
        ),
        (
            "eval_client.run.execute",
            "aiohttp click difflib proctor_bridges.mcp.episode fastapi jinja2 proctor.llm.cached_model rich starlette "
            "uvicorn",
        ),
    ],
)
def test_a_process_imports_what_it_uses(modules: str, not_needed: str) -> None:
    assert loaded(f"import {modules}") & set(not_needed.split()) == set()


PLAN = """\
agents: [{name: m, model: m, endpoint: "http://127.0.0.1:9/v1"}]
tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]
"""


def test_a_quiet_run_imports_neither_rich_nor_sandboxes_before_it_plays(tmp_path: Path) -> None:
    (plan := tmp_path / "plan.yaml").write_text(PLAN)
    code = "import contextlib; from eval_client.cli.main import main\nwith contextlib.suppress(SystemExit): main()"
    broken_key = "of two\nlines"  # which the run refuses once its loop runs
    modules = loaded(code, "run", "-q", "--output", str(tmp_path), str(plan), OPENAI_API_KEY=broken_key)
    assert {"eval_client.run.execute", "uvloop"} <= modules
    assert modules & {"rich", "proctor.sandbox", "eval_client.report.report"} == set()


COLLECTED = """\
import contextlib, gc, sys
from eval_client.cli.main import main
begun = []
gc.collect()
gc.callbacks.append(lambda phase, _: begun.append(phase))
with contextlib.suppress(SystemExit):
    main()
sys.modules[f"collections={len(begun)},{gc.isenabled()},frozen={gc.get_freeze_count() > 0}"] = sys
"""


def test_nothing_is_collected_while_a_commands_modules_are_imported_and_they_are_frozen() -> None:
    modules = loaded(COLLECTED, "run", "--help")
    assert "eval_client.run.execute" in modules
    assert [name for name in modules if name.startswith("collections=")] == ["collections=0,True,frozen=True"]


def test_all_names_are_there_and_on_the_page() -> None:
    for name in proctor.__all__:
        assert getattr(proctor, name).__name__ if name != "Policy" else True
    assert sorted(proctor.__all__) == dir(proctor)
    page = (ROOT / "docs/how-to/python.md").read_text()
    assert set(re.findall(r"^\| `(\w+)", page, re.MULTILINE)) == set(proctor.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        vars(proctor)["__getattr__"]("nothing")


STARTS = 21


def cpu_s(code: str, bytecode: Path) -> float:
    """CPU of an interpreter that runs the code, from its start to its end."""
    settings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    settings |= {"PYTHONPYCACHEPREFIX": str(bytecode), "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", code], env=settings)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def test_import_costs_at_most_half_of_the_interpreters_start(tmp_path: Path) -> None:
    """The least of many starts by turns, since other work on the machine only adds."""
    cpu_s("import proctor", tmp_path)  # compiles
    turns = [(cpu_s("pass", tmp_path), cpu_s("import proctor", tmp_path)) for _ in range(STARTS)]
    bare, ours = (min(times) for times in zip(*turns, strict=True))
    assert ours <= 1.5 * bare
