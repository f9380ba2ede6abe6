"""The original programs of AgentBench v0.2, where AGENTBENCH_V02 names a checkout of them.

AGENTBENCH_V02_PYTHON is an interpreter with their requirements. No package index has them, so everywhere else their
places are taken by doubles: `tests/unit/bridges/gateway/`, `tests/unit/bridges/worlds/`. These tests were
written by the captures and by reading the programs; they have not been run.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action
from proctor_bridges.worlds.agentbench_v02 import AgentBenchV02
from tests.e2e.proctor import TOKEN, server
from tests.e2e.scripted import listening
from tests.e2e.servers.test_foreign import Model
from tests.pace import slowly
from tests.support import SHARED_DATA, finished, free_port
from tests.unit.bridges.worlds.test_agentbench_v02 import scripted

CHECKOUT = os.environ.get("AGENTBENCH_V02", "")
PYTHON = os.environ.get("AGENTBENCH_V02_PYTHON", sys.executable)
TOY = SHARED_DATA / "interop" / "v02" / "toy_task.py"
LOOPBACK = """\
import runpy, sys, uvicorn
run = uvicorn.run
uvicorn.run = lambda *given, **named: run(*given, **{**named, "host": "127.0.0.1"})
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
"""Runs a module whose server listens at loopback alone."""
SERVED = """\
tasks:
  - {name: db, environment: db, parameters: {engine: sqlite}}
  - {name: card_game, environment: card_game}
"""

pytestmark = pytest.mark.skipif(not CHECKOUT, reason="AGENTBENCH_V02 names no checkout of AgentBench v0.2")


def variables(folder: Path) -> dict[str, str]:
    """With a stub for the one module of fschat that they import."""
    stub = folder / "fastchat" / "model"
    stub.mkdir(parents=True, exist_ok=True)
    for package in (folder / "fastchat", stub):
        (package / "__init__.py").touch()
    (stub / "model_adapter.py").write_text("def get_conversation_template(*given):\n    raise NotImplementedError\n")
    (folder / "toy_task.py").write_text(TOY.read_text())
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), CHECKOUT])}


def assign(folder: Path, address: str, model: Model, *tasks: str) -> dict[str, Path]:
    """Run the assigner over tasks to its end; task -> the folder of its results."""
    parameters = {
        "url": f"{model.url}/chat/completions",
        "headers": {"Content-Type": "application/json", "Authorization": "Bearer k"},
        "body": {"temperature": 0, "model": "m"},
        "prompter": {"name": "role_content_dict", "args": {"agent_role": "assistant"}},
        "return_format": "{response[choices][0][message][content]}",
    }
    client = "src.client.TaskClient"
    config = {
        "definition": {
            "task": {
                task: {"module": client, "parameters": {"name": task, "controller_address": address}} for task in tasks
            },
            "agent": {"m": {"module": "src.client.agents.HTTPAgent", "parameters": parameters}},
        },
        "concurrency": {"task": dict.fromkeys(tasks, 3), "agent": {"m": 3}},
        "assignments": [{"agent": ["m"], "task": list(tasks)}],
        "output": str(folder / "outputs"),
    }
    (folder / "assign.yaml").write_text(json.dumps(config))
    command = [PYTHON, "-m", "src.assigner", "--config", str(folder / "assign.yaml")]
    done = finished(command, cwd=CHECKOUT, env=variables(folder), timeout=slowly(600))
    assert done.returncode == 0, done.stderr[-4000:]
    return {task: folder / "outputs" / "m" / task for task in tasks}


@contextmanager
def program(folder: Path, module: str, *arguments: str, port: int) -> Iterator[None]:
    """A server of theirs at loopback, until it listens."""
    (folder / "loopback.py").write_text(LOOPBACK)
    command = [PYTHON, str(folder / "loopback.py"), module, *arguments, "--port", str(port)]
    with subprocess.Popen(command, cwd=CHECKOUT, env=variables(folder)) as process:
        try:
            listens(f"http://127.0.0.1:{port}/docs", process)
            yield
        finally:
            process.kill()


def listens(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + slowly(60)
    while time.monotonic() < until:
        assert process.poll() is None
        try:
            urllib.request.urlopen(url, timeout=slowly(5)).close()
        except urllib.error.URLError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"nothing answers at {url}")


def lines(path: Path) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_1_the_assigner_plays_our_tasks(tmp_path: Path) -> None:
    model = Model()
    (tmp_path / "tasks.yaml").write_text(SERVED)
    with (
        listening(model),
        server("serve", "--agentbench", "--tasks", "tasks.yaml", cwd=tmp_path) as gateway,
    ):
        address = f"{gateway.url}/t/{TOKEN}/agentbench/api"
        folders = assign(tmp_path, address, model, "db", "card_game")
    for task, folder in folders.items():
        overall, runs = json.loads((folder / "overall.json").read_text()), lines(folder / "runs.jsonl")
        assert overall["total"] == len(runs), task
        assert overall["custom"]["coverage"] == 1.0


@contextmanager
def toy_worker(folder: Path) -> Iterator[str]:
    """Their worker with the toy task; yields its address."""
    toy = {"toy-std": {"module": "toy_task.Toy", "parameters": {"name": "toy-std", "concurrency": 3}}}
    (folder / "toy.yaml").write_text(json.dumps(toy))
    port, nobody = free_port(), "http://127.0.0.1:9/api"
    options = ("--config", str(folder / "toy.yaml"), "--controller", nobody)
    with program(folder, "src.server.task_worker", "toy-std", *options, port=port):
        yield f"http://127.0.0.1:{port}/api"


@pytest.mark.shared
async def test_9_our_client_plays_their_worker(tmp_path: Path) -> None:
    with toy_worker(tmp_path) as address:
        world = AgentBenchV02(workers=(address,))
        async with world.lifespan():
            ends = {each: await play_to_finish(world, each, PolicyAgent(scripted)) for each in world.samples()}
            boom = await play_to_finish(world, "0", PolicyAgent(lambda *_: Action(content="boom")))
    scores = {sample: end.score for sample, end in ends.items()}
    assert scores == {"0": 1.0, "1": 0.0, "2": 1.0, "3": None, "four": 1.0, "5": 1.0}
    assert boom.score is None
