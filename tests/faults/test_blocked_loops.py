"""Worlds that block their worker's event loop, for ever: they cost themselves alone, and no worker outlives its run."""

import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.e2e.proctor import begin, proctor, rows
from tests.e2e.run.test_interrupt import writing_to
from tests.faults.parts.farm import importable
from tests.faults.parts.world import BLOCKS
from tests.pace import slowly, until

PLAN = """\
name: blocked
agents: [{{name: reference, builtin: reference, concurrency: 8}}]
tasks:
  - name: ledger
    environment: ledger
    capacity: 8
    parameters: {{turns: 3, count: 8, blocks: s1, how: "{how}", ledger: {ledger}}}
limits: {{attempts: 2{limits}}}
"""
WORKER = "worker-1.log"


def planned(folder: Path, how: str, limits: str = "") -> dict[str, str]:
    """The plan's file, and the variables of a process that knows the world."""
    (folder / "ledger.jsonl").touch()
    (folder / "plan.yaml").write_text(PLAN.format(how=how, limits=limits, ledger=folder / "ledger.jsonl"))
    return importable(folder)


@pytest.mark.parametrize("how", BLOCKS)
def test_a_world_that_blocks_its_worker_costs_itself_alone(tmp_path: Path, how: str) -> None:
    """Of C code that holds the interpreter the worker knows nothing: it ends, and what it held is replayed."""
    known = planned(tmp_path, how, f", trial: {{seconds: {slowly(3):g}}}")
    client = begin("run", "plan.yaml", "--name", "r", cwd=tmp_path, **known)
    _, errors = client.communicate(timeout=slowly(60) + 240)
    assert client.returncode == 1, errors
    trials = {str(row["sample"]): row for row in rows("r", tmp_path)}
    unlike = {sample: row["cause"] for sample, row in trials.items() if row["score"] != 1}
    assert list(unlike) == ["s1"], unlike
    log = (tmp_path / "runs" / "r" / "logs" / WORKER).read_text()
    assert "tests/faults/parts/world.py" in log
    if how in ("sleep", "spin"):
        assert "blocked the event loop" in str(trials["s1"]["cause"])
        assert "sample s1 of task ledger has blocked the event loop" in log
        report = proctor("report", "r", cwd=tmp_path, **known).stdout
        assert "blocked the event loop" in report


def under_way(folder: Path, how: str) -> "tuple[subprocess.Popen[str], psutil.Process]":
    """A client, and its worker, which a world has blocked."""
    client = begin("run", "plan.yaml", "--name", "r", cwd=folder, **planned(folder, how))
    ledger = folder / "ledger.jsonl"
    blocked = '"event": "turn", "turn": 1'
    until(lambda: ledger.exists() and blocked in ledger.read_text())
    (worker,) = writing_to(folder, WORKER)
    return client, worker


@pytest.mark.parametrize(
    ("end", "how"),
    [(end, how) for end in ("kill -9", "three Ctrl-C") for how in ("sleep", "spin")] + [("three Ctrl-C", "stopped")],
)
def test_a_hung_worker_ends_with_its_run(tmp_path: Path, end: str, how: str) -> None:
    client, worker = under_way(tmp_path, "sleep" if how == "stopped" else how)
    if how == "stopped":
        worker.send_signal(signal.SIGSTOP)
    if end == "kill -9":
        client.kill()
    else:
        assert client.stderr is not None
        client.send_signal(signal.SIGINT)
        assert any("draining" in line for line in client.stderr)
        for _ in range(2):
            client.send_signal(signal.SIGINT)
    client.communicate(timeout=slowly(60) + 60)
    until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
