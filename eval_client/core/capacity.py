"""Pure: the limits on trials under way, of agents, endpoints and tasks; and the trials that wait for them."""

from collections import deque
from collections.abc import Collection, Container, Iterable, Mapping

from eval_client.core import Pair
from eval_client.core.events import Job
from eval_client.core.flow import Flow
from eval_client.core.limits.pool import Quota


class CapacityLimits:
    """Keeps a flow's capacities. Of an endpoint that other runs share, this one has 0 until some is granted."""

    def __init__(
        self,
        *,
        endpoint_of: Mapping[str, str],
        concurrency: Mapping[str, int],
        pairs: Collection[Pair],
        pooled: Iterable[str],
    ) -> None:
        self.flow = Flow(dict(endpoint_of))
        self.pairs = tuple(pairs)
        self._endpoints = dict.fromkeys(endpoint_of.values(), 0)
        self._totals = {task: 0 for _, task in pairs}
        """task -> its sessions at the task server, for all runs"""
        self._grants = dict.fromkeys(pooled, 0)
        self.limit_endpoints(self._endpoints)
        for name, limit in concurrency.items():
            self.flow.limit_agent(name, limit)
        for task in self._totals:
            self.flow.limit_task(task, 0)
        for pair in pairs:
            self.flow.add(pair, 0)

    def limit_task(self, task: str, ours: int, total: int) -> None:
        """Set how many sessions of a task the task server can hold: for this run, and for all."""
        self._totals[task] = total
        self.flow.limit_task(task, ours)

    def limit_endpoints(self, capacities: Mapping[str, int]) -> None:
        """Set how many trials endpoints take at once."""
        self._endpoints.update(capacities)
        for name, capacity in capacities.items():
            self.flow.limit_endpoint(name, min(capacity, self._grants.get(name, capacity)))

    def grant(self, grants: Mapping[str, int]) -> None:
        """Set the run's part of shared endpoints: endpoint -> trials at once."""
        self._grants.update(grants)
        self.limit_endpoints(self._endpoints)

    def quota(self, endpoint: str, startable: Mapping[Pair, int]) -> Quota:
        """What the run holds and wants of an endpoint, given the trials that it could start."""
        used, capacity = self.flow.use()["endpoint"][endpoint]
        wanted = sum(
            count
            for (agent, task), count in startable.items()
            if self._totals[task] and self.flow.endpoint_of[agent] == endpoint
        )
        return Quota(held=max(used, capacity), wanted=used + wanted)


class Backlog:
    """The waiting trials of every pair. Each change is passed on to the flow, which counts them as pending."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._waiting: dict[Pair, deque[Job]] = {}
        self._free: dict[Pair, int] = {}
        self._low: dict[Pair, int] = {}

    def waiting(self) -> dict[Pair, int]:
        """pair -> trials that were taken and wait to be started"""
        return {pair: len(waiting) for pair, waiting in self._waiting.items() if waiting}

    def startable(self) -> dict[Pair, int]:
        """pair -> trials that could be started if there were slots: those taken and those free in the store"""
        waiting = self.waiting()
        return {pair: waiting.get(pair, 0) + self._free.get(pair, 0) for pair in {*waiting, *self._free}}

    @property
    def empty(self) -> bool:
        """Whether no trial that was taken waits."""
        return not any(self._waiting.values())

    def has_free(self, task: str) -> bool:
        """Whether the store has free trials of a task."""
        return any(of == task for _, of in self._free)

    def add(self, jobs: Iterable[Job]) -> None:
        """Add trials that were taken. Those with attempts come first, as their sessions may hold slots."""
        for job in sorted(jobs, key=lambda job: not job.begun):
            self._enqueue(job)
            self._flow.add(job.pair)

    def add_again(self, job: Job) -> None:
        """Add a trial that was started before."""
        self._enqueue(job)
        self._flow.add_again(job.pair)

    def next(self, pair: Pair) -> Job:
        """Remove and return the trial of a pair that starts next. The flow has counted it as started already."""
        return self._waiting[pair].popleft()

    def low(self, pair: Pair) -> bool:
        """Whether so few trials of a pair wait that more must be taken."""
        return len(self._waiting[pair]) <= self._low.get(pair, -1)

    def drop(self, pair: Pair) -> list[Job]:
        """Remove and return all waiting trials of a pair."""
        self._flow.drop(pair)
        return list(self._waiting.pop(pair, ()))

    def drop_all(self) -> list[list[Job]]:
        """Remove and return all waiting trials, by pair."""
        return [self.drop(pair) for pair in list(self._waiting)]

    def drop_task(self, task: str) -> list[list[Job]]:
        """Remove and return all waiting trials of a task, by pair."""
        return [self.drop(pair) for pair, waiting in list(self._waiting.items()) if pair[1] == task and waiting]

    def set_free(self, counts: Mapping[Pair, int]) -> None:
        """Replace the numbers of trials that are free in the store."""
        for pair in {*self._free, *counts}:
            self._flow.expect(pair, counts.get(pair, 0))
        self._free = dict(counts)

    def clear_free(self, pairs: Container[Pair]) -> None:
        """Count no free trials of these pairs."""
        self.set_free({pair: count for pair, count in self._free.items() if pair not in pairs})

    def set_low_marks(self, marks: Mapping[Pair, int]) -> None:
        """Replace the numbers of waiting trials at which more must be taken; a pair without one never is `low`."""
        self._low = dict(marks)

    def _enqueue(self, job: Job) -> None:
        self._waiting.setdefault(job.pair, deque()).append(job)
