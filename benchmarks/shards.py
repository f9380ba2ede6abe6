"""Several clients on one run in PostgreSQL: 50 ms, 200 in flight over all of them, 8 turns; throughput, and who works.

The same run by 1, 2 and 4 clients, one after the other, then by clients on machines of their own: network namespaces,
with a core each where there are enough. Measured is from the moment when all clients begin to play to the run's end.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from benchmarks import machines
from benchmarks.client import Load, Took
from benchmarks.measure import Figure, cpu_s, figure, main
from benchmarks.world import QUICK_SAMPLES, SAMPLES, World, world
from eval_client.plan.plan import Plan
from eval_client.store.tables import trial_table
from tests.database_servers import postgresql, program

TURNS, LATENCY_MS = 8, 50


class Size(NamedTuple):
    """Of a run."""

    trials: int
    in_flight: int

    def ideal(self) -> float:
        """Turns per second if nothing but the endpoint took time."""
        return self.in_flight / LATENCY_MS * 1000


FULL, QUICK = Size(3_000, 200), Size(75, 25)


def measure(quick: bool) -> Iterator[Figure]:
    """The run by each number of clients."""
    if program("postgres") is None:
        print("no postgres here; left out", file=sys.stderr)
        return
    counts = (2,) if quick else (1, 2, 4)
    size, samples = (QUICK, QUICK_SAMPLES) if quick else (FULL, SAMPLES)
    with world(samples) as servers, postgresql() as database:
        for shards in counts:
            yield from _case(servers, database.url, _names(shards, "client"), [()] * shards, size)
    if not machines.available():
        print("no root here, or no ip: machines of their own are left out", file=sys.stderr)
        return
    with (
        machines.machines(max(counts)) as others,
        world(samples, host=others.host) as servers,
        postgresql() as database,
    ):
        for shards in counts:
            case = _names(shards, "machine")
            yield from _case(servers, database.url, case, others.prefixes[:shards], size)


def _names(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count > 1)}"


def _case(servers: World, url: str, case: str, prefixes: Sequence[Sequence[str]], size: Size) -> Iterator[Figure]:
    """The run by one client for each prefix, which begins its command."""
    name = f"by-{len(prefixes)}-{time.monotonic_ns():x}"
    before: dict[str, float] = {}
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(_client(servers, url, name, size, prefixes[0], joins=False))]
        _await_ready(clients[0])
        clients += [
            stack.enter_context(_client(servers, url, name, size, prefix, joins=True)) for prefix in prefixes[1:]
        ]
        for client in clients[1:]:
            _await_ready(client)
        before = _used(servers, url)
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
        took = [_took(client) for client in clients]
        used = {part: cpu - before[part] for part, cpu in _used(servers, url).items()}
    turns, wall_s = sum(each.turns for each in took), max(each.wall_s for each in took)
    used["clients"] = sum(each.cpu_s["client"] for each in took)
    yield figure(f"{case}: turns/s", turns / wall_s, "1/s")
    yield figure(f"{case}: share of the ideal", turns / wall_s / size.ideal(), "")
    for part, seconds in sorted(used.items()):
        yield figure(f"{case}: {part}", 1000 * seconds / turns, "ms CPU/turn")
    yield figure(f"{case}: turns by a second of clients' CPU", turns / used["clients"], "1/s")
    yield figure(f"{case}: turns by a second of all CPU", turns / sum(used.values()), "1/s")
    yield figure(f"{case}: cores busy", sum(used.values()) / wall_s, "cores")
    yield figure(f"{case}: busiest client", max(each.cpu_s["client"] for each in took) / wall_s, "cores")
    yield figure(f"{case}: turns played by the least busy client", min(each.turns for each in took) / turns, "of all")
    yield figure(f"{case}: trials run twice", _attempts(url, name) - size.trials, "trials", at_most=0)
    yield figure(f"{case}: answers paid twice", turns - size.trials * TURNS, "", at_most=0)


@contextlib.contextmanager
def _client(
    servers: World, url: str, name: str, size: Size, prefix: Sequence[str], *, joins: bool
) -> Iterator["subprocess.Popen[str]"]:
    plan = Plan.model_validate(
        {
            "controller": servers.controller.url,
            "endpoints": [
                {"name": "e", "base_url": f"{servers.endpoint.url}/{LATENCY_MS}/v1", "concurrency": size.in_flight}
            ],
            "agents": [{"name": "a", "endpoint": "e", "model": "echo", "concurrency": size.in_flight}],
            "tasks": [{"name": f"echo-{TURNS}"}],
        }
    )
    folder = servers.folder / name
    load = Load(plan=plan, trials=size.trials, folder=folder, servers={}, store=url, joins=joins)
    pipe = subprocess.PIPE
    command = [*prefix, sys.executable, "-m", "benchmarks.client", load.model_dump_json()]
    with subprocess.Popen(command, env=servers.environment, stdin=pipe, stdout=pipe, text=True) as client:
        try:
            yield client
        finally:
            client.kill()
            shutil.rmtree(folder, ignore_errors=True)


def _await_ready(client: "subprocess.Popen[str]") -> None:
    assert client.stdout is not None
    if client.stdout.readline() != "ready\n":
        raise SystemExit("a client did not begin; its error stands above")


def _took(client: "subprocess.Popen[str]") -> Took:
    assert client.stdout is not None
    line = client.stdout.readline()
    if not line:
        raise SystemExit("a client did not come to the end; its error stands above")
    return Took.model_validate_json(line)


def _used(servers: World, url: str) -> dict[str, float]:
    """part -> CPU seconds so far; PostgreSQL's processes together."""
    folder = url.partition("host=")[2]
    postmaster = int(Path(folder, "data", "postmaster.pid").read_text().split()[0])
    backends = [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit() and _is_child(entry, postmaster)
    ]
    database = cpu_s(postmaster, ended_children=True)
    for pid in backends:
        with contextlib.suppress(OSError):
            database += cpu_s(pid)
    return {**{part: cpu_s(pid) for part, pid in servers.pids().items()}, "postgresql": database}


def _is_child(entry: Path, parent: int) -> bool:
    with contextlib.suppress(OSError):
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == parent
    return False


def _attempts(url: str, name: str) -> int:
    """How often any trial of a run was begun."""
    engine = sa.create_engine(url)
    with engine.connect() as connection:
        counted = sa.select(sa.func.sum(trial_table.c.attempts)).where(trial_table.c.run == name)
        attempts = int(connection.execute(counted).scalar_one())
    engine.dispose()
    return attempts


if __name__ == "__main__":
    os.environ.pop("PROCTOR_STORE", None)
    main(measure, __doc__)
