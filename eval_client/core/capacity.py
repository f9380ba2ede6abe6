"""Pure: the limits on trials under way: of agents, endpoints and tasks."""

from collections.abc import Collection, Iterable, Mapping

from eval_client.core.flow import Flow, Pair
from eval_client.core.limits.shares import Quota


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
