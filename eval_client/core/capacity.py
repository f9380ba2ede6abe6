"""Pure: the limits on trials under way: of agents, endpoints and tasks, and this client's quotas of them."""

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from eval_client.core.flow import Flow, Pair
from eval_client.core.limits.shares import Quota


class Slots(NamedTuple):
    """The slots of a task."""

    ours: int
    """Slots that this client may use, by the task server's list."""
    total: int
    """All slots, for all clients."""


class CapacityLimits:
    """Keeps a flow's capacities. Of a limit shared with other clients, this client has 0 until it is granted some."""

    def __init__(
        self,
        *,
        endpoint_of: Mapping[str, str],
        concurrency: Mapping[str, int],
        pairs: Collection[Pair],
        pooled: Iterable[str],
        alone: bool,
    ) -> None:
        self.flow = Flow(dict(endpoint_of))
        self.pairs = tuple(pairs)
        self._endpoints = dict.fromkeys(endpoint_of.values(), 0)
        self._agents = dict(concurrency)
        self._tasks = {task: Slots(0, 0) for _, task in pairs}
        self._alone = alone
        self._grants = {f"endpoint {name}": 0 for name in pooled}
        self._apply()
        for pair in pairs:
            self.flow.add(pair, 0)

    def limit_task(self, task: str, ours: int, total: int) -> None:
        """Set how many sessions of a task the task server can hold: for this client, and for all."""
        self._tasks[task] = Slots(ours, total)
        self.flow.limit_task(task, self._bounded(f"task {task}", ours))

    def limit_endpoints(self, capacities: Mapping[str, int]) -> None:
        """Set how many trials endpoints take at once."""
        self._endpoints.update(capacities)
        for name, capacity in capacities.items():
            self.flow.limit_endpoint(name, self._bounded(f"endpoint {name}", capacity))

    def grant(self, grants: Mapping[str, int]) -> None:
        """Set this client's part of shared limits: limit -> trials at once."""
        self._grants.update(grants)
        self._apply()

    def whole(self) -> dict[str, int]:
        """The limits of agents and tasks over all clients, by name."""
        agents = {f"agent {name}": limit for name, limit in self._agents.items()}
        return {**agents, **{f"task {name}": slots.total for name, slots in self._tasks.items()}}

    def quotas(self, startable: Mapping[Pair, int]) -> dict[str, Quota]:
        """limit -> what this client holds and wants of it, given the trials that it could start"""
        wanted: dict[str, int] = {}
        for (agent, task), count in startable.items():
            if self._tasks[task].total:
                for name in (f"endpoint {self.flow.endpoint_of[agent]}", f"agent {agent}", f"task {task}"):
                    wanted[name] = wanted.get(name, 0) + count
        uses = {f"{kind} {name}": use for kind, nodes in self.flow.use().items() for name, use in nodes.items()}
        return {
            name: Quota(held=max(used, capacity), wanted=used + wanted.get(name, 0))
            for name, (used, capacity) in uses.items()
        }

    def rooms(self) -> dict[Pair, int]:
        """How many trials of each pair this client may play at once, by its present capacities."""
        use = self.flow.use()
        return {
            (agent, task): min(use["endpoint"][self.flow.endpoint_of[agent]][1], use["agent"][agent][1], slots[1])
            for agent in self._agents
            for task, slots in use["task"].items()
        }

    def _apply(self) -> None:
        self.limit_endpoints(self._endpoints)
        for name, limit in self._agents.items():
            self.flow.limit_agent(name, self._bounded(f"agent {name}", limit))
        for name, slots in self._tasks.items():
            self.limit_task(name, *slots)

    def _bounded(self, name: str, capacity: int) -> int:
        return min(capacity, self._grants.get(name, capacity if self._alone else 0))
