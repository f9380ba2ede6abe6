"""A run's demand: how many sessions of each task it could hold at once if there were slots. For autoscalers."""

import hashlib
import time
from collections.abc import Mapping

from eval_client.core import Pair
from eval_client.core.progress import Progress
from eval_client.endpoints.endpoints import Endpoints
from eval_client.plan.plan import Plan
from eval_client.store.store import Store

COUNT_S = 2.0
"""Demand is counted at most this often, as a run may have many pairs."""
MAX_CHARS = 8192


class DemandReport:
    """A run's demand, as it is sent with `GET /tasks`."""

    def __init__(self, store: Store, plan: Plan, progress: Progress, endpoints: Endpoints) -> None:
        url = store.engine.url.render_as_string(hide_password=True)
        self.client = hashlib.blake2b(f"{url} {store.run}".encode(), digest_size=16).hexdigest()
        """Identifies the run: all its clients send the same id and the same demand, which so counts once."""
        self._plan, self._progress, self._endpoints = plan, progress, endpoints
        self._text, self._counted_at = "", float("-inf")

    def text(self) -> str:
        """The demand as `task:sessions,...`: `TasksQuery.wants`."""
        if time.monotonic() - self._counted_at >= COUNT_S:
            self._counted_at, self._text = time.monotonic(), as_text(self._wanted())
        return self._text

    def _wanted(self) -> dict[str, int]:
        progress = self._progress
        left = {
            pair: planned - progress.scored.get(pair, 0) - progress.unscored.get(pair, 0)
            for pair, planned in progress.planned.items()
        }
        if progress.draining:
            left = dict(progress.running)
        rooms = {
            name: 0 if self._endpoints.is_down(name) else at_once
            for name, at_once in self._endpoints.capacities().items()
        }
        return wanted(self._plan, rooms, left)


def wanted(plan: Plan, endpoints: Mapping[str, int], left: Mapping[Pair, int]) -> dict[str, int]:
    """Pure: task -> sessions wanted, those under way included.

    `endpoints` has the trials that each endpoint takes at once; `left` the trials of each pair without a final row,
    which may be negative for a moment when a client has counted some twice. Each task is counted as if it were the only
    one, so tasks that share an endpoint may together want more than it takes.
    """
    agents = {agent.name: agent for agent in plan.agents}
    by_endpoint: dict[tuple[str, str], int] = {}
    for (agent, task), trials in left.items():
        key = (task, plan.endpoint_of(agents[agent]).name)
        by_endpoint[key] = by_endpoint.get(key, 0) + min(max(0, trials), plan.concurrency_of(agents[agent]))
    total = {task.name: 0 for task in plan.tasks}
    for (task, endpoint), sessions in by_endpoint.items():
        total[task] += min(sessions, endpoints[endpoint])
    return {task: sessions for task, sessions in total.items() if sessions}


def as_text(sessions: Mapping[str, int]) -> str:
    """`task:sessions,...`, the largest first, cut at MAX_CHARS."""
    text = ""
    for task, count in sorted(sessions.items(), key=lambda item: -item[1]):
        more = f"{',' if text else ''}{task}:{min(count, 999_999)}"
        if len(text) + len(more) > MAX_CHARS:
            break
        text += more
    return text
