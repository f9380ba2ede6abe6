"""A run of a million trials: plan, start, status, report and resume, each a process of its own, in each database.

`python -m benchmarks.million [--samples N] [--store URL]`: 10 agents by 100 tasks by N samples (1,000), in SQLite and,
where its programs are here, in PostgreSQL; with `--store` in that database alone. To the first turn means until the
endpoint has been asked a second time: the session has then gone a turn further. Half is done before `status`.
"""

import json
import os
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from benchmarks.echo import NAME, QUESTION
from benchmarks.endpoint import REPLY
from benchmarks.measure import Figure, add_options, figure, peak_mb, print_figures
from benchmarks.resume import asked, read_request
from benchmarks.world import CLI, World, world
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.records import now_text
from eval_client.store.store import Store
from eval_client.store.tables import SETTLED, attempt_table, trial_table, turn_table
from proctor.types import Action, Finish, FinishReason, Message, Observation
from task_server.wire.messages import Act
from tests.database_servers import postgresql, program

AGENTS, TASKS, SAMPLES = 10, 100, 1_000
QUICK_TASKS, QUICK_SAMPLES = 10, 2
TURNS = 2
MOST_S, MOST_MB = 10.0, 300.0
RUN = "million"
WAIT_S = 600.0


class Used(NamedTuple):
    """What a process used until its first turn or line."""

    wall_s: float
    cpu_s: float
    peak_mb: float


class Measured(NamedTuple):
    """What every measurement needs."""

    servers: World
    endpoint: socket.socket
    plan: Path
    unit_s: float
    """CPU seconds of `import pydantic`."""


def main() -> None:
    """Print every figure as soon as it is measured."""
    parser = ArgumentParser(description=__doc__)
    add_options(parser)
    parser.add_argument("--samples", type=int, help="of each task")
    parser.add_argument("--store", metavar="URL", help="an empty database")
    options = parser.parse_args()
    tasks, samples = (QUICK_TASKS, QUICK_SAMPLES) if options.quick else (TASKS, SAMPLES)
    print_figures(measure(tasks, options.samples or samples, options.store), options.json)


def measure(count: int, samples: int, store: str | None) -> Iterator[Figure]:
    """So many tasks; one set of servers for all databases."""
    tasks = {f"echo-{number:03}": {"turns": TURNS} for number in range(count)}
    with world(samples, tasks) as servers, socket.create_server(("127.0.0.1", 0)) as endpoint:
        measured = Measured(
            servers, endpoint, _plan(servers, endpoint, list(tasks), samples), _cpu_of_pydantic(servers)
        )
        trials = f"{AGENTS * count * samples:,} trials"
        yield figure("import pydantic", measured.unit_s * 1000, "ms CPU")
        dry = _ended(servers, [*CLI, "run", "--dry-run", "--output", str(servers.folder), str(measured.plan)])
        yield from _figures(f"{trials}: plan", dry, measured.unit_s)
        if store is not None:
            yield from _database(measured, f"{trials}, {store.partition(':')[0]}", store)
            return
        yield from _database(measured, f"{trials}, SQLite", sqlite_url(servers.folder))
        if program("postgres") is not None:
            with postgresql() as server:
                yield from _database(measured, f"{trials}, PostgreSQL", server.url)


def _database(of: Measured, case: str, url: str) -> Iterator[Figure]:
    named = ["--store", url, "--output", str(of.servers.folder)]
    start = [*CLI, "run", "--quiet", "--name", RUN, *named, str(of.plan)]
    yield from _figures(f"{case}: start", _first_turn(of, start), of.unit_s)
    finish_half(Store(connect(url), RUN))
    for command in ("status", "report"):
        yield from _figures(f"{case}: {command}", _ended(of.servers, [*CLI, command, *named, RUN]), of.unit_s)
    resume = [*CLI, "resume", "--quiet", *named, RUN]
    yield from _figures(f"{case}: resume", _first_turn(of, resume), of.unit_s)


def _figures(case: str, used: Used, unit: float) -> Iterator[Figure]:
    yield figure(case, used.wall_s, "s", at_most=MOST_S)
    yield figure(f"{case}, CPU", used.cpu_s / unit, "import pydantic")
    yield figure(f"{case}, peak", used.peak_mb, "MB", at_most=MOST_MB)


def _plan(servers: World, endpoint: socket.socket, tasks: Sequence[str], samples: int) -> Path:
    url = f"http://127.0.0.1:{endpoint.getsockname()[1]}/v1"
    agents = [{"name": f"agent-{number}", "endpoint": url, "model": "echo"} for number in range(AGENTS)]
    of = {"environment": NAME, "parameters": {"turns": TURNS, "count": samples}}
    path = servers.folder / "plan.yaml"
    described = [{"name": name, **of} for name in tasks]
    path.write_text(json.dumps({"controller": servers.controller.url, "agents": agents, "tasks": described}))
    return path


def finish_half(store: Store) -> None:
    """Finish every second trial of a run whose client was killed, as if the run had been interrupted then."""
    t, now = trial_table.c, now_text()
    done = sa.and_(t.run == store.run, t.id % 2 == 0, t.attempts == 0)
    finish = Finish(reason=FinishReason.COMPLETED, score=1.0, detail={"evidence": "e" * 300}).model_dump_json()
    observation = Observation(messages=(Message(role="user", content=QUESTION),))
    reply = Act(action=Action(content="so be it")).model_dump_json()
    attempt = {"number": 1, "journal": 0, "session": "0" * 32, "outcome": "finished", "started_at": now}
    turn = {"journal": 0, "digest": observation.digest(), "observation": observation.model_dump_json(), "reply": reply}
    turn |= {"prompt_tokens": 120, "completion_tokens": 60, "model_seconds": 0.5, "tries": 1}
    final = {"attempts": 1, "holder": SETTLED, "reason": "completed", "finish": finish, "turns": TURNS, "seconds": 1.0}
    final |= {"prompt_tokens": 240, "completion_tokens": 120, "ended_at": now, "cut_answers": 0}
    with store.engine.begin() as connection:
        if store.engine.dialect.name == "sqlite":
            connection.execute(sa.text("PRAGMA synchronous=OFF"))
        connection.execute(_copied(attempt_table, attempt, done))
        for number in range(1, TURNS + 1):
            connection.execute(_copied(turn_table, {**turn, "turn": number}, done))
        connection.execute(trial_table.update().where(done).values(**final, score=(t.id % 7) / 7.0))
    store.take_over()
    store.set_state("interrupted")
    store.engine.dispose()


def _copied(table: sa.Table, values: dict[str, object], of: sa.ColumnElement[bool]) -> sa.Executable:
    """A row of a table for each trial."""
    columns = [sa.literal(value).label(name) for name, value in values.items()]
    return table.insert().from_select(
        ["run", "trial", *values], sa.select(trial_table.c.run, trial_table.c.id, *columns).where(of)
    )


def _cpu_of_pydantic(servers: World) -> float:
    return _ended(servers, [sys.executable, "-c", "import pydantic"]).cpu_s


def _first_turn(of: Measured, command: Sequence[str]) -> Used:
    """What a client used until its first turn was journalled and sent on."""
    endpoint, began = of.endpoint, time.monotonic()
    with subprocess.Popen(command, env=of.servers.environment, stdout=subprocess.DEVNULL) as client:
        endpoint.settimeout(WAIT_S)
        with asked(endpoint) as connection:
            connection.sendall(REPLY)
            read_request(connection)
            wall_s, most_mb = time.monotonic() - began, peak_mb(client.pid)
            client.kill()
            _, _, usage = os.wait4(client.pid, 0)
    _refuse_waiting(endpoint)
    return Used(wall_s, usage.ru_utime + usage.ru_stime, most_mb)


def _refuse_waiting(endpoint: socket.socket) -> None:
    """Close the connections of a client that is gone."""
    endpoint.settimeout(0.2)
    try:
        while True:
            endpoint.accept()[0].close()
    except TimeoutError:
        return


def _ended(servers: World, command: Sequence[str]) -> Used:
    """What a command used, from its start to its end."""
    began = time.monotonic()
    with subprocess.Popen(command, env=servers.environment, stdout=subprocess.DEVNULL) as process:
        most_mb = 0.0
        while os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
            with suppress(IndexError):  # it has just ended
                most_mb = max(most_mb, peak_mb(process.pid))
            time.sleep(0.02)
        wall_s = time.monotonic() - began
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: status {process.returncode}")
    return Used(wall_s, usage.ru_utime + usage.ru_stime, most_mb)


if __name__ == "__main__":
    main()
