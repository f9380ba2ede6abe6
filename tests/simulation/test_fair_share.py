"""Many runs at one controller's 1,000 workers, in simulated time, over the shipped placement, shares and messages."""

import heapq
import itertools
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from task_server.controller.placement import Placement
from task_server.controller.publication import pause_before
from task_server.shares import Holder, holder_of
from task_server.wire.errors import NoCapacity
from task_server.wire.messages import Sender, TaskCapacity, TasksQuery
from task_server.wire.worker_messages import Heartbeat, Hold

TASK, WORKERS = "t", 1_000
BATCH_S, TICK_S = 0.05, 0.5
SEEDS = range(20)


NO_RUN = Holder("", "")


@dataclass
class Run:
    """A client: how many trials it has, how long each takes, and how it behaves."""

    number: int
    begins_at: float
    trials: int
    seconds: float
    most: int
    """Trials at once."""
    kind: str = "plain"
    """`idle` claims wants and starts nothing; `paused` wants nothing in the middle third of its life; `killed` stops
    without a word at a third."""
    started: int = 0
    ended: int = 0
    under_way: int = 0
    first_at: float | None = None
    freed_before: int | None = None
    """Slots that were freed before it wanted any."""
    offered_after: int | None = None
    """So many were freed until one was offered to it."""
    gone: bool = False
    seen: str | None = None

    @property
    def sender(self) -> Sender:
        return Sender(f"{self.number:032x}", f"run-{self.number}")

    def wants(self) -> int:
        """What it could hold now."""
        third = self.trials / 3
        if self.gone or (self.kind == "paused" and third <= self.ended < third + 1):
            return self.under_way
        if self.kind == "idle":
            return 50
        return min(self.most, self.trials - self.ended)


@dataclass
class Worker:
    number: int
    sequence: int = 0
    session: str | None = None
    holder: Holder = NO_RUN

    def beat(self) -> Heartbeat:
        """What it says of itself now."""
        self.sequence += 1
        free = int(self.session is None)
        holds = () if free else (Hold(task=TASK, run=self.holder.run, user=self.holder.user, sessions=1),)
        return Heartbeat(
            worker=f"w{self.number}",
            boot="b",
            url=f"http://w{self.number}",
            sequence=self.sequence,
            tasks=(TaskCapacity(name=TASK, environment="e", total=1, free=free, digest="d"),),
            sessions=() if free else (str(self.session),),
            holds=holds,
        )


@dataclass
class Lab:
    """The event loop, and what is measured."""

    runs: list[Run]
    seed: int
    fair: bool = True
    now: float = 0.0
    freed: int = 0
    idle_wanted: float = 0.0
    """Slot-seconds that were free, offered to nobody, and wanted by somebody."""
    crowded_s: float = 0.0
    """How long more slots were wanted than there are."""
    crowded_busy: float = 0.0
    """Slot-seconds in use meanwhile."""
    slot_seconds: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    events: list[tuple[float, int, Callable[[], None]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.placement = Placement(lease_s=1e9)
        self.workers = [Worker(number) for number in range(WORKERS)]
        self.numbers = itertools.count()
        self.published = False
        self.sessions: dict[str, tuple[Worker, Run]] = {}

    def at(self, when: float, then: Callable[[], None]) -> None:
        heapq.heappush(self.events, (when, next(self.numbers), then))

    def play(self, most_s: float = 1e9) -> None:
        """Until all runs that can end have ended."""
        for worker in self.workers:
            self.placement.heartbeat(worker.beat(), self.now)
        for run in self.runs:
            self.at(run.begins_at, partial(self.look, run))
        self.at(TICK_S, self.tick)
        while self.events and self.now < most_s and not all(self.over(run) for run in self.runs):
            when, _, then = heapq.heappop(self.events)
            self.account(when - self.now)
            self.now = when
            then()

    @staticmethod
    def over(run: Run) -> bool:
        return run.gone or run.kind == "idle" or run.ended == run.trials

    def account(self, passed: float) -> None:
        free = self.placement.capacities()[-1].free
        if passed < 1e-3:
            return
        live = [run for run in self.runs if run.begins_at <= self.now]
        lacking = sum(max(0, run.wants() - run.under_way) for run in live if run.kind == "plain" and not run.gone)
        self.idle_wanted += passed * min(self.open_to(NO_RUN) if self.fair else free, lacking)
        if sum(run.wants() for run in live if run.kind == "plain") >= WORKERS:
            self.crowded_s += passed
            self.crowded_busy += passed * sum(run.under_way for run in live)
        for run in live:
            self.slot_seconds[run.number] += passed * run.under_way

    def open_to(self, holder: Holder) -> int:
        capacities = self.placement.capacities()
        return (self.placement.shares.seen_by(holder, capacities) if self.fair else capacities)[-1].free

    def tick(self) -> None:
        self.placement.shares.forget_silent(self.now)
        self.publish()
        self.at(self.now + TICK_S, self.tick)

    def publish(self) -> None:
        """All clients look at the list, each after its own latency."""
        self.published = False
        self.offer()
        for run in self.runs:
            if run.begins_at <= self.now and not run.gone:
                self.at(self.now + self.chance.uniform(0.005, 0.1), partial(self.look, run))

    def offer(self) -> None:
        """Offer what is free, as the controller does with each heartbeat and each request for the tasks."""
        if not self.fair:
            return
        self.placement.shares.offer(self.placement.capacities(), self.now)
        offered_to_none = self.open_to(NO_RUN)
        for run in self.runs:
            offered = self.open_to(holder_of(run.sender)) > offered_to_none
            if run.freed_before is not None and run.offered_after is None and offered:
                run.offered_after = self.freed - run.freed_before

    def look(self, run: Run) -> None:
        """A client says what it wants, sees what it may take, and takes it."""
        if run.gone:
            return
        wants = run.wants()
        query = TasksQuery(client=run.sender.run, wants=f"{TASK}:{wants}" if wants else "", wait_s=30.0)
        if run.freed_before is None and wants:
            run.freed_before = self.freed
        if self.fair:
            self.placement.shares.record(query, run.sender, self.now)
            self.offer()
        if run.kind == "idle":
            return
        for _ in range(min(self.open_to(holder_of(run.sender)), wants - run.under_way, run.trials - run.started)):
            if not self.start(run):
                break

    def start(self, run: Run) -> bool:
        session = f"{next(self.numbers):032x}"
        sender = run.sender if self.fair else Sender()
        try:
            ref = self.placement.place(session, TASK, self.now, sender=sender)
        except NoCapacity:
            return False
        worker = self.workers[int(ref.worker[1:])]
        worker.session, worker.holder = session, holder_of(sender)
        self.sessions[session] = worker, run
        run.started, run.under_way = run.started + 1, run.under_way + 1
        run.first_at = self.now if run.first_at is None else run.first_at
        self.at(self.now + BATCH_S, lambda: self.hear(worker))
        self.at(self.now + self.chance.expovariate(1 / run.seconds), lambda: self.end(session))
        return True

    def end(self, session: str) -> None:
        worker, run = self.sessions.pop(session)
        worker.session = None
        run.ended, run.under_way = run.ended + 1, run.under_way - 1
        if run.kind == "killed" and run.ended > run.trials / 3:
            run.gone = True
        self.at(self.now + BATCH_S, lambda: self.hear(worker))

    def hear(self, worker: Worker) -> None:
        """A heartbeat comes; what changed is published together with what changes until then."""
        before = self.placement.capacities()[-1].free
        self.placement.heartbeat(worker.beat(), self.now)
        self.freed += max(0, self.placement.capacities()[-1].free - before)
        self.offer()
        if not self.published:
            self.published = True
            self.at(self.now + pause_before(len(self.runs), 0.0), self.publish)


def crowd(seed: int) -> list[Run]:
    """2 to 50 runs of unlike length; of many, one claims and starts nothing, one pauses, one is killed."""
    chance = random.Random(seed)
    count = chance.choice([2, 3, 5, 10, 20, 50])
    runs = [
        Run(
            number,
            begins_at=0.0 if number < count / 2 else chance.uniform(5.0, 40.0),
            trials=1_400 if number == 1 else chance.choice([200, 600, 1_200]) // count + 20,
            seconds=chance.choice([3.0, 10.0, 30.0]),
            most=1_200 if number == 1 else chance.choice([16, 128, 1_200]),
        )
        for number in range(1, count + 1)
    ]
    if count >= 5:
        for run, kind in zip(reversed(runs), ("idle", "paused", "killed"), strict=False):
            run.kind = kind
    return runs


def jain(values: Sequence[float]) -> float:
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


@pytest.mark.parametrize("seed", SEEDS)
def test_no_slot_is_idle_while_it_is_wanted_and_as_much_is_played_as_without_shares(seed: int) -> None:
    fair, free = Lab(crowd(seed), seed), Lab(crowd(seed), seed, fair=False)
    for lab in (fair, free):
        lab.play()
    assert fair.idle_wanted <= 0.01 * sum(fair.slot_seconds.values())
    used = [lab.crowded_busy / lab.crowded_s for lab in (fair, free)]
    assert used[0] >= 0.98 * used[1]


@pytest.mark.parametrize("seed", SEEDS[:8])
def test_newcomers_get_their_first_slots_at_once_and_runs_that_want_share_alike(seed: int) -> None:
    chance = random.Random(seed)
    k = chance.choice([1, 3, 10])
    floods = [Run(number, 0.0, 100_000, 20.0, 5_000) for number in range(1, chance.choice([2, 3]))]
    newcomers = [Run(100 + number, 30.0, 50_000, chance.choice([5.0, 20.0]), 1_200) for number in range(k)]
    lab = Lab([*floods, *newcomers], seed)
    lab.play(most_s=100.0)
    assert all(run.first_at is not None for run in newcomers)
    assert max(run.offered_after or 0 for run in newcomers) <= 2 * k
    assert sum(run.under_way for run in lab.runs) >= 0.97 * WORKERS
    assert jain([lab.slot_seconds[run.number] for run in newcomers]) >= 0.95
    assert jain([run.under_way for run in lab.runs]) >= 0.95
