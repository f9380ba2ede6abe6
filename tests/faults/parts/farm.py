"""Everything a run needs as processes of their own, with a proxy on every way between them."""

import asyncio
import contextlib
import dataclasses
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import sqlalchemy as sa

from eval_client.store.connection import sqlite_url
from eval_client.store.tables import run_table, trial_table
from task_server.wire.messages import SESSION_LEASE_S
from tests.e2e.forks.forker import MARK
from tests.e2e.proctor import Server, begin, proctor, server
from tests.faults.parts.invariants import Allowed, check, ledger_lines, rows_of
from tests.faults.parts.proxy import Fault, Link, Proxies, proxies
from tests.faults.parts.world import Ledger, write_distribution
from tests.pace import slowly, until
from tests.support import ROOT, free_port

LEASE_S = 75.0
"""A session's lease and the worker's next look at it: by then nothing may remain."""
SHORT_LEASE_S = min(slowly(6.0), SESSION_LEASE_S / 3)
"""Of workers to be lost soon, but before their sessions; elsewhere leases are long: a busy machine loses none."""
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}
AGENTS = ("reference", "naive")
PLAN = """\
name: faults
controller: {controller}
route: {route}
endpoints:
  - {{name: served, base_url: "{agents}/v1", deadline_s: {deadline_s}, max_tries: 20, max_retry_s: {max_retry_s}}}
agents:
  - {{name: reference, builtin: reference, endpoint: served, concurrency: {concurrency}}}
  - {{name: naive, builtin: naive, endpoint: served, concurrency: {concurrency}}}
tasks:
  - {{name: ledger}}
limits: {{attempts: {attempts}, patience_s: {patience_s}}}
"""


def port_of(url: str) -> int:
    return int(url.removesuffix("/v1").rsplit(":", 1)[1])


@contextlib.contextmanager
def marked() -> Iterator[str]:
    """A mark for the environment of processes: afterwards none that bears it, nor their temporary files, may remain."""
    mark, folder = secrets.token_hex(7), Path(tempfile.mkdtemp(prefix="pf-", dir="/tmp"))
    folder.chmod(0o1777)  # database servers run under an account of their own
    before = {name: os.environ.get(name) for name in (MARK, "TMPDIR")}
    os.environ.update({MARK: mark, "TMPDIR": str(folder)})
    try:
        yield mark
        until(lambda: not processes(mark))
        assert list(folder.iterdir()) == []
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        shutil.rmtree(folder)


def processes(mark: str) -> list[int]:
    """The processes of a mark, children of children too."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and _bears(entry, mark):
                found.append(int(entry.name))
    return found


def _bears(process: Path, mark: str) -> bool:
    variables = (process / "environ").read_bytes().split(b"\0")
    return f"{MARK}={mark}".encode() in variables or (process / "comm").read_text().strip() == mark


@dataclass
class Farm:
    """A controller, workers of the world, and agents; every way between them is a link of `ways`."""

    folder: Path
    stack: contextlib.ExitStack
    ways: Proxies
    agents: Server
    world: Ledger
    environment: dict[str, str]
    workers: dict[str, Server] = field(default_factory=dict)
    controller: Server | None = None
    store: str | None = None
    """URL of the store, the run's own SQLite if None."""
    lease_s: float = slowly(30.0)
    """Of the workers with their controller."""
    settle_s: float = 2.5
    """How long a controller that was just started waits for the workers' heartbeats."""
    _control_port: int = field(default_factory=free_port)

    def start(
        self, workers: int = 1, environments: Mapping[str, Mapping[str, str]] = MappingProxyType({}), **settings: object
    ) -> None:
        """Bring up the ways, a controller and workers, and write the plan.

        `environments` has variables for `controller` and `worker`; `settings` are fields of PLAN.
        """
        self.configure(self.world.turns)
        agents = self.ways.link("agents", port_of(self.agents.url))
        control = self.ways.link("client", self._control_port)
        self.start_controller(**environments.get("controller", {}))
        for number in range(workers):
            self.start_worker(f"w{number + 1}", **environments.get("worker", {}))
        until(lambda: self.sees("proctor_workers") == workers)
        usual = {"route": "auto", "attempts": 3, "concurrency": 4}
        times = {"deadline_s": slowly(10), "max_retry_s": slowly(120), "patience_s": slowly(40)}
        fields: dict[str, object] = {**usual, **times, **settings}
        (self.folder / "plan.yaml").write_text(PLAN.format(controller=control.url, agents=agents.url, **fields))

    def configure(self, turns: int) -> None:
        """Workers that are started from now on play so many turns with each sample."""
        (self.folder / "tasks.yaml").write_text(
            "tasks:\n  - name: ledger\n    environment: ledger\n    capacity: 8\n"
            f"    parameters: {{turns: {turns}, count: {self.world.count}, "
            f"ledger: {self.world.ledger}, deadly: '{self.world.deadly}'}}\n"
        )

    def start_controller(self, **environment: str) -> Server:
        """At the port it always has."""
        options = ("--port", str(self._control_port), "--lease", str(self.lease_s), "--settle", str(self.settle_s))
        self.controller = self.stack.enter_context(server("controller", *options, cwd=self.folder, **environment))
        return self.controller

    def start_worker(self, name: str, **environment: str) -> Server:
        """A worker that everyone reaches through the link of its name, and that reports through `beats-NAME`.

        It listens at the port it had before, if any.
        """
        if name not in self.ways.links:
            self.ways.link(name, free_port())
            self.ways.link(f"beats-{name}", self._control_port)
        link, beats = self.link(name), self.link(f"beats-{name}")
        options = (f"--controller={beats.url}", f"--name={name}", f"--advertise={link.url}")
        files = ("--tasks=tasks.yaml", "--port", str(link.upstream))
        running = self.stack.enter_context(
            server("worker", *files, *options, cwd=self.folder, **self.environment, **environment)
        )
        self.workers[name] = dataclasses.replace(running, url=f"http://127.0.0.1:{link.upstream}")
        return self.workers[name]

    @property
    def ledger(self) -> Path:
        """What the world wrote."""
        assert self.world.ledger is not None
        return self.world.ledger

    def link(self, name: str) -> Link:
        """The way to a part: `client` to the controller, `agents`, `w1`, `beats-w1`, ..."""
        return self.ways.links[name]

    def begin(self, command: str = "run", *options: str, **environment: str) -> "subprocess.Popen[str]":
        """`proctor run`, `resume` or `join` under way; `options` as on the command line."""
        client = begin(*self._arguments(command), *options, cwd=self.folder, **KEY, **environment)
        self.stack.callback(put_away, client)
        return client

    def proctor(self, command: str = "run") -> "subprocess.CompletedProcess[str]":
        """`proctor run` or `proctor resume` to its end."""
        return proctor(*self._arguments(command), cwd=self.folder, **KEY)

    def completed(self, client: "subprocess.Popen[str]", code: int = 0) -> str:
        """Wait for a client; its output."""
        output, errors = client.communicate(timeout=slowly(200))
        assert client.returncode == code, output + errors
        return output + errors

    def calls(self) -> int:
        """Model calls begun so far."""
        return sum(call.link == "agents" for call in self.ways.calls)

    def until_calls(self, more: int, unless: Callable[[], bool] = lambda: False) -> None:
        """Come back after so many more model calls, or when there will be no more."""
        target = self.calls() + more
        until(lambda: self.calls() >= target or unless())

    @contextlib.contextmanager
    def at_most(self, calls: int) -> Iterator[Fault]:
        """So many more model calls are passed on meanwhile: a run that needs more does not end, however slow a test is.

        The others wait; they are calls that were begun. Gives the fault, whose `spared` are the calls still passed on.
        """
        gate = Fault("gate", "POST", spared=calls)
        self.link("agents").faults.insert(0, gate)  # before what slows every call
        yield gate
        self.link("agents").faults.remove(gate)

    @contextlib.contextmanager
    def under_way(self, calls: int) -> "Iterator[subprocess.Popen[str]]":
        """A client that has begun the run and so many model calls; no more are passed on until this is left."""
        with self.at_most(calls):
            client = self.begin()
            self.until_calls(calls)
            yield client

    def slow(self, seconds: float) -> None:
        """From now on every model call takes up to so much longer."""
        self.link("agents").faults.append(Fault("latency", seconds=seconds))

    def sees(self, metric: str) -> float:
        """A figure of the controller's."""
        assert self.controller is not None
        return self.controller.metric(metric)

    def turns(self) -> int:
        """Turns applied so far, over all workers."""
        return sum(line["event"] == "turn" for line in ledger_lines(self.ledger))

    def attempts(self) -> list[int]:
        """How many each trial took."""
        rows = rows_of(self.store_url(), "r", trial_table)
        return [int(row["attempts"]) for row in rows]

    def fence(self) -> int:
        """How often a client has taken the run."""
        engine = sa.create_engine(self.store_url())
        with contextlib.closing(engine.connect()) as connection:
            number = connection.execute(sa.select(run_table.c.fence)).scalar_one()
        engine.dispose()
        return int(number)

    def until_stalled(self, for_s: float) -> None:
        """Come back once no model call was begun for so long, by the clock of a fast machine."""
        seen, since = self.calls(), time.monotonic()

        def stalled() -> bool:
            nonlocal seen, since
            if self.calls() != seen:
                seen, since = self.calls(), time.monotonic()
            return time.monotonic() - since > slowly(for_s)

        until(stalled)

    def verify(self, **allowed: int) -> None:
        """I1 to I7, after a run that is over."""
        checked = check(
            self.world, self.store_url(), "r", agents=AGENTS, calls=list(self.ways.calls), allowed=Allowed(**allowed)
        )
        run_apart(lambda: asyncio.run(checked))
        self.verify_at_rest()

    def verify_at_rest(self) -> None:
        """I3: within a lease no session lives, every slot is free, and no play that was begun goes on."""
        until(lambda: all(self._rests(worker) for worker in self.workers.values()), LEASE_S)
        until(lambda: self.sees("proctor_worker_slots") == self.sees("proctor_worker_slots_free"), LEASE_S)
        until(lambda: not self.playing(), LEASE_S)

    def playing(self) -> set[str]:
        """Sessions that were begun and not ended, in processes that live."""
        alive = {worker.process.pid for worker in self.workers.values() if worker.process.poll() is None}
        events = {"begin": set[tuple[str, int]](), "end": set[tuple[str, int]](), "turn": set[tuple[str, int]]()}
        for line in ledger_lines(self.ledger):
            events[line["event"]].add((line["session"], line["pid"]))
        return {session for session, pid in events["begin"] - events["end"] if pid in alive}

    def _rests(self, worker: Server) -> bool:
        if worker.process.poll() is not None:
            return True
        slots, free = worker.metric("proctor_slots"), worker.metric("proctor_slots_free")
        return worker.metric("proctor_sessions_live") == 0 and slots == free == 8

    def store_url(self) -> str:
        """Where the rows of the run are."""
        return self.store or sqlite_url(self.folder / "runs" / "r")

    def _arguments(self, command: str) -> tuple[str, ...]:
        begun = ("run", "plan.yaml", "--name", "r") if command == "run" else (command, "r")
        return (*begun, "-q", *(() if self.store is None else ("--store", self.store)))


def run_apart(work: Callable[[], None]) -> None:
    """In a thread of its own, where no event loop runs; what it raises is raised here."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


@contextlib.contextmanager
def farm(folder: Path, agents: Server, seed: int = 0, **world: object) -> Iterator[Farm]:
    """A farm whose parts end with it; afterwards nothing of it may remain."""
    with marked(), proxies(seed) as ways, contextlib.ExitStack() as stack:
        fields = {"ledger": folder / "ledger.jsonl", **world}
        yield Farm(folder, stack, ways, agents, Ledger.model_validate(fields), importable(folder))


def importable(folder: Path) -> dict[str, str]:
    """The environment variables of a process that knows the world."""
    if not (folder / "installed").exists():
        write_distribution(folder / "installed")
    return {"PYTHONPATH": os.pathsep.join([str(folder / "installed"), str(ROOT)])}


def put_away(client: "subprocess.Popen[str]") -> None:
    """End a client that a failed test left behind."""
    if client.stdout is not None and not client.stdout.closed:
        client.kill()
        client.communicate()


def stop(running: Server) -> None:
    running.process.send_signal(signal.SIGSTOP)


def go_on(running: Server) -> None:
    running.process.send_signal(signal.SIGCONT)
