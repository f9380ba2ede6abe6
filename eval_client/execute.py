"""A whole run: its servers up, its trials played, its summaries kept, everything down again."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import httpx

from environments.http import http_client
from eval_client.endpoints import Endpoints
from eval_client.journal import Journal
from eval_client.local import LocalServers, local_servers
from eval_client.lock import sole_client
from eval_client.plan import Plan, differences
from eval_client.records import Manifest, TaskRecord, Trial
from eval_client.runner import Ended, Progress, Runner
from eval_client.spend import Spend
from eval_client.store import Store
from eval_client.watch import Watch
from task_server.client import TaskClient
from task_server.errors import TaskServerError
from task_server.protocol import SampleList

END_S = 15.0
POLL_S = 5.0


class Refused(Exception):
    """The run can't be begun or resumed as asked; the message says what to change."""


@dataclass(frozen=True)
class Order:
    """What to execute: a new run of a plan, or what an old one still owes."""

    plan: Plan
    plan_path: str
    store: Store
    folder: Path
    """Of this run: logs of its own servers go to its folder `logs`."""
    resume: bool
    limit: int | None = None


@dataclass(frozen=True)
class Scene:
    """A run under way, for whoever watches or interrupts it."""

    order: Order
    runner: Runner
    endpoints: Endpoints


def trials_of(plan: Plan, samples: Mapping[str, Sequence[str]]) -> list[Trial]:
    """All trials of a run, in the order they are numbered: by pair, then epoch, then sample."""
    keys = (
        (agent, task, sample, epoch)
        for agent, task in plan.pairs()
        for epoch in range(plan.epochs)
        for sample in samples[task]
    )
    return [
        Trial(id=number, agent=agent, task=task, sample=sample, epoch=epoch)
        for number, (agent, task, sample, epoch) in enumerate(keys)
    ]


async def execute(order: Order, watch: Callable[[Scene], contextlib.AbstractContextManager[None]]) -> Ended:
    """Play the run to its end, or until it is stopped.

    Raises Refused, StoreError, LocalServerError, TaskServerError, Fenced.
    """
    plan = order.plan
    async with http_client() as http, _servers(order) as local:
        token = local.token if local.controller else os.environ.get(plan.token_env)
        client = TaskClient(
            local.controller or plan.controller,
            http,
            token,
            patience_s=plan.limits.patience_s,
            relayed=plan.route == "relayed",
        )
        if local.controller:
            await _await_tasks(plan, client)
        listed = await _list_samples(plan, client)
        _check_trust(plan, listed)
        if order.resume:
            _check_tasks(order.store.manifest(), listed)
        else:
            _create(order, listed)
        with sole_client(order.store):
            async with _scene(order, http, client, local.agents) as scene:
                ended = await _play(scene, client, watch)
            await _summarize(order.store, client)
            order.store.set_state(_state(order.store, ended))
    return ended


def _servers(order: Order) -> contextlib.AbstractAsyncContextManager[LocalServers]:
    plan = order.plan
    builtin = [(agent.model or agent.name, agent.builtin) for agent in plan.agents if agent.endpoint is None]
    return local_servers(
        order.folder / "logs",
        plan.definitions(),
        workers=plan.local.workers if plan.controller == "local" else 0,
        builtin_agents=[(name, kind) for name, kind in builtin if kind is not None],
    )


@contextlib.asynccontextmanager
async def _scene(
    order: Order, http: httpx.AsyncClient, client: TaskClient, builtin: str | None
) -> AsyncIterator[Scene]:
    """Everything a run needs while it plays, the journal closed afterwards."""
    store, plan = order.store, order.plan
    progress = _progress(store)
    spend = Spend.of(plan)
    for agent, (prompt, completion) in store.spent().items():
        spend.add(agent, prompt, completion)

    def trouble(what: str | None) -> None:
        progress.trouble = what

    endings: set[asyncio.Task[None]] = set()

    def end_session(url: str, session: str) -> None:
        ending = asyncio.create_task(_end(client, url, session))
        endings.add(ending)
        ending.add_done_callback(endings.discard)

    journal = Journal(store, store.take_over(), trouble)
    runner: Runner | None = None
    endpoints = Endpoints(plan, http, spend, builtin, lambda: runner.endpoint_limits_changed() if runner else None)
    runner = Runner(
        plan=plan,
        store=store,
        journal=journal,
        server=client,
        endpoints=endpoints,
        progress=progress,
        end_session=end_session,
    )
    try:
        yield Scene(order, runner, endpoints)
    finally:
        await asyncio.gather(*endings)
        await journal.close()


async def _play(
    scene: Scene, client: TaskClient, watch: Callable[[Scene], contextlib.AbstractContextManager[None]]
) -> Ended:
    order, runner = scene.order, scene.runner
    names = {task.name for task in order.plan.tasks}
    informed = asyncio.create_task(Watch(runner, client, names, order.plan.limits.patience_s).run())
    try:
        with watch(scene):
            playing = asyncio.create_task(runner.run(order.store.owed(), order.store.under_way()))
            await asyncio.wait([playing, informed], return_when=asyncio.FIRST_COMPLETED)
            if informed.done():
                playing.cancel()
                await informed
            return await playing
    finally:
        informed.cancel()
        await asyncio.gather(informed, return_exceptions=True)


async def _end(client: TaskClient, url: str, session: str) -> None:
    """End a session that is of no more use; where that fails, its lease ends it."""
    with contextlib.suppress(TaskServerError, TimeoutError):
        async with asyncio.timeout(END_S):
            await client.end(session, url or None)


async def _await_tasks(plan: Plan, client: TaskClient) -> None:
    """Until our own workers have reported to our own controller."""
    names = {task.name for task in plan.tasks}
    listed = await client.tasks()
    async with asyncio.timeout(plan.limits.patience_s):
        while not names <= {task.name for task in listed.tasks}:
            listed = await client.tasks(after=listed.version, wait_s=POLL_S)


async def _list_samples(plan: Plan, client: TaskClient) -> dict[str, SampleList]:
    names = [task.name for task in plan.tasks]
    try:
        return dict(zip(names, await asyncio.gather(*map(client.samples, names)), strict=True))
    except TaskServerError as error:
        raise Refused(f"controller {plan.controller}: {error}") from error


def _check_trust(plan: Plan, listed: Mapping[str, SampleList]) -> None:
    for agent, task in plan.pairs():
        if listed[task].trusted_agents_only and plan.agent(agent).builtin is None:
            raise Refused(
                f"task {task}: its isolation is too thin for agent {agent}, which is not built in; "
                "use the environment's full engine (for os: `engine: docker`)"
            )


def _check_tasks(manifest: Manifest, listed: Mapping[str, SampleList]) -> None:
    for name, record in manifest.tasks.items():
        if name in listed and listed[name].digest != record.digest:
            raise Refused(
                f"task {name}: its data, prompts or settings changed since the run began "
                f"(digest {record.digest[:12]} -> {listed[name].digest[:12]}); restore them, or start a new run"
            )


def check_plan(manifest: Manifest, plan: Plan) -> None:
    """Raises Refused where a plan differs from the run's own in anything that shapes a trial."""
    lines = differences(manifest.identity, plan.identity())
    if lines:
        changed = "\n  ".join(lines)
        raise Refused(f"the plan changed since the run began:\n  {changed}\nundo that, or start a new run")


def _create(order: Order, listed: Mapping[str, SampleList]) -> None:
    samples = {name: task.samples[: order.limit] for name, task in listed.items()}
    records = {
        name: TaskRecord(
            environment=task.environment,
            digest=task.digest,
            samples=len(samples[name]),
            comparable=task.comparable,
        )
        for name, task in listed.items()
    }
    manifest = Manifest(
        version=version("proctor"),
        plan_path=order.plan_path,
        plan=order.plan.model_dump(mode="json"),
        identity=order.plan.identity(),
        limit=order.limit,
        tasks=records,
    )
    order.store.create(manifest, trials_of(order.plan, samples))


def _progress(store: Store) -> Progress:
    standing = {(pair.agent, pair.task): pair for pair in store.standing()}
    return Progress(
        planned={key: pair.planned for key, pair in standing.items()},
        scored={key: pair.scored for key, pair in standing.items()},
        score_sum={key: (pair.mean or 0.0) * pair.scored for key, pair in standing.items()},
    )


async def _summarize(store: Store, client: TaskClient) -> None:
    """Keep the environments' own metrics; where the task server is gone by now, the report does without."""
    for pair in store.standing():
        finishes = list(store.finishes(pair.agent, pair.task))
        if not finishes:
            continue
        samples = {sample: number for number, sample in enumerate(dict.fromkeys(row[0] for row in finishes))}
        clusters = [samples[sample] for sample, _, _ in finishes]
        with contextlib.suppress(TaskServerError):
            summary = await client.summarize(pair.task, [finish for _, _, finish in finishes], clusters)
            store.write_summary(pair.agent, pair.task, pair.scored, summary)


def _state(store: Store, ended: Ended) -> str:
    if ended.stopped is not None:
        return "interrupted"
    return "finished" if all(pair.scored == pair.planned for pair in store.standing()) else "incomplete"
