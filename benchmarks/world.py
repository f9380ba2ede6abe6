"""The processes that a benchmark measures: an endpoint, a controller, a worker with echo tasks."""

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks import echo

CLI = [sys.executable, "-m", "eval_client.cli.main"]
CAPACITY = 2048
SAMPLES, QUICK_SAMPLES = 101_000, 1_000
"""Of each task."""
TOKEN = "of-a-benchmark"
AUTHORIZATION = {"Authorization": f"Bearer {TOKEN}"}
TASKS = {
    "echo-2": {"turns": 2},
    "echo-8": {"turns": 8},
    "echo-8-3": {"turns": 8, "functions": 3},
    "echo-8-7": {"turns": 8, "functions": 7},
    "echo-32-1k": {"turns": 32, "examples": 1},
    "echo-32-100k": {"turns": 32, "examples": 100},
}
"""task -> its parameters"""


@dataclass(frozen=True)
class Process:
    """A server under way."""

    url: str
    pid: int


@dataclass(frozen=True)
class World:
    """All servers, and a folder that goes with them."""

    folder: Path
    environment: dict[str, str]
    endpoint: Process
    controller: Process
    worker: Process
    tasks: Mapping[str, Mapping[str, Any]]
    """name -> its definition"""
    ca: Path | None = None
    """The authority of the endpoint's certificate, where it serves TLS."""

    def pids(self) -> dict[str, int]:
        """Of the servers, by part."""
        return {"controller": self.controller.pid, "worker": self.worker.pid, "endpoint": self.endpoint.pid}


@contextmanager
def world(samples: int = SAMPLES, tasks: Mapping[str, Mapping[str, int]] = TASKS, host: str = "") -> Iterator[World]:
    """The servers up, the worker's tasks ready; everything is gone afterwards. `host` is the address they listen at."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proctor-bench-")))
        environment = {**os.environ, "PYTHONPATH": echo.install(folder), "OPENAI_API_KEY": "none"}
        environment.pop("PROCTOR_TOKEN", None)
        at = ["--host", host] if host else []
        if host:
            environment["PROCTOR_TOKEN"] = TOKEN
        of = {"environment": echo.NAME, "capacity": CAPACITY}
        defined = [{"name": name, **of, "parameters": {**given, "count": samples}} for name, given in tasks.items()]
        (folder / "tasks.yaml").write_text(json.dumps({"tasks": defined}))

        def start(*command: str) -> Process:
            return stack.enter_context(process([*command], folder, environment))

        endpoint = start(sys.executable, "-m", "benchmarks.endpoint", *at[1:])
        controller = start(*CLI, "controller", "--stop-with-stdin", "--settle", "0", *at)
        served = ("--tasks", str(folder / "tasks.yaml"), "--controller", controller.url)
        worker = start(*CLI, "worker", "--stop-with-stdin", *served, *at)
        _await_tasks(controller.url)
        yield World(folder, environment, endpoint, controller, worker, {str(task["name"]): task for task in defined})


@contextmanager
def over_tls(servers: World) -> Iterator[World]:
    """The same servers, but with an endpoint that serves TLS."""
    cert, key = servers.folder / "cert.pem", servers.folder / "key.pem"
    make = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-subj", "/CN=endpoint", "-days", "1"]
    subject = ["-addext", "subjectAltName=IP:127.0.0.1", "-out", str(cert), "-keyout", str(key)]
    subprocess.run([*make, *subject], check=True, capture_output=True)
    command = [sys.executable, "-m", "benchmarks.endpoint", "127.0.0.1", str(cert), str(key)]
    with process(command, servers.folder, servers.environment) as endpoint:
        yield replace(servers, endpoint=endpoint, ca=cert)


def _await_tasks(controller: str) -> None:
    """Until the worker has reported."""
    version = "none"
    while True:
        asked = urllib.request.Request(f"{controller}/tasks?after={version}&wait_s=5", headers=AUTHORIZATION)
        with urllib.request.urlopen(asked, timeout=30) as reply:
            listed = json.load(reply)
        if listed["tasks"] and not any(task["waiting"] for task in listed["tasks"]):
            return
        version = listed["version"]


@contextmanager
def process(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[Process]:
    """A server that prints its URL and ends with its standard input; its log goes to the folder."""
    with (folder / "log").open("ab") as log:
        started = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    with started:
        assert started.stdout is not None
        assert started.stdin is not None
        url = started.stdout.readline().strip()
        if not url:
            raise SystemExit((folder / "log").read_text())
        try:
            yield Process(url, started.pid)
        finally:
            started.stdin.close()
            started.wait(60)
