"""A run with many finished trials: how long, with how much CPU and memory, until the first new turn and each question.

The commands are the real ones, each a process of its own, measured from its start.
"""

import json
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from benchmarks.echo import QUESTION, Echo
from benchmarks.endpoint import REPLY
from benchmarks.measure import Figure, cpu_s, figure, main, peak_mb
from benchmarks.world import CLI, QUICK_SAMPLES, SAMPLES, World, world
from eval_client.plan.load import load_plan
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.records import Manifest, TaskRecord, Trial, now_text
from eval_client.store.store import Store
from proctor.types import Action, Finish, FinishReason, Message, Observation
from task_server.wire.messages import Act

TURNS = 8
OWED = 10
BUDGETED = 100_000
TASK = f"echo-{TURNS}"


def measure(quick: bool) -> Iterator[Figure]:
    """Every size, in one set of servers."""
    samples = QUICK_SAMPLES if quick else SAMPLES
    with world(samples) as servers:
        for finished in (samples - OWED,) if quick else (10_000, BUDGETED):
            with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder, _endpoint() as endpoint:
                run = Path(folder) / "bench"
                plan = _plan(Path(folder), servers, endpoint)
                _fill(run, plan, finished, samples)
                yield from _size(servers, run, endpoint, finished)


def _size(servers: World, run: Path, endpoint: socket.socket, finished: int) -> Iterator[Figure]:
    case, budgeted = f"{finished:,} finished", finished == BUDGETED
    first_s, used_s, memory_mb = _first_new_turn(servers, run, endpoint)
    yield figure(f"{case}: to the first new turn", first_s, "s", at_most=2.0 if budgeted else None)
    yield figure(f"{case}: to the first new turn, CPU", used_s, "s CPU")
    yield figure(f"{case}: to the first new turn, peak", memory_mb, "MB", at_most=300.0 if budgeted else None)
    for command in ("status", "report", "transcript"):
        module, arguments = "eval_client.cli.main", [command, str(run)]
        if command == "transcript":
            module, arguments = "benchmarks.transcript", [str(run), str(finished // 2)]
        wall_s, used_s, memory_mb = _run(module, arguments, servers)
        budget = 1.0 if budgeted and command != "transcript" else None
        yield figure(f"{case}: {command}, CPU", used_s, "s CPU", at_most=budget)
        yield figure(f"{case}: {command}", wall_s, "s")
        yield figure(f"{case}: {command}, peak", memory_mb, "MB")


def _endpoint() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def _plan(folder: Path, servers: World, endpoint: socket.socket) -> Path:
    path = folder / "plan.yaml"
    url = f"http://127.0.0.1:{endpoint.getsockname()[1]}/v1"
    agent = {"name": "a", "endpoint": url, "model": "echo", "concurrency": 1}
    path.write_text(json.dumps({"controller": servers.controller.url, "agents": [agent], "tasks": [{"name": TASK}]}))
    return path


def _fill(run: Path, path: Path, finished: int, samples: int) -> None:
    """A store in which so many trials are finished, OWED are not begun, of a task with so many samples."""
    plan = load_plan(path)
    environment = Echo(turns=TURNS, count=samples)
    trials = [Trial(id=number, agent="a", task=TASK, sample=f"s{number}", epoch=0) for number in range(finished + OWED)]
    record = TaskRecord(environment="bench-echo", digest=environment.digest(), samples=len(trials))
    run.mkdir()
    store = Store(connect(sqlite_url(run)), run.name)
    store.create(
        Manifest(
            version=version("proctor"),
            plan_path=str(path),
            plan=plan.model_dump(mode="json"),
            identity=plan.identity(),
            tasks={TASK: record},
        ),
        trials,
    )
    store.set_state("interrupted")
    store.engine.dispose()
    with closing(sqlite3.connect(run / "run.sqlite")) as database:
        database.execute("PRAGMA synchronous=OFF")
        _insert(database, run.name, finished)
        database.commit()
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _insert(database: sqlite3.Connection, run: str, finished: int) -> None:
    observation = Observation(messages=(Message(role="user", content=QUESTION),))
    reply = Act(action=Action(content="I say: so be it, and so it is. " * 8)).model_dump_json()
    finish = Finish(reason=FinishReason.COMPLETED, score=1.0, metrics={"turns": 8.0}, detail={"why": "it ended"})
    text, digest, now = observation.model_dump_json(), observation.digest(), now_text()
    database.executemany(
        "UPDATE proctor_trial SET attempts=1, reason='completed', score=?, finish=?, turns=?, prompt_tokens=960, "
        "completion_tokens=480, seconds=4.5 WHERE run=? AND id=?",
        ((n % 7 / 7, finish.model_dump_json(), TURNS, run, n) for n in range(finished)),
    )
    database.executemany(
        "INSERT INTO proctor_attempt (run, trial, number, journal, session, outcome, cause, worker, started_at) "
        "VALUES (?, ?, 1, 0, ?, 'finished', NULL, 'worker', ?)",
        ((run, n, f"{n:032x}", now) for n in range(finished)),
    )
    database.executemany(
        "INSERT INTO proctor_turn (run, trial, journal, turn, digest, observation, reply, prompt_tokens, "
        "completion_tokens, model_seconds, tries) VALUES (?, ?, 0, ?, ?, ?, ?, 120, 60, 0.5, 1)",
        ((run, n, turn, digest, text, reply) for n in range(finished) for turn in range(1, TURNS + 1)),
    )


def _first_new_turn(servers: World, run: Path, endpoint: socket.socket) -> tuple[float, float, float]:
    """(seconds, CPU seconds, peak MB) of `proctor resume` until its first new turn was journalled and sent on.

    That is when the endpoint is asked for the second time: the session has then gone a turn further.
    """
    began = time.monotonic()
    with subprocess.Popen(
        [*CLI, "resume", "--quiet", "--trust-stored-plan", str(run)],
        env=servers.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as client:
        endpoint.settimeout(120)
        with asked(endpoint) as connection:
            connection.sendall(REPLY)
            read_request(connection)
            took = time.monotonic() - began, cpu_s(client.pid), peak_mb(client.pid)
            client.kill()
    return took


def asked(endpoint: socket.socket) -> socket.socket:
    """A connection with its first request read; one that only tried whether somebody listens is closed."""
    while True:
        connection, _ = endpoint.accept()
        try:
            read_request(connection)
        except EOFError:
            connection.close()
        else:
            return connection


def read_request(connection: socket.socket) -> None:
    """Read one HTTP request to its end. Raises EOFError where the connection ends before."""
    data = b""
    while b"\r\n\r\n" not in data:
        if not (more := connection.recv(65536)):
            raise EOFError
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split()[0])
    while len(body) < length:
        body += connection.recv(65536)


def _run(module: str, arguments: list[str], servers: World) -> tuple[float, float, float]:
    """(seconds, CPU seconds, peak MB) of `python -m module arguments` to its end."""
    began = time.monotonic()
    command = [sys.executable, "-m", "benchmarks.measured", module, *arguments]
    done = subprocess.run(command, env=servers.environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    used_s, kilobytes = done.stderr.split()[-2:]
    return time.monotonic() - began, float(used_s), int(kilobytes) * 1024 / 1e6


if __name__ == "__main__":
    main(measure, __doc__)
