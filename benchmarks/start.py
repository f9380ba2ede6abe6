"""CPU that processes use to start, as a multiple of `python -c "import pydantic"`: their imports, and until they act.

Every process is measured in every round, between two imports of pydantic; a figure is the median of the ratios. All
bytecode is compiled beforehand.
"""

import itertools
import json
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from benchmarks import echo
from benchmarks.endpoint import REPLY
from benchmarks.measure import Figure, figure, main, median
from benchmarks.resume import asked, read_request
from benchmarks.world import CLI, World, world

ROUNDS = 9
SAMPLES = 10
WAIT_S = 60.0
TASK = "echo-8"


def measure(quick: bool) -> Iterator[Figure]:
    """Every process, a round after the other."""
    with world(samples=SAMPLES) as world_:
        servers = world_ if quick else replace(world_, environment=_compiled(world_))
        processes = _processes(servers)
        for used_s, _ in () if quick else processes.values():  # the first time compiles
            used_s()
        unit = partial(_import, servers, "pydantic")
        units = [unit()]
        ratios: dict[str, list[float]] = {name: [] for name in processes}
        for _ in range(1 if quick else ROUNDS):
            for name, (used_s, _) in processes.items():
                used = used_s()
                units.append(unit())
                ratios[name].append(2 * used / (units[-2] + units[-1]))
    yield figure("import pydantic", median(units) * 1000, "ms CPU")
    for name, (_, budget) in processes.items():
        yield figure(name, median(ratios[name]), "import pydantic", at_most=budget)


def _compiled(servers: World) -> dict[str, str]:
    """The environment of processes that keep their bytecode, as those of an installed package do."""
    kept = {name: value for name, value in servers.environment.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(servers.folder / "bytecode")}


def _processes(servers: World) -> dict[str, tuple[Callable[[], float], float | None]]:
    """By the name of their figure: what measures the CPU seconds of one, and the budget."""
    imports = partial(partial, _import, servers)
    runs = itertools.count()
    return {
        "worker: import": (imports("task_server.serve, task_server.worker.worker"), 5.0),
        "controller: import": (imports("task_server.serve, task_server.controller.controller"), None),
        "agent server: import": (imports("agent_server.serve"), 8.0),
        "client: import": (imports("eval_client.run.execute"), 6.0),
        "proctor --version": (partial(_ended, servers, [*CLI, "--version"]), None),
        "worker: to the first heartbeat": (partial(_worker, servers), 7.5),
        "agent server: to the first answer": (partial(_agent_server, servers), 12.0),
        "client: to the first turn": (lambda: _client(servers, f"run{next(runs)}"), 9.0),
    }


def _import(servers: World, modules: str) -> float:
    return _ended(servers, [sys.executable, "-c", f"import {modules}"])


def _ended(servers: World, command: Sequence[str]) -> float:
    """CPU seconds of a process that ends by itself."""
    with _start(servers, command) as process:
        return _cpu_s(process)


def _worker(servers: World) -> float:
    """CPU seconds of a worker until a controller gets its first heartbeat."""
    with _listener() as controller:
        tasks = ["--tasks", str(servers.folder / "tasks.yaml"), "--controller", _url(controller)]
        with _start(servers, [*CLI, "worker", *tasks]) as process, asked(controller):
            return _killed(process)


def _agent_server(servers: World) -> float:
    """CPU seconds of an agent server until it has answered for the first time."""
    messages = [{"role": "user", "content": echo.QUESTION}]
    body = {"model": "naive", "messages": messages, "metadata": {"task": TASK, "sample": "s0"}}
    tasks = ["--tasks", str(servers.folder / "tasks.yaml"), "--stop-with-stdin"]
    with _start(servers, [*CLI, "agents", *tasks]) as process:
        assert process.stdout is not None
        url = f"{process.stdout.readline().decode().strip()}/chat/completions"
        request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=WAIT_S) as reply:
            reply.read()
            return _killed(process)


def _client(servers: World, run: str) -> float:
    """CPU seconds of `proctor run` until its first turn is played: the endpoint is asked for the second time."""
    with _listener() as endpoint:
        agent = {"name": "a", "endpoint": f"{_url(endpoint)}/v1", "model": "echo", "concurrency": 1}
        plan = servers.folder / f"{run}.yaml"
        plan.write_text(
            json.dumps({"controller": servers.controller.url, "agents": [agent], "tasks": [{"name": TASK}]})
        )
        options = ["--quiet", "--name", run, "--output", str(servers.folder / "runs")]
        with _start(servers, [*CLI, "run", *options, str(plan)]) as process, asked(endpoint) as connection:
            connection.sendall(REPLY)
            read_request(connection)
            return _killed(process)


def _listener() -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(WAIT_S)
    return listener


def _url(listener: socket.socket) -> str:
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def _start(servers: World, command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env=servers.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def _killed(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a process up to now."""
    process.kill()
    return _cpu_s(process)


def _cpu_s(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a process up to its end, user and system, all its threads."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main(measure, __doc__)
