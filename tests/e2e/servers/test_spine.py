"""The spine is what runs: start, attempt, turn, fault, resume and report of one run enter few other files of ours."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from benchmarks.size_of_code import PRODUCT, budgets, spine
from tests.e2e.proctor import TOKEN, scored
from tests.pace import slowly, until
from tests.support import ROOT

TRACER = """
import os, sys, threading
OURS, entered = {ours!r}, set()

def note(frame, event, _):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_filename not in entered:
        entered.add(code.co_filename)
        if code.co_filename.startswith(OURS):
            with open(os.path.join({folder!r}, str(os.getpid())), "a") as file:
                print(code.co_filename, file=file)

threading.setprofile(note)
sys.setprofile(note)
"""
"""Run at the start of every process: writes which of our files have a function that is called."""
AGENTS = """\
token_env: PROCTOR_TOKEN
tasks: [{name: puzzles, environment: ltp}]
agents: [{name: naive, kind: naive, latency_s: 0.2}]
"""
PLAN = """\
controller: "CONTROLLER"
endpoints:
  - {name: ours, base_url: "AGENTS", api_key_env: PROCTOR_TOKEN}
  - {name: gone, base_url: "http://127.0.0.1:1/v1", max_tries: 1, max_retry_s: 1}
agents:
  - {name: naive, endpoint: ours, metadata: true, concurrency: 2}
  - {name: lost, endpoint: gone, model: none}
tasks: [{name: puzzles}]
limits: {attempts: 1}
"""
WORLD = ("environments/", "agent_server/agents/")
"""What is played is no part of the spine."""


@contextmanager
def served(environment: dict[str, str], folder: Path, *command: str) -> Iterator[str]:
    """A server's base URL; it ends as its standard input does, and tells what it entered."""
    arguments = [sys.executable, "-m", "eval_client.cli.main", *command, "--stop-with-stdin"]
    pipe = subprocess.PIPE
    with subprocess.Popen(arguments, cwd=folder, env=environment, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.communicate(timeout=slowly(60))


def entered(folder: Path) -> set[str]:
    """The files of ours that processes of one run entered, each by its place in the checkout."""
    traces = folder / "traces"
    traces.mkdir()
    ours = tuple(f"{ROOT}/{each}/" for each in PRODUCT)
    (folder / "sitecustomize.py").write_text(TRACER.format(ours=ours, folder=str(traces)))
    environment = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT}", "PROCTOR_TOKEN": TOKEN}
    (folder / "tasks.yaml").write_text("tasks: [{name: puzzles, environment: ltp, capacity: 2}]")
    (folder / "agents.yaml").write_text(AGENTS)

    def client(*arguments: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen([sys.executable, "-m", "eval_client.cli.main", *arguments], cwd=folder, env=environment)

    with ExitStack() as stack:
        controller = stack.enter_context(served(environment, folder, "controller"))
        stack.enter_context(served(environment, folder, "worker", "--tasks", "tasks.yaml", "--controller", controller))
        agents = stack.enter_context(served(environment, folder, "agents", "--config", "agents.yaml"))
        (folder / "plan.yaml").write_text(PLAN.replace("CONTROLLER", controller).replace("AGENTS", agents))
        begun = client("run", "plan.yaml", "--name=r", "-q", "--limit=4")
        until(lambda: scored(folder, "r") >= 1)
        begun.send_signal(signal.SIGINT)
        begun.wait(timeout=slowly(60))
        assert client("resume", "r", "-q").wait(timeout=slowly(120)) in (1, 2)
        assert client("report", "r").wait(timeout=slowly(60)) == 0
    found = {line for trace in traces.iterdir() for line in trace.read_text().split("\n") if line}
    return {str(Path(path).relative_to(ROOT)) for path in found}


@pytest.mark.smoke
def test_one_run_enters_little_beside_the_spine(tmp_path: Path) -> None:
    listed = set(spine())
    beside = {
        path: (ROOT / path).read_text(encoding="utf-8").count("\n")
        for path in entered(tmp_path)
        if path not in listed and not path.startswith(WORLD)
    }
    shown = "\n".join(f"{lines:>5} {path}" for path, lines in sorted(beside.items(), key=lambda each: -each[1]))
    assert sum(beside.values()) <= budgets().beside_spine, shown
