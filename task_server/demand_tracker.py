"""How many sessions clients say that they could hold, so that somebody can bring as many slots."""

from collections.abc import Mapping
from dataclasses import dataclass

from proctor.observability.metrics import gauge
from task_server.wire.messages import TasksQuery

SILENT_S = 30.0
"""What a client said is forgotten when it was silent for so long after its request was answered."""
MAX_CLIENTS = 1_000
MAX_TASKS = 1_000


@dataclass(frozen=True, slots=True)
class _Said:
    wants: Mapping[str, int]
    until: float


class DemandTracker:
    """Pure: what each client said last."""

    def __init__(self) -> None:
        self._said: dict[str, _Said] = {}

    def said(self, query: TasksQuery, now: float) -> None:
        """A client asks for the tasks; until that is answered it is not silent."""
        if query.client is None:
            return
        self._said.pop(query.client, None)
        if query.wants:
            self._said[query.client] = _Said(query.wanted(), now + query.wait_s + SILENT_S)
        while len(self._said) > MAX_CLIENTS:
            self._said.pop(next(iter(self._said)))

    def standing(self, now: float) -> dict[str, int]:
        """task -> sessions wanted by all clients together; also of tasks that no worker holds."""
        self._said = {client: said for client, said in self._said.items() if said.until > now}
        total: dict[str, int] = {}
        for said in self._said.values():
            for task, sessions in said.wants.items():
                if task in total or len(total) < MAX_TASKS:
                    total[task] = total.get(task, 0) + sessions
        return total

    def expose(self, now: float) -> str:
        """It as a metric."""
        wanted = {(task,): sessions for task, sessions in self.standing(now).items()}
        return gauge("proctor_task_demand", "Sessions that clients could hold if there were slots.", ("task",), wanted)
