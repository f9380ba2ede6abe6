"""A run under way: its journal, endpoints and runner, and the sessions that it still has to end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

from eval_client.core.capacity import CapacityLimits
from eval_client.core.events import EndpointsChanged, Event
from eval_client.core.progress import ErrorLimit, Progress
from eval_client.core.schedule import Schedule
from eval_client.core.spend import Spend
from eval_client.endpoints.endpoints import Endpoints
from eval_client.plan.plan import Plan
from eval_client.run.runner import Runner
from eval_client.store.journal import Journal
from eval_client.store.records import Manifest, PairTotals, PlanPart
from eval_client.store.store import Store
from eval_client.trial.agent_kind import LoopAgents
from eval_client.trial.player import TrialPlayer
from eval_client.trial.services import Services
from proctor.http.client import HttpClient
from proctor.observability.descriptors import OutOfDescriptors
from task_server.client.client import TaskClient
from task_server.wire.errors import TaskServerError

if TYPE_CHECKING:
    from eval_client.endpoints.called_agents import CalledAgent

END_S = 15.0
"""Longest wait for sessions to be ended; those left over end with their leases."""
ABANDONED_END_S = 2.0
"""The same for an abandoned run."""


@dataclass(frozen=True)
class RunContext:
    """The parts of a run under way, for code that watches or interrupts it."""

    plan: Plan
    runner: Runner
    player: TrialPlayer
    endpoints: Endpoints
    services: Services
    manifest: Manifest
    store: Store
    fence: int
    """The number by which the store accepts this client's writes."""
    client: TaskClient
    journal: Journal

    @property
    def run(self) -> str:
        """The run's name."""
        return self.store.run

    @cached_property
    def digests(self) -> Mapping[str, str]:
        """task -> the digest that the run began with"""
        return self.manifest.digests()

    @property
    def schedule(self) -> Schedule:
        """What is played, waits and was refused, for reading."""
        return self.runner.schedule

    @property
    def progress(self) -> Progress:
        """The progress of the whole run."""
        return self.runner.schedule.progress

    @property
    def divided_by(self) -> int:
        """By what the plan's limits are divided."""
        return divided_by(self.manifest.part, self.store)


class Endings:
    """The sessions and conversations that are being ended, each by a call that nothing else waits for."""

    def __init__(self, client: TaskClient, endpoints: Endpoints) -> None:
        self._client, self._endpoints = client, endpoints
        self._under_way: set[asyncio.Task[None]] = set()

    def session(self, url: str, session: str) -> None:
        """End a session that is not needed any more."""
        self._begin(self._end(url, session))

    def conversations(self, agent: str, session: str, names: Iterable[str]) -> None:
        """End what a stateful agent remembers of a session."""
        self._begin(self._endpoints.end(agent, session, names))

    def _begin(self, call: Coroutine[None, None, None]) -> None:
        ending = asyncio.create_task(call)
        self._under_way.add(ending)
        ending.add_done_callback(self._under_way.discard)

    async def _end(self, url: str, session: str) -> None:
        """If this fails, the session's lease ends it."""
        with contextlib.suppress(TaskServerError, OutOfDescriptors):
            await self._client.end(session, url or None)

    async def close(self, longest_s: float) -> None:
        """Wait for them, and leave those that take longer to their leases."""
        if self._under_way:
            await asyncio.wait(self._under_way, timeout=longest_s)
        for ending in list(self._under_way):
            ending.cancel()


@contextlib.asynccontextmanager
async def run_context(
    plan: Plan,
    manifest: Manifest,
    store: Store,
    fence: int,
    *,
    http: HttpClient,
    client: TaskClient,
    builtin: str | None,
    called: "Mapping[str, CalledAgent]" = MappingProxyType({}),
    commands: LoopAgents | None = None,
    error_limit: ErrorLimit | None = None,
    most: int | None = None,
) -> AsyncIterator[RunContext]:
    """Build the parts of a run; afterwards, end its sessions, say that it plays no more, and close the journal.

    At `error_limit` it drains. At most `most` trials are played at once.
    """
    part, of = manifest.part, divided_by(manifest.part, store)
    totals = store.pair_totals()
    progress, spend = _progress(totals), spent_so_far(plan, store, totals, of)
    runner: Runner | None = None

    def trouble(what: str | None) -> None:
        progress.trouble = what

    def tell(event: Event) -> None:
        if runner is not None:
            runner.handle(event)

    def endpoints_changed() -> None:
        tell(_capacities(endpoints))

    journal = Journal(store, fence, trouble)
    services = Services(tell, plan.limits.patience_s)
    pools_all = part is not None and of == 1
    endpoints = Endpoints(plan, http, spend, builtin, endpoints_changed, called=called, of=of, pools_all=pools_all)
    endpoints.began_with = manifest.models
    endings = Endings(client, endpoints)
    player = TrialPlayer(
        plan=plan,
        digests=manifest.digests(),
        store=store,
        journal=journal,
        server=client,
        endpoints=endpoints,
        progress=progress,
        end_session=endings.session,
        end_conversations=endings.conversations,
        services=services,
        commands=commands,
    )
    schedule = _schedule(plan, endpoints, progress, part=part, error_limit=error_limit)
    schedule.flow.most = most
    runner = Runner(schedule, player, spend, _releasing(endpoints, client))
    try:
        yield RunContext(plan, runner, player, endpoints, services, manifest, store, fence, client, journal)
    finally:
        await endings.close(ABANDONED_END_S if schedule.abandoned else END_S)
        with contextlib.suppress(TaskServerError, OutOfDescriptors, TimeoutError):
            async with asyncio.timeout(ABANDONED_END_S):
                await client.give_way()
        await journal.close()


def _schedule(
    plan: Plan, endpoints: Endpoints, progress: Progress, *, part: PlanPart | None, error_limit: ErrorLimit | None
) -> Schedule:
    of = 1 if part is None else part.of
    limits = CapacityLimits(
        endpoint_of={agent.name: plan.endpoint_of(agent).name for agent in plan.agents},
        concurrency={agent.name: max(1, plan.concurrency_of(agent) // of) for agent in plan.agents},
        pairs=plan.pairs(),
        pooled={endpoint.name for endpoint in endpoints.pooled.values()},
    )
    schedule = Schedule(limits, progress, attempts=plan.limits.attempts, error_limit=error_limit)
    schedule.handle(_capacities(endpoints))
    return schedule


def _capacities(endpoints: Endpoints) -> EndpointsChanged:
    """How many trials the endpoints take at once now."""
    capacities = endpoints.capacities()
    down = frozenset(name for name in capacities if endpoints.is_down(name))
    return EndpointsChanged({name: 1 if name in down else room for name, room in capacities.items()}, down)


def _releasing(endpoints: Endpoints, client: TaskClient) -> Callable[[], None]:
    """Tells the trials that wait for an endpoint or task server to wait no more, or shorter."""

    def stop() -> None:
        client.outage.hurried = True
        for outage in endpoints.outages.values():
            outage.release()
        for replicas in endpoints.replicas.values():
            replicas.release()

    return stop


def divided_by(part: PlanPart | None, store: Store) -> int:
    """By what a run divides its plan's limits: a part by the number of parts, unless one server has all stores."""
    return 1 if part is None or store.engine.dialect.name != "sqlite" else part.of


def spent_so_far(plan: Plan, store: Store, totals: Sequence[PairTotals], of: int = 1) -> Spend:
    """What a run has spent by its rows, against its part of the plan's limits; `totals` are those of all its pairs."""
    spend = Spend(plan.limits.run.divided(of), plan.all_prices())
    for agent, tokens in store.spent(totals).items():
        spend.add(agent, tokens)
    for cost in store.helper_costs():
        spend.add_helper(cost.model, cost.tokens, cost.task)
    for pair in totals:
        spend.turns[pair.task] += pair.turns
    return spend


def _progress(totals: Sequence[PairTotals]) -> Progress:
    pairs = {(pair.agent, pair.task): pair for pair in totals}
    return Progress(
        planned={key: pair.planned for key, pair in pairs.items()},
        scored={key: pair.scored for key, pair in pairs.items()},
        score_sum={key: (pair.mean or 0.0) * pair.scored for key, pair in pairs.items()},
    )
