"""Clients' demand for sessions, as they report it; an autoscaler adds slots by it."""

from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client import Metric

from proctor.observability.metrics import gauge
from task_server.wire.messages import TasksQuery

SILENT_S = 30.0
"""A client's demand is dropped when it has been silent for this long after its request was answered."""
MAX_CLIENTS = 1_000
MAX_TASKS = 1_000


@dataclass(frozen=True, slots=True)
class _Demand:
    wants: Mapping[str, int]
    until: float


class DemandTracker:
    """Pure: the latest demand of each client."""

    def __init__(self) -> None:
        self._demands: dict[str, _Demand] = {}

    def record(self, query: TasksQuery, now: float) -> None:
        """Record the demand in a request for the tasks. The client does not count as silent while the request waits."""
        if query.client is None:
            return
        self._demands.pop(query.client, None)
        if query.wants:
            self._demands[query.client] = _Demand(query.wanted(), now + query.wait_s + SILENT_S)
        while len(self._demands) > MAX_CLIENTS:
            self._demands.pop(next(iter(self._demands)))

    def total(self, now: float) -> dict[str, int]:
        """task -> sessions that all clients together want, tasks that no worker holds included."""
        self._demands = {client: demand for client, demand in self._demands.items() if demand.until > now}
        total: dict[str, int] = {}
        for demand in self._demands.values():
            for task, sessions in demand.wants.items():
                if task in total or len(total) < MAX_TASKS:
                    total[task] = total.get(task, 0) + sessions
        return total

    def metric(self, now: float) -> Metric:
        """The total demand as a metric."""
        wanted = {(task,): sessions for task, sessions in self.total(now).items()}
        return gauge("proctor_task_demand", "Sessions that clients could hold if there were slots.", ("task",), wanted)
