"""Executes a whole run: starts its servers, plays its trials, stores its summaries, stops everything."""

import asyncio
import contextlib
import logging
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eval_client.core.events import Abandon, TrialsTaken
from eval_client.core.progress import RunResult
from eval_client.core.spend import OUT_OF
from eval_client.own_runs import list_run, succeed
from eval_client.plan.plan import Plan
from eval_client.run.context import RunContext, divided_by, run_context
from eval_client.run.preflight import (
    PreflightError,
    SeenServers,
    check_folder,
    check_functions,
    check_plan,
    check_servers,
    check_tasks,
    check_usable,
    limits_of_part,
    listed_samples,
    new_run,
    trials_at_once,
)
from eval_client.run.reporters import DemandReport
from eval_client.run.request import RunRequest, Watcher, check_in_process, function_callers
from eval_client.run.servers import LocalServers, local_servers, servers_with_called, servers_with_worker
from eval_client.run.sharing import SharedSpending, Sharing
from eval_client.run.task_watcher import TaskWatcher
from eval_client.store.connection import RunExists, RunOver, StoreError, retry_until_available
from eval_client.store.lock import taken_over
from eval_client.store.records import Manifest, PairTotals, Trial, now_text
from eval_client.store.runs import find_parts
from eval_client.store.sqlite_file import check_before_resume, check_whole, file_of
from eval_client.store.store import Store
from eval_client.trial.agent_kind import loop_agents
from proctor import breakpoints, event_loop
from proctor.config.tokens import AccessTokens
from proctor.http.client import HttpClient, http_client
from proctor.observability.descriptors import SHORTAGE, allow_descriptors, descriptors_for, trials_for
from task_server.client.client import HELD_S, TaskClient
from task_server.wire.clients import PLAYED_ELSEWHERE, SILENT_S
from task_server.wire.errors import TaskServerError
from task_server.wire.messages import SampleList, Sender

log = logging.getLogger(__name__)

POLL_S = 5.0
ABANDONED_CLOSE_S = 3.0
SILENCE_LOOK_S = 0.5
NOT_SILENT = "run %r: another client played it within %.0f s; waiting until that client is silent"
SUMMARIES_S = 60.0
"""Longest wait for the task server's summary of a pair."""


async def execute(request: RunRequest, watch: Watcher) -> RunResult:
    """Play the run to its end, or until it is stopped.

    Raises PreflightError, StoreError, ServerProcessError, TaskServerError, Fenced.
    """
    functions = any(agent.is_function for agent in request.plan.agents)
    own_code = _own_code if request.in_process or functions else contextlib.nullcontext
    try:
        with own_code():
            return await _execute(request, watch)
    except RunOver:
        return RunResult(None, {})  # another client played it to its end meanwhile


@contextlib.contextmanager
def _own_code() -> Iterator[None]:
    """While inside, code of the user's runs in this process: what blocks it is said, and it may stop for a person."""
    with event_loop.watched(), breakpoints.stops():
        yield


async def _execute(request: RunRequest, watch: Watcher) -> RunResult:
    plan = request.plan
    check_usable(plan)
    check_folder(request.folder)
    check_in_process(request)
    request.store.check()
    if request.resume:
        check_before_resume(request.store.engine, request.store.run, request.store.state())
    request.announce(_starting(request))
    most = _most_trials(plan)
    async with http_client(tls=plan.tls) as http, _servers(request) as local:
        client = _client(plan, http, local)
        if (stopping := breakpoints.stopping_file()) is not None:
            request.announce(f"one trial at a time: {stopping} calls breakpoint()")
            most = 1
        request.announce(f"asking {'its workers' if local.controller else plan.controller} for the samples")
        known = request.store.manifest() if request.resume else None
        listed = await listed_samples(plan, client, known.digests() if known else {}, own=local.controller is not None)
        seen = await check_servers(known, plan, http)
        manifest = _begin(request, listed, known, seen)
        await _say_bounds(request, client, manifest)
        user = os.environ.get("PROCTOR_USER", "")
        client.play_for(sender := Sender(manifest.id, request.store.run, user, client=secrets.token_hex(16)))
        trials: Iterable[Trial] = ()

        async def ready() -> None:
            nonlocal manifest, trials
            await _take_up(request, client, sender)
            manifest, trials = _with_lock(request, manifest, listed, seen)

        async with taken_over(request.store, ready, waits=request.either) as fence:
            if request.resume or request.either:
                manifest = _resumed(request, manifest, trials, fence)
            async with (
                loop_agents(plan, request.folder) as commands,
                run_context(
                    plan,
                    manifest,
                    request.store,
                    fence,
                    http=http,
                    client=client,
                    builtin=local.agents,
                    called=local.called,
                    commands=commands,
                    error_limit=request.fail_on_error,
                    most=most,
                ) as context,
            ):
                ended = await _play(request, context, client, local, watch)
            if not ended.abandoned:
                await summarize(request.store, client, manifest.digests())
            with contextlib.suppress(TimeoutError):  # on a time-out, an abandoned run stays `running`
                async with asyncio.timeout(ABANDONED_CLOSE_S if ended.abandoned else None):
                    ended = await retry_until_available(_close, request.store, ended, fence, aside=False)
            return ended


def _with_lock(
    request: RunRequest, manifest: Manifest, listed: Mapping[str, SampleList], seen: SeenServers
) -> tuple[Manifest, Iterable[Trial]]:
    """A run's manifest, which the request's plan fits, and the trials that are added.

    Called with the run's lock, until which another client may have extended it, and before anything is changed. Raises
    PreflightError.
    """
    if not (request.resume or request.either):
        return manifest, ()
    manifest = seen.noted(request.store.manifest())
    trials: Iterable[Trial] = ()
    if request.extend is not None:
        manifest, trials = request.extend(request, manifest, listed)
    unchecked = check_plan(manifest, request.plan, request.functions)
    if not request.resume:
        return manifest, trials
    for note in unchecked:
        log.warning("%s", note)
    notes = dict.fromkeys((*manifest.model_notes, *unchecked))
    return manifest.model_copy(update={"model_notes": tuple(notes)}), trials


def _resumed(request: RunRequest, manifest: Manifest, trials: Iterable[Trial], fence: int) -> Manifest:
    """The manifest with the plan that goes on, stored; trials that are to be played again are pending then."""
    if request.resume:
        changed = {"plan": request.plan.model_dump(mode="json"), "overrides": request.overrides}
        changed |= {"plan_path": request.plan_path, "resumed_at": (*manifest.resumed_at, now_text())}
        manifest = manifest.model_copy(update=changed)
        list_run(request.store.run, manifest)
    request.store.update_manifest(manifest, trials, fence)
    if request.again is not None:
        request.store.play_again(request.again, fence)
    return manifest


async def _take_up(request: RunRequest, client: TaskClient, sender: Sender) -> None:
    """Return once no other client of the run is heard. Raises PreflightError where one plays on."""
    client.play_for(sender._replace(succeeds=succeed(sender)))
    if await client.give_way():
        log.warning(NOT_SILENT, request.store.run, SILENT_S)
        give_up = time.monotonic() + HELD_S
        while await client.give_way():
            if time.monotonic() > give_up:
                raise PreflightError(PLAYED_ELSEWHERE)
            await asyncio.sleep(SILENCE_LOOK_S)


def _most_trials(plan: Plan) -> int | None:
    """How many trials at once the files and connections of this process are enough for; None: all of the plan's."""
    SHORTAGE.patience_s = plan.limits.patience_s
    wanted = sum(map(plan.concurrency_of, plan.agents))
    allowed = allow_descriptors(descriptors_for(wanted))
    if wanted <= (most := trials_for(allowed)):
        return None
    log.warning(
        "at most %d trials are played at once, for which the %d files and connections are enough that this process may "
        "open; the plan's %d need `ulimit -n %d`",
        most,
        allowed,
        wanted,
        descriptors_for(wanted),
    )
    return most


def _begin(
    request: RunRequest, listed: Mapping[str, SampleList], known: Manifest | None, seen: SeenServers
) -> Manifest:
    """The run's manifest: stored if the run is new, else compared with plan and tasks.

    Raises RunExists, PreflightError.
    """
    if known is None:
        _check_parts(request, listed, seen)
        from_plan = request.plan, request.plan_path, request.overrides
        manifest, trials = new_run(
            *from_plan, request.limit, listed, filters=request.filters, part=request.part, functions=request.functions
        )
        manifest = seen.noted(manifest)
        list_run(request.store.run, manifest)
        try:
            request.store.create(manifest, trials)
            return manifest
        except RunExists:
            if not request.either:
                raise
            known = request.store.manifest()
            check_before_resume(request.store.engine, request.store.run, request.store.state())
            check_plan(known, request.plan, request.functions)
    check_tasks(known, listed)
    return known


def _check_parts(request: RunRequest, listed: Mapping[str, SampleList], seen: SeenServers) -> None:
    """Raises PreflightError where another part of the plan that lies beside was begun with something else."""
    if request.part is None:
        return
    server = None if file_of(request.store.engine) is not None else request.store.engine
    for other in find_parts(request.part.plan, server, request.folder.parent):
        if other.run == request.store.run or not other.run.endswith(f"of{request.part.of}"):
            continue
        try:
            manifest = other.manifest()
            check_plan(manifest, request.plan, request.functions)
            check_tasks(manifest, listed)
            check_functions(manifest, seen.models)
        except PreflightError as error:
            raise PreflightError(f"part {other.run}: {error}") from error
        except StoreError as error:
            log.warning("part %s is not compared: %s", other.run, error)


async def _say_bounds(request: RunRequest, client: TaskClient, manifest: Manifest) -> None:
    """Say how many trials each model plays at once, and what binds them; of a part, how it shares the plan's limits."""
    if manifest.part is not None:
        log.warning("%s", limits_of_part(manifest.part, divided_by(manifest.part, request.store)))
        return
    with contextlib.suppress(TaskServerError, TimeoutError):
        async with asyncio.timeout(POLL_S):
            listed = await client.tasks()
        sessions = {task.name: task.total for task in listed.tasks}
        for agent in [agent for agent in request.plan.agents if agent.is_model]:
            request.announce(trials_at_once(request.plan, agent, sessions))


def _client(plan: Plan, http: HttpClient, local: LocalServers) -> TaskClient:
    return TaskClient(
        local.controller or plan.controller,
        http,
        local.token if local.controller else AccessTokens.of(plan.token_env),
        patience_s=plan.limits.patience_s,
        relayed=plan.route == "relayed",
        here=local.here,
        blocks_s=None if local.here else _blocks_s(plan),
        outlasts=True,
    )


def _blocks_s(plan: Plan) -> float | None:
    """How long a session may block its worker, which is interrupted then; a worker of this process is not."""
    seconds, patience_s = plan.limits.trial.seconds, plan.limits.patience_s
    return None if seconds is None else min(seconds, 0.75 * patience_s)


def _servers(request: RunRequest) -> contextlib.AbstractAsyncContextManager[LocalServers]:
    plan, callers = request.plan, function_callers(request)
    if request.served is not None:
        served = contextlib.nullcontext(request.served.servers())
        return servers_with_called(served, callers, {}, ()) if callers else served
    own = [agent for agent in plan.agents if agent.endpoint is None]
    policies = {agent.model or agent.name: agent.policy for agent in own if agent.policy is not None}
    here = request.agents_here or bool(callers or request.worlds)
    servers = local_servers(
        request.folder / "logs",
        plan.definitions(),
        workers=plan.local.workers if plan.controller == "local" and not request.in_process else 0,
        builtin_agents=() if here else tuple(policies.items()),
    )
    if request.in_process:
        servers = servers_with_worker(servers, plan.definitions(), request.worlds)
    if not here:
        return servers
    named = {agent.name: agent.policy for agent in own if agent.policy is not None}
    return servers_with_called(servers, callers, named, plan.definitions())


def _starting(request: RunRequest) -> str:
    """The servers that the run starts, as text."""
    plan, servers = request.plan, []
    if request.served is None and plan.controller == "local" and not request.in_process:
        workers = plan.local.workers
        servers = ["1 worker"] if workers == 1 else ["a controller", f"{workers} workers"]
    built_in = any(agent.builtin is not None and agent.endpoint is None for agent in plan.agents)
    if request.served is None and built_in and not request.agents_here:
        servers.append("an agent server")
    here = "playing in this process" if request.in_process else f"calling {plan.controller}"
    return f"starting {', '.join(servers)}" if servers else here


async def _play(
    request: RunRequest, context: RunContext, client: TaskClient, local: LocalServers, watch: Watcher
) -> RunResult:
    """Play beside the loops that keep the runner informed. If a loop or a server fails, the run ends."""
    runner, limits = context.runner, request.plan.limits
    demand = DemandReport(request.store, request.plan, context.progress, context.endpoints)
    spending = SharedSpending(context)
    await spending.exchange()
    runner.handle(TrialsTaken(await retry_until_available(request.store.pending)))
    watcher, replicas = TaskWatcher(context, demand, limits.patience_s), context.endpoints.watches()
    loops = (watcher.run(), Sharing(context).run(), spending.run(), *(each.run() for each in replicas))
    informed = asyncio.gather(*loops)
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
            ended = await playing
    finally:
        for task in (playing, informed):
            task.cancel()
        await asyncio.gather(playing, informed, return_exceptions=True)
    if not ended.abandoned:
        await spending.exchange()
    return ended


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


def _close(store: Store, ended: RunResult, fence: int) -> RunResult:
    """Store the run's final state. One that was stopped when each trial had its score has ended by itself."""
    whole = all(pair.complete for pair in store.pair_totals())
    ended = RunResult(None, {}) if whole else ended
    if ended.stopped is not None:
        state = "interrupted" if ended.limit is None else OUT_OF[ended.limit]
    else:
        if file_of(store.engine) is not None:  # it is checked at rest
            store.engine.dispose()
            check_whole(store.engine, store.run)
        state = "finished" if whole else "incomplete"
    store.set_state(state, fence)
    return ended
