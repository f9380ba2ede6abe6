"""One seed played: processes that begin, suffer and are begun again, until all is quiet and the run is through."""

import asyncio
import contextlib
import hashlib
import random
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import sqlalchemy as sa

from eval_client.core.events import Abandon, Drain
from eval_client.core.progress import RunResult
from eval_client.plan.plan import trial_seed
from eval_client.run.context import RunContext
from eval_client.run.execute import execute
from eval_client.run.preflight import PreflightError
from eval_client.run.request import RunRequest
from eval_client.store.connection import Fenced, StoreError
from eval_client.store.planned_trials import PlannedTrials
from eval_client.store.store import Store
from eval_client.store.tables import OVER
from proctor.http.auth import Access
from task_server.controller.controller import Controller
from task_server.http.routes import build_app
from task_server.http.transport import Caller
from task_server.wire.errors import TaskServerError
from task_server.wire.messages import SESSION_LEASE_S, WORKER_LEASE_S
from task_server.worker.worker import Worker
from tests.simulation.disk import Disk, Health, empty_store
from tests.simulation.endpoint import Endpoint, Mood
from tests.simulation.game import DRIFT, SALTS, WITNESS, Chain, Truth, truths
from tests.simulation.ledger import Key, Ledger
from tests.simulation.loop import NOBODY, NothingLeft, Process, State, VirtualLoop, current
from tests.simulation.network import CALM, Client, Network, serving
from tests.simulation.setting import KINDS, Fault, Setting, draw
from tests.simulation.surroundings import surroundings
from tests.task_server_world import anywhere

SETTLE_S = WORKER_LEASE_S + 2.0
"""So long after the last fault, and the last late message, everybody has found everybody again."""
LATEST_S = 600.0
"""A history that lasts longer makes no progress."""
LEFT_OVER_S = SESSION_LEASE_S + 100.0
"""A session lives on for its lease after the last request, which may be 40 s late; its last step and its clean-up take
up to 45 s each at worst, of which the lease sees only the clean-up."""


class History:
    """What a seed stands for, happening."""

    def __init__(self, seed: int, store: Store, tell: Callable[[str], None], kinds: Sequence[str] | None) -> None:
        self.rng = random.Random(f"history {seed}")
        self.setting: Setting = draw(self.rng, kinds or KINDS)
        self.loop = VirtualLoop()  # type: ignore[abstract]  # it has only what our code calls
        self._store, self._tell = store, tell
        self._digest = hashlib.blake2b(digest_size=8)
        self.ledger = Ledger(self.rng, self.setting)
        self.ledger.trace = self.trace
        self.ledger.writer = current
        self.ledger.key_of = self._key_of
        self.network = Network(self.loop, self.rng, self.trace)
        self.network.weather = self.setting.weather
        self.disk = Disk(self.rng, store, self.ledger.wrote, self.ledger.problem)
        self.disk.objections = self._objections
        self.wall_s = 1.7e9
        self._processes: list[Process] = []
        self._hosts: dict[str, Process] = {}
        """The newest process of every server's name."""
        self._workers: dict[Process, tuple[Worker, asyncio.Event]] = {}
        self._clients: list[Process] = []
        self._client_is_gone = asyncio.Event()
        self._scenes: dict[Process, RunContext] = {}
        self._endpoints: list[Endpoint] = []
        self._quiet = False
        self._quiet_at = float("inf")
        self._done = False
        self._ended: dict[Process, RunResult] = {}
        self._superseded: set[Process] = set()
        """Clients whose run another one has taken over."""
        listed = {task.name: Chain.model_validate(task.parameters).listed for task in self.setting.definitions}
        samples = {task: dict(zip(names, names, strict=True)) for task, names in listed.items()}
        self.trials = list(PlannedTrials(self.setting.plan, samples))

    def _objections(self, _operations: Sequence[object]) -> list[str]:
        """Why the client that runs now must not write."""
        client = current()
        return [f"FENCE {client.name} writes although another has taken it over"] if client in self._superseded else []

    def play(self) -> list[str]:
        """Every invariant that broke, in the order they were noticed."""
        with surroundings(self):
            self._begin()
            try:
                self.loop.run(lambda: self._done or bool(self.ledger.problems), LATEST_S)
                if not self.ledger.problems:
                    self._check_end()
            except NothingLeft:
                self.ledger.problem("no progress: everybody waits for ever")
            finally:
                self._put_away()
        self.ledger.problems.extend(f"uncaught: {error}" for error in self.loop.errors)
        return self.ledger.problems

    def digest(self) -> str:
        """Equal for equal histories."""
        return self._digest.hexdigest()

    def trace(self, line: str) -> None:
        """Something happened."""
        line = f"{self.loop.time():10.4f} {line}"
        self._digest.update(line.encode())
        self._tell(line)

    def monotonic(self) -> float:
        """What a process takes for the time; every one counts from another moment."""
        try:
            return self.loop.time() + current().clock_began
        except LookupError:
            return self.loop.time()

    def wall(self) -> float:
        """What every machine takes for the time of day."""
        return self.wall_s + self.loop.time()

    def client(self) -> Client:
        """What a process sends its requests with."""
        return Client(self.network, self.ledger)

    # Processes

    def _begin(self) -> None:
        for entry in self.setting.plan.endpoints:
            process = self._process(entry.name)
            endpoint = Endpoint(self.rng, self.setting.longest_thought_s)
            self._endpoints.append(endpoint)
            self.network.listen(entry.name, process, endpoint)
        for name in self._server_names():
            self._start_server(name)
        if self.setting.from_the_start:
            self._begin_faults()
        self.loop.create_task(self._operate())

    def _begin_faults(self) -> None:
        """Once, from now on."""
        if self._quiet_at < float("inf"):
            return
        self._quiet_at = self.loop.time() + self.setting.quiet_at
        for fault in self.setting.faults:
            self._after(fault.at, self._befall, fault)
        self._after(self.setting.quiet_at, self._heal)

    def _server_names(self) -> list[str]:
        workers = [f"w{n}" for n in range(self.setting.workers)]
        return workers if self.setting.lone else ["controller", *workers]

    def _process(self, name: str) -> Process:
        process = Process(name, self.rng.uniform(0.0, 1e5))
        process.context.run(WITNESS.set, self.ledger)
        self._processes.append(process)
        self._hosts[name] = process
        self.trace(f"{name} begins")
        return process

    def _start_server(self, name: str) -> None:
        old = self._hosts.get(name)
        if old is not None and old.state is not State.DEAD:
            return
        process = self._process(name)
        self._main(process, self._control if name == "controller" else self._work)

    def _main(self, process: Process, main: Callable[[Process], Awaitable[None]]) -> None:
        async def run() -> None:
            try:
                await main(process)
            except asyncio.CancelledError:
                raise
            except BaseException as error:
                self.ledger.problem(f"{process.name} crashed: {error!r} {_leaves(error)}")
            self._die(process)

        self.loop.create_task(run(), name=process.name, context=process.context)

    def _die(self, process: Process) -> None:
        if process.state is State.DEAD:
            return
        self.trace(f"{process.name} is gone")
        process.state = State.DEAD
        self.network.reset(process)
        self.ledger.died(process)
        if process in self._clients:
            self._client_is_gone.set()
        elif self._quiet and process.name in self._server_names():
            self._after(0.5, self._start_server, process.name)

    async def _control(self, process: Process) -> None:
        controller = Controller("http://controller", Caller(self.client(), None), admit=anywhere, now=time.monotonic)
        async with controller.running():
            self.network.listen(process.name, process, serving(build_app(controller, "controller", Access())))
            await asyncio.Event().wait()

    async def _work(self, process: Process) -> None:
        url = f"http://{process.name}"
        reports = "" if self.setting.lone else "http://controller"
        caller = None if self.setting.lone else Caller(self.client(), None)
        worker = Worker(
            process.name, url, self.setting.definitions, controller=reports, caller=caller, now=time.monotonic
        )
        terminated = asyncio.Event()
        self._workers[process] = worker, terminated
        async with worker.running():
            self.network.listen(process.name, process, serving(build_app(worker, "worker", Access())))
            await terminated.wait()
            await worker.drain(5.0)
            await asyncio.sleep(1.0)

    # The client and whoever starts it

    async def _operate(self) -> None:
        """Start a client, and another whenever none is left, until one that began long in quiet is through."""
        resumes = SALTS if any(trial.sample == DRIFT for trial in self.trials) else 1  # one attempt each at worst
        while not self._done:
            calm_s = self._calm_s()
            client = self._start_client()
            while any(other.state is not State.DEAD for other in self._clients):
                self._client_is_gone.clear()
                await self._client_is_gone.wait()
            at_its_end = client in self._ended and self._ended[client].stopped is None
            resumes -= at_its_end and calm_s > 0
            self._done = self._through() or resumes == 0
            if not self._done:
                await asyncio.sleep(max(0.05, -self._calm_s()) if at_its_end else self.rng.uniform(0.05, 2.0))
        self._heal()

    def _calm_s(self) -> float:
        """Since when everybody has had time to find everybody again."""
        weather = self.setting.weather
        late_s = weather.slow_s if weather.slow or weather.doubled else 0.0
        return self.loop.time() - self._quiet_at - late_s - SETTLE_S

    def _start_client(self) -> Process:
        process = self._process(f"client{len(self._clients)}")
        self._clients.append(process)
        self._main(process, self._execute)
        return process

    async def _execute(self, process: Process) -> None:
        calm_s = self._calm_s()

        @contextlib.contextmanager
        def watch(played: RunContext) -> Iterator[None]:
            self._scenes[process] = played
            self._begin_faults()
            self._superseded.update(set(self._clients) - {process})
            self._superseded.discard(process)
            self.ledger.leaving.update(self._superseded)
            yield
            self.ledger.leaving.add(process)

        try:
            ended = self._ended[process] = await execute(self._order(process), watch)
        except (PreflightError, TaskServerError, StoreError, Fenced) as error:
            self.ledger.leaving.add(process)
            self.trace(f"{process.name} gave up: {error}")
            if calm_s > 0 and self._is_alone(process):
                self.ledger.problem(f"{process.name} gave up although all is quiet: {error}")
        except sa.exc.OperationalError as error:
            self.ledger.leaving.add(process)
            self.trace(f"{process.name} does not reach the store: {error}")
            if calm_s > 0 or process in self._scenes:
                self.ledger.problem(f"{process.name} does not wait for the store: {error}")
        else:
            self.ledger.leaving.add(process)
            self.trace(f"{process.name} ended: {ended.stopped}")
            if ended.stopped is None:
                self._check_ended(self._scenes.get(process))

    def _is_alone(self, client: Process) -> bool:
        """Whether no other client lives; beside one that took a killed one's place a resume is refused."""
        return all(other is client or other.state is State.DEAD for other in self._clients)

    def _order(self, process: Process) -> RunRequest:
        plan = self.setting.plan
        if any(ended.stopped is not None for ended in self._ended.values()):
            limits = plan.limits.model_copy(update={"run": type(plan.limits.run)()})
            plan = plan.model_copy(update={"limits": limits})
        return RunRequest(plan, "plan.yaml", self._store, Path(), resume=bool(self._rows()))

    def _rows(self) -> list[Truth]:
        """What the trials came to; without the estimated tokens of requests that a silent endpoint never answered."""
        return [
            Truth(str(row["reason"]), _float(row["score"]), _int(row["turns"]), _paid(row))
            for row in self._store.trial_rows(*Truth._fields, "estimated_tokens")
        ]

    def _through(self) -> bool:
        rows = self._rows()
        return bool(rows) and all(row.score is not None for row in rows) and self._store.state() != "running"

    def _heal(self) -> None:
        """No fault from now on: whoever is dead is started, whoever stands still goes on."""
        if self._quiet:
            return
        self.trace("quiet")
        self._quiet = True
        self.network.weather = CALM
        self.network.cut.clear()
        self.disk.health = Health.WELL
        for endpoint in self._endpoints:
            endpoint.mood = Mood.WELL
        for process in self._processes:
            self.loop.continue_process(process)
        for name in self._server_names():
            self._start_server(name)

    # Faults

    def _befall(self, fault: Fault) -> None:
        """A fault begins; in quiet none does."""
        if self._quiet:
            return
        self.trace(f"FAULT {fault}")
        deed, _, target = fault.kind.partition(" ")
        process = self._target(target, fault.part)
        if process is not None:
            self._hit(process, deed, fault)
        match deed:
            case "second" if not self.setting.locks:
                self._start_client()
            case "cut":
                self._cut(target, fault)
            case "trouble" | "unheard":
                self.disk.health = Health.REFUSING if deed == "trouble" else Health.UNHEARD
                self._after(fault.for_s, setattr, self.disk, "health", Health.WELL)
            case "wall":
                self.wall_s += self.rng.choice([-3600.0, 3600.0])
            case "throttling" | "failing" | "babbling" | "silent":
                endpoint = self._endpoints[fault.part % len(self._endpoints)]
                endpoint.mood = Mood(deed)
                self._after(fault.for_s, setattr, endpoint, "mood", Mood.WELL)

    def _hit(self, process: Process, deed: str, fault: Fault) -> None:
        """A fault of one process."""
        match deed:
            case "kill":
                self._die(process)
                if process not in self._clients:
                    self._after(fault.for_s, self._start_server, process.name)
            case "stop":
                self.loop.stop_process(process)
                self._after(fault.for_s, self.loop.continue_process, process)
            case "terminate" if process in self._workers:
                self.loop.call_soon(self._workers[process][1].set, context=process.context)
                self._after(fault.for_s + 8.0, self._start_server, process.name)
            case "interrupt":
                self._interrupt(process, fault)

    def _target(self, kind: str, part: int) -> Process | None:
        named = [p for p in self._processes if p.name.startswith(kind[:1]) and p.state is not State.DEAD]
        named = [p for p in named if (kind == "controller") == (p.name == "controller")]
        return named[part % len(named)] if named else None

    def _interrupt(self, process: Process, fault: Fault) -> None:
        """Ctrl-C once, and sometimes twice."""

        def press(event: Drain | Abandon) -> None:
            if process in self._scenes:
                self.ledger.leaving.add(process)
                self._scenes[process].runner.handle(event)

        self.loop.call_soon(press, Drain("interrupted"), context=process.context)
        if fault.part % 2:
            self.loop.call_later(fault.for_s, press, Abandon("interrupted"), context=process.context)

    def _cut(self, who: str, fault: Fault) -> None:
        one, how, other = who.split()
        names = {"worker": f"w{fault.part % self.setting.workers}", "controller": "controller"}
        clients = [f"client{n}" for n in range(20)]
        sources = clients if one == "client" else [names[one]]
        targets = clients if other == "client" else [names[other]]
        cut = {(a, b) for a in sources for b in targets}
        if how == "and":
            cut |= {(b, a) for a, b in cut}
        self.network.cut |= cut
        self._after(fault.for_s, self.network.cut.difference_update, cut)

    def _after(self, delay_s: float, act: Callable[..., object], *args: object) -> None:
        self.loop.call_later(delay_s, act, *args, context=NOBODY)

    # Invariants that need the end of something

    def _check_ended(self, played: RunContext | None) -> None:
        """What holds whenever a client says that nothing is left to play; it need not have played itself."""
        if (state := self._store.state()) not in OVER:
            self.ledger.problem(f"STATE a client came to the run's end, and the run is {state}")
        for trial, row in zip(self.trials, self._store.trial_rows(), strict=True):
            if row["reason"] is None or (row["score"] is None) != bool(row["cause"]):
                self.ledger.problem(f"I4 trial {trial.id} ended neither scored nor with a cause: {row}")
        flow = played.schedule.flow.use() if played is not None else {}
        used = {name: use for nodes in flow.values() for name, use in nodes.items() if use[0]}
        if used:
            self.ledger.problem(f"I3 the flow believes in use: {used}")

    def _check_end(self) -> None:
        if not self._done:
            self.ledger.problem("no progress: the run does not come to its end")
        self._check_rows()
        if not self._await_idle():
            self.ledger.problem(f"I3 sessions outlive their lease: {sorted(s for _, s in self.ledger.live)}")

    def _check_rows(self) -> None:
        """The run in the end is the one that nothing disturbed."""
        rows, state = self._rows(), self._store.state()
        if state in OVER and (state == "finished") != all(row.score is not None for row in rows):
            self.ledger.problem(f"STATE the run is {state}: {rows}")
        if len(rows) != len(self.trials):
            self.ledger.problem(f"I1 {len(rows)} rows for {len(self.trials)} trials")
        for trial, kept in zip(self.trials, rows, strict=False):
            row, expected = kept, self._truths(trial.id)
            if trial.sample == DRIFT:  # what was paid depends on how often it was played
                row, expected = row._replace(prompt_tokens=0), [one._replace(prompt_tokens=0) for one in expected]
            if row not in expected:
                self.ledger.problem(f"I6 I7 trial {trial.id}: {row} instead of {expected}")
            finals = self.ledger.finals.get(trial.id, [])
            if row.score is not None and finals[-1:] != [row.score]:
                self.ledger.problem(f"I2 trial {trial.id}: {row.score} kept, {finals} acknowledged")

    def _truths(self, trial: int) -> list[Truth]:
        played, plan = self.trials[trial], self.setting.plan
        turns = {task.name: _int(task.parameters["turns"]) for task in self.setting.definitions}[played.task]
        seed = trial_seed(plan.seed, played.task, played.sample, played.epoch)
        return truths(played.agent, played.sample, seed, turns, plan.limits.trial.turns)

    def _key_of(self, trial: int, turn: int) -> Key:
        played = self.trials[trial]
        return played.agent, played.task, played.sample, str(played.epoch), str(turn)

    def _await_idle(self) -> bool:
        """Whether all that was started is put away, at last by the end of its lease."""

        def idle() -> bool:
            if self.ledger.live:
                return False
            alive = [worker for process, (worker, _) in self._workers.items() if process.state is not State.DEAD]
            capacities = [capacity for worker in alive for capacity in worker.capacities()]
            return all(task.free == task.total for task in capacities)

        self.loop.run(idle, self.loop.time() + LEFT_OVER_S)
        return idle()

    def _put_away(self) -> None:
        """Nothing more matters: let every task end, so that none ends at a random moment of a later history."""
        self.ledger.problems = list(self.ledger.problems)
        self.network.closed = True
        problems, errors = self.ledger.problems, self.loop.errors
        self.ledger.problems, self.loop.errors = [], []
        while any(not task.done() for process in self._processes for task in process.tasks):
            for process in self._processes:
                self.loop.put_away(process)
            with contextlib.suppress(NothingLeft):
                self.loop.run(lambda: False, self.loop.time() + 60.0)
        self.ledger.problems, self.loop.errors = problems, errors


class Played(NamedTuple):
    """What came of a seed."""

    problems: list[str]
    """The invariants that broke."""
    digest: str
    """Equal for equal histories."""


def simulate(
    seed: int,
    tell: Callable[[str], None] = lambda _: None,
    kinds: Sequence[str] | None = None,
) -> Played:
    """A seed's history, played; with faults of some kinds only, where they are given."""
    with empty_store(f"s{seed}") as rows:
        history = History(seed, rows, tell, kinds)
        return Played(history.play(), history.digest())


def _leaves(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [repr(error)]


def _paid(row: Mapping[str, object]) -> int:
    return _int(row["prompt_tokens"]) - max(0, _int(row["estimated_tokens"]))


def _float(value: object) -> float | None:
    return value if isinstance(value, float) else None


def _int(value: object) -> int:
    return value if isinstance(value, int) else -1
