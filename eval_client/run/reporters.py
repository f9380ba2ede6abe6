"""What a run reports: why it makes no progress, how its endpoints are shared, and its demand, for autoscalers."""

import hashlib
import time
from collections import Counter
from collections.abc import Mapping

from eval_client.core import Pair
from eval_client.core.limits.pool import Share
from eval_client.core.progress import Progress
from eval_client.core.stall import STILL_S, StallDetector, StallReasons
from eval_client.endpoints.endpoints import Endpoints
from eval_client.plan.plan import Plan
from eval_client.run.context import RunContext
from eval_client.store.store import Store
from proctor.observability.redaction import redacted
from proctor.tables.table import counted

COUNT_S = 2.0
"""Demand is counted at most this often, as a run may have many pairs."""
MAX_CHARS = 8192
MAX_NAMES = 3
TOLD_S, MOST_LOST = 300.0, 3
"""For how long, and of how many workers, it is told that they are lost, unless they are back."""


class StallReporter:
    """Detects stalls and trouble of a run."""

    def __init__(self, context: RunContext, begun: float) -> None:
        self._context = context
        self._stall = StallDetector(self._achieved(), begun)

    def look(self, now: float) -> tuple[str, ...]:
        """The run's trouble and stall, one line each; empty while it makes progress. `now` is monotonic."""
        lasts_s = self._stall.lasts_s(self._achieved(), now)
        failing = self._failing(now)
        away = self._context.client.outage.since is not None
        reasons = () if lasts_s < STILL_S or away else self._reasons(now, down=bool(failing))
        still = (f"no progress for {lasts_s:.0f} s: {'; '.join(reasons)}",) if reasons else ()
        trouble = self._context.progress.trouble
        return tuple(map(redacted, (*failing, *still) if trouble is None else (trouble, *failing, *still)))

    def _failing(self, now: float) -> tuple[str, ...]:
        """A line for a task server that is away, each lost worker, and each endpoint without an answer for STILL_S."""
        schedule, server = self._context.schedule, self._context.client.outage
        found = [] if server.since is None else [f"{server}; trials wait for it, no attempt is used"]
        found += [cause for at, cause in self._context.client.lost.values() if now - at < TOLD_S][-MOST_LOST:]
        for name, outage in self._context.endpoints.outages.items():
            if outage.since is None or (lasts_s := now - outage.since) < STILL_S:
                continue
            held = schedule.held_up(name)
            waits = f"is down, {counted(held, 'trial')} wait{'s' * (held == 1)} for it; it " if outage.down else ""
            found.append(f"endpoint {name} {waits}has answered nothing for {lasts_s:.0f} s: {outage.cause}")
        return tuple(found)

    def _reasons(self, now: float, *, down: bool) -> tuple[str, ...]:
        context, waiting = self._context, self._context.schedule.unstarted()
        pending = {task for _, task in waiting}
        return StallReasons(
            now=now,
            tasks={task: why for task, why in context.progress.task_waits.items() if task in pending},
            cooling={name: limit.cool_for_s(now) for name, limit in context.endpoints.limits.items()},
            paced={name: text for name in context.endpoints.shares if (text := paced(context.endpoints, name))},
            models=context.endpoints.calls.values(),
            down=down,
            failures=context.endpoints.troubles,
            server=context.client.held_up(),
            store_since=context.journal.waiting_since,
            slots=self._slots(waiting),
            quiet=context.schedule.quiet,
        ).reasons()

    def _slots(self, waiting: Mapping[Pair, int]) -> Counter[str]:
        slots: Counter[str] = Counter()
        for pair, trials in waiting.items():
            slots[self._context.schedule.flow.waits_for(pair) or "agent"] += trials
        return slots

    def _achieved(self) -> tuple[int, ...]:
        progress, turns = self._context.progress, self._context.journal.turns
        return turns, progress.attempts_lost, sum(progress.scored.values()), sum(progress.unscored.values())


def shared_lines(endpoints: Endpoints) -> tuple[str, ...]:
    """One line for each endpoint that is shared, can't be shared, or has waiting requests, and each replica down."""
    found = []
    for name, share in endpoints.shares.items():
        parts = [f"not shared with other runs: {endpoints.unshared[name]}"] if name in endpoints.unshared else []
        parts += [part for part in (_part(share), paced(endpoints, name)) if part]
        if parts:
            found.append(f"endpoint {name}: {'; '.join(parts)}")
    for name, replicas in endpoints.replicas.items():
        down = [replica for replica in replicas.all.values() if replica.outage.down and not replica.gone]
        if not replicas.whole.down:  # else that is told as the run's trouble
            found += [f"endpoint {name}: replica {one.url} is down: {one.outage.cause}" for one in down]
    return tuple(map(redacted, found))


def _part(share: Share) -> str | None:
    if not share.others:
        return None
    runs = "1 other run" if len(share.others) == 1 else f"{len(share.others)} other runs"
    more = ", ..." if len(share.others) > MAX_NAMES else ""
    names = ", ".join(share.others[:MAX_NAMES]) + more
    return f"shared with {runs} ({names}), {share.grant} of {int(share.level.limit)} trials at once are for this client"


def paced(endpoints: Endpoints, name: str) -> str | None:
    """How many requests wait because of which rate (`rpm` or `tpm`); None where none waits."""
    gate = endpoints.gates[name]
    count, rate = gate.waits()
    if not count:
        return None
    return f"{count} {'request' if count == 1 else 'requests'} waiting for {rate} ({getattr(gate.rates, rate)})"


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
