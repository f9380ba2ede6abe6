"""A machine for which wreq has no wheel: everything that Proctor needs can be had, and a run goes by httpx."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.proctor import TOKEN, rows
from tests.e2e.servers.test_spine import served
from tests.pace import slowly
from tests.support import ROOT, finished

UV = shutil.which("uv", path=f"{sys.prefix}/bin:{os.environ['PATH']}")
GONE = 'import sys\nsys.modules["wreq"] = None\n'
"""Run at the start of every process: importing wreq fails."""
AGENTS = """\
token_env: PROCTOR_TOKEN
tasks: [{name: puzzles, environment: ltp}]
agents: [{name: reference, kind: reference}]
"""
PLAN = """\
controller: "CONTROLLER"
endpoints: [{name: ours, base_url: "AGENTS", api_key_env: PROCTOR_TOKEN}]
agents: [{name: reference, endpoint: ours, metadata: true}]
tasks: [{name: puzzles}]
"""


def test_a_run_by_httpx(tmp_path: Path) -> None:
    """With a controller that has a token, which checks the addresses of workers' names."""
    (tmp_path / "sitecustomize.py").write_text(GONE)
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "PROCTOR_TOKEN": TOKEN}
    (tmp_path / "tasks.yaml").write_text("tasks: [{name: puzzles, environment: ltp, capacity: 2}]")
    (tmp_path / "agents.yaml").write_text(AGENTS)
    with (
        served(environment, tmp_path, "controller") as controller,
        served(environment, tmp_path, "worker", "--tasks=tasks.yaml", f"--controller={controller}", "--host=localhost"),
        served(environment, tmp_path, "agents", "--config=agents.yaml") as agents,
    ):
        (tmp_path / "plan.yaml").write_text(PLAN.replace("CONTROLLER", controller).replace("AGENTS", agents))
        command = [sys.executable, "-m", "eval_client.cli.main", "run", "plan.yaml", "--name=r", "-q", "--limit=4"]
        ended = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=slowly(120), check=False
        )
    assert ended.returncode == 0, ended.stderr
    assert [row["score"] for row in rows("r", tmp_path)] == [1.0] * 4


@pytest.mark.skipif(UV is None, reason="no uv to resolve with: pip install uv; in CI a skip fails")
@pytest.mark.parametrize("processor", ["x86_64", "aarch64"])
def test_wheels_can_be_had_for_older_linux(processor: str) -> None:
    """With glibc 2.28, as on machines of 2018; resolved, not installed."""
    index = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    ).stdout.strip()
    resolve = f"pip compile --quiet --only-binary=:all: --extra=all --python-platform={processor}-manylinux_2_28"
    found = finished(
        [str(UV), *resolve.split(), "pyproject.toml"],
        cwd=ROOT,
        env={**os.environ, **({"UV_DEFAULT_INDEX": index} if index else {})},
    )
    assert found.returncode == 0, found.stderr
    assert ("wreq==" in found.stdout) is (processor == "x86_64")
