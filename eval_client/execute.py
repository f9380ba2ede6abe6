"""Executes a whole run: starts its servers, plays its trials, stores its summaries, stops everything."""

import asyncio
import contextlib
import dataclasses
import logging
import os
import time
from collections.abc import Mapping
from typing import Any

from eval_client.core.events import Abandon
from eval_client.core.progress import RunResult
from eval_client.core.spend import OUT_OF
from eval_client.core.stall import STILL_S, StallReasons
from eval_client.plan.plan import Plan
from eval_client.preflight import (
    PreflightError,
    check_plan,
    check_servers,
    check_tasks,
    check_trust,
    check_usable,
    new_run,
    trials_at_once,
)
from eval_client.run.context import RunContext, run_context
from eval_client.run.demand_report import DemandReport
from eval_client.run.shard_coordinator import ShardCoordinator, leaves_early, must_close, until_over
from eval_client.run.sharing import Sharing
from eval_client.run.supply import LoneSupply
from eval_client.run.task_watcher import TaskWatcher
from eval_client.run_request import RunRequest, Watcher, check_functions, check_shards
from eval_client.servers.local import LocalServers, local_servers, servers_with_functions
from eval_client.servers.shard_processes import shard_processes
from eval_client.store.connection import RunExists, RunOver, retry_until_available
from eval_client.store.damage import check_at_rest, check_before_resume
from eval_client.store.member import membership
from eval_client.store.records import Manifest, PairTotals, now_text
from eval_client.store.shards import publish_last
from eval_client.store.store import Store
from eval_client.trial.command import command_agents
from proctor.config.secrets import secret
from proctor.event_loop import allow_descriptors, beside, descriptors_for
from proctor.http.client import AnyClient, http_client
from task_server.client.client import TaskClient
from task_server.wire.errors import TaskServerError
from task_server.wire.messages import SampleList

log = logging.getLogger(__name__)

POLL_S = 5.0
ABANDONED_CLOSE_S = 3.0
SUMMARIES_S = 60.0
"""Longest wait for the task server's summary of a pair."""


async def execute(request: RunRequest, watch: Watcher) -> RunResult:
    """Play the run to its end, or until it is stopped.

    Raises PreflightError, StoreError, ServerProcessError, TaskServerError, Fenced.
    """
    try:
        return await _execute(request, watch)
    except RunOver:
        return RunResult(None, {})  # the run ended before this client could join


async def _execute(request: RunRequest, watch: Watcher) -> RunResult:
    plan = request.plan
    check_usable(plan)
    check_functions(request)
    check_shards(request)
    request.store.check()
    if request.resume:
        check_before_resume(request.store)
    request.announce(_starting(request))
    allow_descriptors(descriptors_for(sum(map(plan.concurrency_of, plan.agents))))
    async with http_client(tls=plan.tls) as http, _servers(request) as local:
        client = _client(plan, http, local)
        request.announce(f"asking {'its workers' if local.controller else plan.controller} for the samples")
        known = request.store.manifest() if request.resume or request.joins else None
        listed = (
            {} if request.started_by_client else await _listed(plan, client, local, known.digests() if known else {})
        )
        leads = not (request.joins or request.started_by_client)
        seen = await check_servers(known, plan, http) if leads else None
        manifest = _begin(request, listed, known)
        if seen is not None and seen.noted(manifest) != manifest:
            manifest = seen.noted(manifest)
            request.store.update_manifest(manifest)
        if leads:
            await _say_bounds(request, client)
        digests = manifest.digests()
        async with membership(request.store, joins=request.joins, either=request.either) as member:
            if request.resume:
                changed = {"plan": plan.model_dump(mode="json"), "overrides": request.overrides}
                changed |= {"resumed_at": (*manifest.resumed_at, now_text())}
                request.store.update_manifest(manifest.model_copy(update=changed))
                if request.again is not None:
                    request.store.play_again(request.again, member.shard)
            async with shard_processes(request.store, request.folder, _options(local), request.shards) as others:
                async with (
                    command_agents(plan, request.folder) as commands,
                    run_context(
                        plan,
                        member,
                        http,
                        client,
                        builtin=local.agents,
                        digests=digests,
                        commands=commands,
                        on_stop=others.stop,
                        error_limit=request.fail_on_error,
                    ) as context,
                ):
                    context.endpoints.began_with = manifest.models
                    ended = await _play(request, context, client, local, watch)
                    if not member.alone and leaves_early(ended):  # others may go on while our sessions end
                        spent = context.endpoints.spend.by_agent
                        await retry_until_available(
                            publish_last, request.store.engine, request.store.run, member.shard, spent
                        )
                if member.alone or await must_close(member, ended):
                    if not ended.abandoned:
                        await summarize(request.store, client, digests)
                    if member.alone or await must_close(member, ended):  # unless another client has joined meanwhile
                        with contextlib.suppress(TimeoutError):  # on a time-out, an abandoned run stays `running`
                            async with asyncio.timeout(ABANDONED_CLOSE_S if ended.abandoned else None):
                                await retry_until_available(_close, request.store, ended, member.shard, aside=False)
                return dataclasses.replace(ended, losses=tuple(await others.ended(until_over(request.store))))


def _begin(request: RunRequest, listed: Mapping[str, SampleList], known: Manifest | None) -> Manifest:
    """The run's manifest: stored if the run is new, else compared with plan and tasks.

    Raises RunExists, PreflightError.
    """
    if known is None:
        from_plan = request.plan, request.plan_path, request.overrides
        manifest, trials = new_run(*from_plan, request.limit, listed, filters=request.filters)
        try:
            request.store.create(manifest, trials.first_of_tasks(), trials.copies())
            return manifest
        except RunExists:
            if not request.either:
                raise
            known = request.store.manifest()
            check_before_resume(request.store)
            check_plan(known, request.plan)
    check_tasks(known, listed)
    return known


async def _say_bounds(request: RunRequest, client: TaskClient) -> None:
    """Say how many trials each model plays at once, and what binds them."""
    with contextlib.suppress(TaskServerError):
        sessions = {task.name: task.total for task in (await client.tasks()).tasks}
        for agent in [agent for agent in request.plan.agents if agent.is_model]:
            request.announce(trials_at_once(request.plan, agent, sessions))


def _options(local: LocalServers) -> list[str]:
    """The options by which other clients on this machine find the servers of this one."""
    urls = {"--controller": local.controller, "--agents": local.agents}
    return [f"{option}={url}" for option, url in urls.items() if url is not None]


def _client(plan: Plan, http: AnyClient, local: LocalServers) -> TaskClient:
    token = secret(plan.token_env)
    return TaskClient(
        local.controller or plan.controller,
        http,
        local.token if local.controller else token.get_secret_value() if token is not None else None,
        patience_s=plan.limits.patience_s,
        relayed=plan.route == "relayed",
    )


def _servers(request: RunRequest) -> contextlib.AbstractAsyncContextManager[LocalServers]:
    plan = request.plan
    if request.served is not None:
        return contextlib.nullcontext(request.served.servers())
    own = [agent for agent in plan.agents if agent.endpoint is None]
    policies = {agent.model or agent.name: agent.policy for agent in own if agent.policy is not None}
    here = request.agents_here or bool(request.functions)
    servers = local_servers(
        request.folder / "logs" / (f"joined-{os.getpid()}" if request.joins else ""),
        plan.definitions(),
        workers=plan.local.workers if plan.controller == "local" else 0,
        builtin_agents=() if here else tuple(policies.items()),
    )
    if not here:
        return servers
    functions = {agent.model or agent.name: request.functions[agent.name] for agent in own if agent.is_function}
    return servers_with_functions(servers, functions, policies, plan.definitions())


def _starting(request: RunRequest) -> str:
    """The servers that the run starts, as text."""
    plan, servers = request.plan, []
    if request.served is None and plan.controller == "local":
        workers = plan.local.workers
        servers = ["1 worker"] if workers == 1 else ["a controller", f"{workers} workers"]
    built_in = any(agent.builtin is not None and agent.endpoint is None for agent in plan.agents)
    if request.served is None and built_in and not request.agents_here:
        servers.append("an agent server")
    return f"starting {', '.join(servers)}" if servers else f"calling {plan.controller}"


async def _play(
    request: RunRequest, context: RunContext, client: TaskClient, local: LocalServers, watch: Watcher
) -> RunResult:
    """Play beside the loops that keep the runner informed. If a loop or a server fails, the run ends."""
    runner, limits = context.runner, request.plan.limits
    demand = DemandReport(request.store, request.plan, context.progress, context.endpoints)
    supply = await _supply(context)
    informed = asyncio.create_task(_inform(context, TaskWatcher(context, demand, limits.patience_s), supply))
    playing = asyncio.create_task(runner.run())
    try:
        with watch(context):
            waited_for: set[asyncio.Future[Any]] = {playing, informed, local.failure}
            await asyncio.wait(waited_for, return_when=asyncio.FIRST_COMPLETED)
            if local.failure.done():
                runner.handle(Abandon(local.failure.result()))
            elif informed.done():
                runner.handle(Abandon("an error; see above"))
                await informed
            return await playing
    finally:
        for task in (playing, informed):
            task.cancel()
        await asyncio.gather(playing, informed, return_exceptions=True)


async def _supply(context: RunContext) -> LoneSupply | ShardCoordinator:
    """What supplies the runner with trials; the first are there already where this client is the only one."""
    if not context.member.alone:
        return ShardCoordinator(context)
    supply = LoneSupply(context.runner, context.member.store)
    await supply.begin()
    return supply


async def _inform(context: RunContext, watch: TaskWatcher, supply: LoneSupply | ShardCoordinator) -> None:
    """Keep the runner informed of task server, endpoints and trials, until cancelled. Raises Fenced."""
    replicas = [each.run() for each in context.endpoints.watches()]
    await asyncio.gather(watch.run(), Sharing(context).run(), supply.run(), *replicas)


async def _listed(
    plan: Plan, client: TaskClient, local: LocalServers, digests: Mapping[str, str]
) -> dict[str, SampleList]:
    """The sample lists of the run's tasks, once the servers have read them. Raises PreflightError."""
    with beside(_explain(client)):
        if local.controller:
            await _await_tasks(plan, client)
        listed = await _list_samples(plan, client, digests)
    check_trust(plan, listed)
    return listed


async def _explain(client: TaskClient) -> None:
    """Log every STILL_S seconds which calls to the task server are not answered."""
    begun = time.monotonic()
    while True:
        await asyncio.sleep(STILL_S)
        now = time.monotonic()
        waits = StallReasons(now=now, server=client.calls.values())
        log.warning("the run has not started after %.0f s: %s", now - begun, "; ".join(waits.reasons()))


async def _await_tasks(plan: Plan, client: TaskClient) -> None:
    """Wait until our own workers have reported to our own controller. Raises PreflightError."""
    names = {task.name for task in plan.tasks}
    try:
        async with asyncio.timeout(plan.limits.patience_s):
            listed = await client.tasks()
            while not names <= {task.name for task in listed.tasks}:
                listed = await client.tasks(after=listed.version, wait_s=POLL_S)
    except TimeoutError as error:
        raise PreflightError(
            f"limits.patience_s: no worker of this run reported within {plan.limits.patience_s:g} s"
        ) from error


async def _list_samples(plan: Plan, client: TaskClient, digests: Mapping[str, str]) -> dict[str, SampleList]:
    names = [task.name for task in plan.tasks]
    try:
        asked = (client.samples(name, digests.get(name)) for name in names)
        return dict(zip(names, await asyncio.gather(*asked), strict=True))
    except TaskServerError as error:
        raise PreflightError(f"controller {plan.controller}: {error}") from error


async def summarize(store: Store, client: TaskClient, digests: Mapping[str, str]) -> None:
    """Store the environments' own metrics of every pair.

    Those of a pair are left out if the task server is gone, or if they lack the primary metric.
    """
    totals = await retry_until_available(store.pair_totals, aside=False)
    await asyncio.gather(*(_summarize_pair(store, client, pair, digests[pair.task]) for pair in totals))


async def _summarize_pair(store: Store, client: TaskClient, pair: PairTotals, digest: str) -> None:
    finishes, *numbers = await retry_until_available(store.clustered_finishes, pair.agent, pair.task, aside=False)
    if not finishes:
        return
    with contextlib.suppress(TaskServerError, TimeoutError):
        async with asyncio.timeout(SUMMARIES_S):
            summary = await client.summarize(pair.task, finishes, *numbers, digest=digest)
        if summary.primary in summary.metrics or not pair.scored:
            await retry_until_available(store.write_summary, pair.agent, pair.task, pair.scored, summary, aside=False)


def _close(store: Store, ended: RunResult, shard: int) -> None:
    """Store the run's final state."""
    if ended.stopped is not None:
        state = "interrupted" if ended.limit is None else OUT_OF[ended.limit]
    else:
        check_at_rest(store)
        state = "finished" if all(pair.complete for pair in store.pair_totals()) else "incomplete"
    store.set_state(state, shard)
