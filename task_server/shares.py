"""Pure: which runs may take the free slots of a task: a fair share for each user, and among a user's runs for each run.

Runs say how many sessions of each task they could hold. Where they want more slots than are free, each free slot is
offered to the run that holds the least, by its user's weight; an offer that is not taken in time passes on. Nothing is
added up over tasks. `now` is in seconds on any monotonic clock.
"""

import heapq
from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from prometheus_client import Metric

from proctor.config.tokens import Token
from proctor.observability.metrics import gauge
from task_server.wire.errors import NoCapacity
from task_server.wire.messages import Sender, TaskCapacity, TasksQuery
from task_server.wire.worker_messages import RunHold, RunList

OFFER_S = 2.0
"""How long a free slot is kept for the run that it is offered to."""
LAPSES = 2
"""After so many offers in a row that were not taken, a run wants nothing for QUIET_S, or until it starts a session."""
QUIET_S = 60.0
SILENT_S = 30.0
"""A client's demand is dropped when it has been silent for this long after its request was answered."""
MAX_CLIENTS = 1_000
MAX_TASKS = 1_000
MAX_LISTED = 1_000
MAX_RUNS = 20
"""With metrics of their own."""


class Holder(NamedTuple):
    """Who holds sessions: a run, and the user whose it is. Clients of 0.2.0 name neither, and are one run."""

    user: str
    run: str


EVERYBODY = Token("")
"""The part of a user without a token's name."""


@dataclass(slots=True)
class _Claim:
    """A run's part in one task."""

    wants: int = 0
    held: int = 0
    offers: deque[float] = field(default_factory=deque)
    """When each slot that is offered to it passes on, the earliest first."""
    most: int = 0
    """The most sessions that it held since it last let an offer lapse."""
    lapses: int = 0
    late: int = 0
    """Those that let an offer lapse come last, in this order; 0 for the others."""
    quiet_until: float = 0.0
    since: float | None = None
    """Since when it wants a slot; None while it has what it wants."""


class _Task:
    """The claims on one task."""

    def __init__(self, weights: Mapping[str, Token]) -> None:
        self.claims: dict[Holder, _Claim] = {}
        self._weights = weights
        self._users: dict[str, int] = {}
        """user -> sessions held"""
        self._late = 0

    def claim(self, holder: Holder) -> _Claim:
        """The holder's claim, which is made."""
        return self.claims.setdefault(holder, _Claim())

    def hold(self, holder: Holder, more: int) -> None:
        """The holder has more or fewer sessions than before."""
        claim = self.claim(holder)
        claim.held += more
        claim.most = max(claim.most, claim.held)
        self._users[holder.user] = self._users.get(holder.user, 0) + more
        self._tidy(holder)

    def want(self, holder: Holder, more: int) -> None:
        """The holder wants more or fewer sessions than before."""
        self.claim(holder).wants += more
        self._tidy(holder)

    def _tidy(self, holder: Holder) -> None:
        claim = self.claims[holder]
        if not (claim.wants or claim.held or claim.offers):
            del self.claims[holder]
        if not self._users.get(holder.user, 1):
            del self._users[holder.user]

    def capped(self, user: str) -> bool:
        """Whether a user holds as many sessions as its cap allows."""
        cap = self._weights.get(user, EVERYBODY).cap
        return cap is not None and self._users.get(user, 0) >= cap

    def offer(self, free: int, now: float) -> bool:
        """Pass offers on that were not taken, and offer the slots that are free; whether any offer changed."""
        changed = self._lapse(now)
        missing = {}
        for holder, claim in self.claims.items():
            # A run that takes none of its offers keeps but one slot from others; one that does soon has its share, also
            # where its sessions end all at once.
            lacks = min(claim.wants - claim.held, max(1, claim.most)) - len(claim.offers)
            claim.since = (claim.since or now) if claim.wants > claim.held else None
            if lacks > 0 and now >= claim.quiet_until:
                missing[holder] = lacks
        offered = sum(len(claim.offers) for claim in self.claims.values())
        if not offered and sum(missing.values()) <= free:
            return changed
        left = free - offered
        if left < 0:
            changed = self._withdraw(-left) or changed
        queue = [(self._rank(holder), holder) for holder in missing]
        heapq.heapify(queue)
        given = {user: sum(len(c.offers) for h, c in self.claims.items() if h.user == user) for user, _ in missing}
        while queue and left > 0:
            rank, holder = heapq.heappop(queue)
            cap = self._weights.get(holder.user, EVERYBODY).cap
            if cap is not None and self._users.get(holder.user, 0) + given[holder.user] >= cap:
                continue
            if rank != (fresh := self._rank(holder, given[holder.user])):
                heapq.heappush(queue, (fresh, holder))
                continue
            self.claims[holder].offers.append(now + OFFER_S)
            given[holder.user] += 1
            left, changed = left - 1, True
            missing[holder] -= 1
            if missing[holder]:
                heapq.heappush(queue, (self._rank(holder, given[holder.user]), holder))
        return changed

    def _withdraw(self, slots: int) -> bool:
        """Take back offers of slots that are no longer free, from those that hold most; that is no lapse of theirs."""
        for holder in sorted(self.claims, key=self._rank, reverse=True):
            offers = self.claims[holder].offers
            while offers and slots:
                offers.pop()
                slots -= 1
        return True

    def _rank(self, holder: Holder, given: int = 0) -> tuple[int, float, float]:
        claim, weight = self.claims[holder], self._weights.get(holder.user, EVERYBODY).weight
        return claim.late, (self._users.get(holder.user, 0) + given) / weight, claim.held + len(claim.offers)

    def _lapse(self, now: float) -> bool:
        lapsed = False
        for holder, claim in list(self.claims.items()):
            if not (claim.offers and claim.offers[0] <= now):
                continue
            while claim.offers and claim.offers[0] <= now:
                claim.offers.popleft()
            lapsed, claim.lapses, claim.most = True, claim.lapses + 1, 0
            self._late += 1
            claim.late = self._late
            if claim.lapses >= LAPSES:
                claim.lapses, claim.quiet_until = 0, now + QUIET_S
            self._tidy(holder)
        return lapsed

    def open_to(self, holder: Holder, free: int) -> int:
        """How many of the free slots a run may take: those offered to it, and those offered to nobody."""
        if self.capped(holder.user):
            return 0
        claim = self.claims.get(holder)
        others = sum(len(each.offers) for each in self.claims.values() if each is not claim)
        return max(0, free - others)

    def started(self, holder: Holder) -> None:
        """A run takes a slot."""
        self.hold(holder, 1)
        claim = self.claims[holder]
        if claim.offers:
            claim.offers.popleft()
        claim.lapses, claim.late, claim.quiet_until = 0, 0, 0.0


@dataclass(frozen=True, slots=True)
class _Demand:
    holder: Holder
    wants: Mapping[str, int]
    until: float


class Shares:
    """The claims of all runs on all tasks, and what clients want, which autoscalers follow too."""

    def __init__(self, weights: Mapping[str, Token] | None = None) -> None:
        self.weights: dict[str, Token] = dict(weights or {})
        self.names: dict[str, str] = {}
        """run -> the name that its client gives it"""
        self._tasks: dict[str, _Task] = {}
        self._demands: dict[str, _Demand] = {}

    def weigh(self, users: Iterable[Token]) -> None:
        """Take the weights and caps of users from their tokens."""
        self.weights.clear()
        self.weights.update((user.name, user) for user in users)

    def record(self, query: TasksQuery, sender: Sender, now: float) -> None:
        """Record the demand in a request for the tasks. The client does not count as silent while the request waits."""
        if query.client is None:
            return
        self._drop(query.client)
        if query.wants:
            demand = _Demand(holder_of(sender), query.wanted(), now + query.wait_s + SILENT_S)
            self._demands[query.client] = demand
            for task, wants in demand.wants.items():
                self._of(task).want(demand.holder, wants)
            if sender.run and sender.name:
                self.names[sender.run] = sender.name
        while len(self._demands) > MAX_CLIENTS:
            self._drop(next(iter(self._demands)))

    def _drop(self, client: str) -> None:
        demand = self._demands.pop(client, None)
        if demand is not None:
            for task, wants in demand.wants.items():
                self._of(task).want(demand.holder, -wants)

    def forget_silent(self, now: float) -> None:
        """Drop the demand of clients that have been silent."""
        for client in [client for client, demand in self._demands.items() if demand.until <= now]:
            self._drop(client)
        live = {holder.run for task in self._tasks.values() for holder in task.claims}
        self.names = {run: name for run, name in self.names.items() if run in live}

    def hold(self, task: str, holder: Holder, more: int) -> None:
        """A run holds more or fewer sessions of a task than before."""
        self._of(task).hold(holder, more)

    def offer(self, free: Iterable[TaskCapacity], now: float) -> bool:
        """Offer the free slots of tasks; whether any offer changed."""
        whole = {task.name: task.free for task in free if task.name in self._tasks}  # the last entry of a task
        changed = [self._tasks[name].offer(count, now) for name, count in whole.items()]
        return any(changed)

    def take(self, task: str, holder: Holder, free: int, now: float) -> None:
        """A run starts a session. Raises NoCapacity where the free slots are for others."""
        claims = self._of(task)
        claims.offer(free, now)
        capped = claims.capped(holder.user)
        if capped or (free > 0 and claims.open_to(holder, free) <= 0):
            why = "its user holds all that it may" if capped else "others that hold less come first"
            raise NoCapacity(f"task {task!r}: {why}", retry_after_s=OFFER_S / 2)
        claims.started(holder)

    def seen_by(self, holder: Holder, capacities: tuple[TaskCapacity, ...]) -> tuple[TaskCapacity, ...]:
        """The capacities with the free slots that a run may take; the same object where these are all."""
        seen = [
            each if each.name not in self._tasks or not each.free else _with_free(each, self._tasks[each.name], holder)
            for each in capacities
        ]
        return capacities if all(a is b for a, b in zip(seen, capacities, strict=True)) else tuple(seen)

    def claims(self, now: float) -> list[RunHold]:
        """What each run has of each task, the largest first."""
        found = [
            RunHold(
                run=holder.run,
                name=self.names.get(holder.run, ""),
                user=holder.user,
                task=name,
                held=claim.held,
                wants=claim.wants,
                waits_s=now - (claim.since or now),
            )
            for name, task in self._tasks.items()
            for holder, claim in task.claims.items()
        ]
        return sorted(found, key=lambda claim: (-claim.held, -claim.wants, claim.task, claim.user, claim.run))

    def listed(self, now: float) -> RunList:
        """What each run has, for people."""
        return RunList(runs=tuple(self.claims(now)[:MAX_LISTED]))

    def total(self, now: float) -> dict[str, int]:
        """task -> sessions that all clients together want, tasks that no worker holds included."""
        self.forget_silent(now)
        wants = {name: sum(claim.wants for claim in task.claims.values()) for name, task in self._tasks.items()}
        return {name: count for name, count in wants.items() if count}

    def metrics(self, now: float) -> Sequence[Metric]:
        """The total demand, and what the MAX_RUNS runs with the most sessions hold and want."""
        wanted = {(task,): sessions for task, sessions in self.total(now).items()}
        claims, sizes = self.claims(now), dict[str, tuple[int, int]]()
        for claim in claims:
            held, wants = sizes.get(claim.run, (0, 0))
            sizes[claim.run] = held + claim.held, wants + claim.wants
        largest = set(heapq.nlargest(MAX_RUNS, sizes, key=sizes.__getitem__))
        at, holds, wishes = ("run", "user", "task"), Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
        for claim in claims:
            if claim.run in largest:
                labels = claim.name or claim.run, claim.user if claim.user != claim.run else "", claim.task
                holds[labels] += claim.held
                wishes[labels] += claim.wants
        return (
            gauge("proctor_task_demand", "Sessions that clients could hold if there were slots.", ("task",), wanted),
            gauge("proctor_run_sessions", "Sessions that play for a run; of the largest runs.", at, holds),
            gauge("proctor_run_demand", "Sessions that a run could hold; of the same runs.", at, wishes),
        )

    def _of(self, task: str) -> _Task:
        if task not in self._tasks and len(self._tasks) >= MAX_TASKS:
            self._tasks = {name: each for name, each in self._tasks.items() if each.claims}
            if len(self._tasks) >= MAX_TASKS:
                return _Task(self.weights)
        return self._tasks.setdefault(task, _Task(self.weights))


def holder_of(sender: Sender) -> Holder:
    """Whose sessions a client's are; without a user each run is one of its own."""
    return Holder(sender.user or sender.run, sender.run)


def _with_free(capacity: TaskCapacity, task: _Task, holder: Holder) -> TaskCapacity:
    free = task.open_to(holder, capacity.free)
    return capacity if free == capacity.free else capacity.model_copy(update={"free": free})
