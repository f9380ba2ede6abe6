"""A run under way: its journal, endpoints and runner, and the sessions that it still has to end."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

from eval_client.core.capacity import CapacityLimits
from eval_client.core.error_limit import ErrorLimit
from eval_client.core.events import EndpointsChanged, Event
from eval_client.core.progress import Progress
from eval_client.core.schedule import Schedule
from eval_client.core.spend import Spend
from eval_client.endpoints.endpoints import Endpoints
from eval_client.plan.plan import Plan
from eval_client.run.runner import Runner
from eval_client.store.connection import Fenced
from eval_client.store.journal import Journal
from eval_client.store.member import Member
from eval_client.store.records import PairTotals
from eval_client.store.store import Store
from eval_client.trial.command import CommandAgents
from eval_client.trial.player import TrialPlayer
from eval_client.trial.services import Services
from proctor.http.client import AnyClient
from task_server.client.client import TaskClient
from task_server.wire.errors import TaskServerError

END_S = 15.0
"""Longest wait for sessions to be ended; those left over end with their leases."""
ABANDONED_END_S = 2.0
"""The same for an abandoned run."""


@dataclass(frozen=True)
class RunContext:
    """The parts of a run under way, for code that watches or interrupts it."""

    run: str
    plan: Plan
    digests: Mapping[str, str]
    """task -> the digest that the run began with"""
    runner: Runner
    player: TrialPlayer
    endpoints: Endpoints
    services: Services
    member: Member
    client: TaskClient
    journal: Journal

    @property
    def schedule(self) -> Schedule:
        """What is played, waits and was refused, for reading."""
        return self.runner.schedule

    @property
    def progress(self) -> Progress:
        """The progress of the whole run."""
        return self.runner.schedule.progress


@contextlib.asynccontextmanager
async def run_context(
    plan: Plan,
    member: Member,
    http: AnyClient,
    client: TaskClient,
    *,
    builtin: str | None,
    digests: Mapping[str, str],
    on_stop: Callable[[bool], None],
    commands: CommandAgents | None = None,
    error_limit: ErrorLimit | None = None,
) -> AsyncIterator[RunContext]:
    """Build the parts of a run; afterwards, end its sessions and close the journal.

    `on_stop` is called with False when the run drains, and with True when it is abandoned. At `error_limit` it drains.
    """
    store = member.store
    totals = store.pair_totals()
    progress = _progress(totals)
    spend = Spend(plan.limits.run, plan.all_prices()) if member.joined else spent_so_far(plan, store, totals)

    def trouble(what: str | None) -> None:
        progress.trouble = what

    endings: set[asyncio.Task[None]] = set()

    def end_session(url: str, session: str) -> None:
        ending = asyncio.create_task(_end(member, client, url, session))
        endings.add(ending)
        ending.add_done_callback(endings.discard)

    journal = Journal(store, member.shard, trouble)
    runner: Runner | None = None

    def tell(event: Event) -> None:
        if runner is not None:
            runner.handle(event)

    def endpoints_changed() -> None:
        tell(_capacities(endpoints))

    services = Services(tell, plan.limits.patience_s)
    endpoints = Endpoints(plan, http, spend, builtin, endpoints_changed, ensure_lease=member.ensure_lease)
    player = TrialPlayer(
        plan=plan,
        digests=digests,
        member=member,
        journal=journal,
        server=client,
        endpoints=endpoints,
        progress=progress,
        end_session=end_session,
        services=services,
        commands=commands,
    )
    schedule = _schedule(plan, endpoints, progress, alone=member.alone, error_limit=error_limit)
    runner = Runner(schedule, player, spend, _releasing(endpoints, on_stop))
    try:
        yield RunContext(store.run, plan, digests, runner, player, endpoints, services, member, client, journal)
    finally:
        if endings:
            await asyncio.wait(endings, timeout=ABANDONED_END_S if schedule.abandoned else END_S)
        for ending in list(endings):
            ending.cancel()
        await journal.close()


def _schedule(
    plan: Plan, endpoints: Endpoints, progress: Progress, *, alone: bool, error_limit: ErrorLimit | None
) -> Schedule:
    limits = CapacityLimits(
        endpoint_of={agent.name: plan.endpoint_of(agent).name for agent in plan.agents},
        concurrency={agent.name: agent.concurrency for agent in plan.agents},
        pairs=plan.pairs(),
        pooled=endpoints.pooled,
        alone=alone,
    )
    schedule = Schedule(limits, progress, attempts=plan.limits.attempts, alone=alone, error_limit=error_limit)
    schedule.handle(_capacities(endpoints))
    return schedule


def _capacities(endpoints: Endpoints) -> EndpointsChanged:
    """How many trials the endpoints take at once now."""
    down = frozenset(name for name in endpoints.limits if endpoints.is_down(name))
    return EndpointsChanged({n: 1 if n in down else limit.capacity for n, limit in endpoints.limits.items()}, down)


def _releasing(endpoints: Endpoints, on_stop: Callable[[bool], None]) -> Callable[[bool], None]:
    """`on_stop`, after the trials that wait for an endpoint that is down were told to wait no more."""

    def stop(at_once: bool) -> None:
        for outage in endpoints.outages.values():
            outage.release()
        on_stop(at_once)

    return stop


async def _end(member: Member, client: TaskClient, url: str, session: str) -> None:
    """End a session that is not needed any more; if that fails, its lease ends it."""
    with contextlib.suppress(TaskServerError, Fenced):
        await member.ensure_lease()
        await client.end(session, url or None)


def spent_so_far(plan: Plan, store: Store, totals: Sequence[PairTotals]) -> Spend:
    """What a run has spent by its rows, against the plan's limits; `totals` are those of all its pairs."""
    spend = Spend(plan.limits.run, plan.all_prices())
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
