"""Pure: the limits on trials under way, of agents, endpoints and tasks; and the trials that wait for them."""

from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence

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
        self._waiting: dict[Pair, array[int]] = {}
        """pair -> the ids of its trials, the one that starts next at the end"""

    def waiting(self) -> dict[Pair, int]:
        """pair -> trials that wait to be started"""
        return {pair: len(waiting) for pair, waiting in self._waiting.items() if waiting}

    @property
    def empty(self) -> bool:
        """Whether no trial waits."""
        return not any(self._waiting.values())

    def add(self, trials: Mapping[Pair, Sequence[int]]) -> None:
        """Add trials, those of each pair in the order in which they start."""
        for pair, ids in trials.items():
            self._waiting[pair] = array("i", reversed(ids))
            self._flow.add(pair, len(ids))

    def add_again(self, job: Job) -> None:
        """Add a trial that was started before."""
        self._waiting.setdefault(job.pair, array("i")).insert(0, job.trial)
        self._flow.add_again(job.pair)

    def next(self, pair: Pair) -> Job:
        """Remove and return the trial of a pair that starts next. The flow has counted it as started already."""
        return Job(self._waiting[pair].pop(), pair)

    def take(self, pair: Pair, most: int) -> list[Job]:
        """Remove and return the next waiting trials of a pair, which are not started."""
        waiting = self._waiting.get(pair, array("i"))
        taken = [Job(waiting.pop(), pair) for _ in range(min(most, len(waiting)))]
        self._flow.add(pair, -len(taken))
        return taken

    def drop(self, pair: Pair) -> None:
        """Remove all waiting trials of a pair."""
        self._flow.add(pair, -len(self._waiting.pop(pair, ())))
