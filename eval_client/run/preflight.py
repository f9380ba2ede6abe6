"""Checks before a run plays, and the trials of a new run."""

import asyncio
import copy
import logging
import os
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue

from eval_client.core.selection import (
    NO_FILTERS,
    Catalogue,
    ChosenSamples,
    Filters,
    SelectionError,
)
from eval_client.core.stall import STILL_S, StallReasons
from eval_client.endpoints import likeness
from eval_client.endpoints.chat_configs import chat_config, check_settings, replica_configs, several_servers
from eval_client.endpoints.replica_watch import rooms
from eval_client.plan.entries import AgentEntry
from eval_client.plan.filters import choose_samples
from eval_client.plan.plan import NOTHING, Plan, additions, differences
from eval_client.plan.published import other_play
from eval_client.store.planned_trials import PlannedTrials
from eval_client.store.records import Manifest, PlanPart, SeenModel, TaskRecord
from eval_client.store.runs import owner_name
from proctor.config.yaml import FileError
from proctor.digest import digest_of
from proctor.event_loop import beside
from proctor.http.client import HttpClient
from proctor.registry import AGENT_KINDS, missing
from task_server.client.client import TaskClient
from task_server.wire.errors import TaskServerError
from task_server.wire.messages import SampleList

log = logging.getLogger(__name__)

REPORT_S = 5.0
"""How long our own controller holds a question for news of its workers back."""
WRITTEN = ("logs", "plan.yaml")
"""What is written in a run's folder, beside its store's own files."""


class PreflightError(Exception):
    """The run can't be started or resumed as requested; the message has the fix."""


def check_folder(folder: Path) -> None:
    """Raises PreflightError if a run's folder, which may come from others, leads what is written there elsewhere."""
    logs = ((Path(at), names) for at, folders, files in os.walk(folder / "logs") for names in (folders, files))
    ours = [*WRITTEN, *(path.name for path in folder.glob("run.sqlite.*"))]
    for at, names in ((folder, ours), *logs):
        for path in (at / name for name in names):
            if path.is_symlink():
                raise PreflightError(f"{path} is a link, and a run would write where it leads; remove it")


def check_usable(plan: Plan) -> None:
    """Raises PreflightError if a key, a token or a base URL that the plan names can't be used."""
    try:
        check_settings(plan)
    except (ValueError, FileError) as error:
        raise PreflightError(str(error)) from error
    for agent in plan.agents:
        if agent.kind is not None and (fix := missing(AGENT_KINDS, agent.kind)) is not None:
            raise PreflightError(f"agents.{agent.name}.kind: {agent.kind} is not installed; {fix}")
        if agent.is_command and shutil.which(agent.command[0]) is None:
            raise PreflightError(
                f"agents.{agent.name}.command: there is no program {agent.command[0]!r} on this machine; install it, "
                "or write its absolute path"
            )


def check_plan(manifest: Manifest, plan: Plan, functions: Mapping[str, Any] = NOTHING) -> list[str]:
    """What of agents that are functions can't be checked; `functions` are those that a program gives.

    Raises PreflightError if a plan differs from the run's own in anything that shapes a trial. Also for a re-scored
    run: its answers are those of another run.
    """
    _check_parent(manifest)
    return check_identity(manifest, plan, functions)


def _check_parent(manifest: Manifest) -> None:
    if manifest.parent is not None:
        raise PreflightError(
            f"the run holds answers of run {manifest.parent!r}, scored again; resume that run, then: "
            f"proctor rescore {manifest.parent}"
        )


def check_identity(manifest: Manifest, plan: Plan, functions: Mapping[str, Any] = NOTHING) -> list[str]:
    """`check_plan`, also for the plan of a re-scored run."""
    before, now = copy.deepcopy(manifest.identity), _identity(plan, functions)
    lines, unchecked = _changed_functions(before, now)
    only_more = not (lines or additions(before, now)[1])
    lines += differences(before, now)
    if lines:
        changed = "\n  ".join(lines)
        fix = "add that to the run: proctor extend RUN" if only_more else "start a new run"
        raise PreflightError(f"the plan changed since the run began:\n  {changed}\nundo that, or {fix}")
    return unchecked


def added(manifest: Manifest, plan: Plan, functions: Mapping[str, Any]) -> list[str]:
    """What a plan adds to the run's, a line for each. Raises PreflightError where it differs otherwise."""
    _check_parent(manifest)
    before, now = copy.deepcopy(manifest.identity), _identity(plan, functions)
    changed, _ = _changed_functions(before, now)
    more, others = additions(before, now)
    if changed or others:
        text = "\n  ".join([*changed, *others])
        fix = "an extension adds, and changes nothing that the run has: undo that, or start a new run"
        raise PreflightError(f"the plan changed since the run began:\n  {text}\n{fix}")
    return more


def _identity(plan: Plan, functions: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The plan's identity. Raises PreflightError where the file of a function can't be loaded."""
    try:
        return plan.identity(functions)
    except ImportError as error:
        raise PreflightError(f"agents: {error}") from error


def _changed_functions(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Where the files of agents that are functions differ first, and what of them is unchecked.

    What they are made of is taken out of both, and where they lie: their names are left. The data that a file opens
    while a program imports it are not known.
    """
    lines, unchecked = list[str](), list[str]()
    for name, new in now["agents"].items():
        both = before.get("agents", {}).get(name, {}), new
        sources = [each.pop("source", None) for each in both]
        if any(each.get("builtin") != "function" for each in both):
            continue
        places = [each.pop("function", None) for each in both]
        if None in sources:
            unchecked.append(f"agent {name}: its function is unchecked since the run began")
            continue
        from proctor.own_files.loading import NO_FILE  # 35 ms that other runs do without
        from proctor.own_files.source import BYTES, UNCHECKED, difference

        for each, place in zip(both, places, strict=True):
            each["function"] = place.rpartition(":")[2]
        marks = (UNCHECKED, BYTES) if any(place.startswith(NO_FILE) for place in places) else (UNCHECKED,)
        left = {file for each in sources for file, of in each.items() if of.startswith(marks)}
        where = difference(*({file: each[file] for file in each if file not in {"digest", *left}} for each in sources))
        if where:
            lines.append(f"agents.{name}.function: {where} differs")
        if left:
            unchecked.append(f"agent {name}: unchecked since the run began: {', '.join(sorted(left))}")
    return lines, unchecked


class SeenServers(NamedTuple):
    """What the servers of endpoints that have several show of their models."""

    models: dict[str, SeenModel]
    """agent, or a task's helper model -> its model"""
    notes: tuple[str, ...]
    """How servers differ."""

    def noted(self, manifest: Manifest) -> Manifest:
        """The manifest with them."""
        notes = dict.fromkeys((*manifest.model_notes, *self.notes))
        return manifest.model_copy(update={"models": self.models | manifest.models, "model_notes": tuple(notes)})


async def check_servers(known: Manifest | None, plan: Plan, client: HttpClient) -> SeenServers:
    """Ask the servers of each model that has several, and those of agents, what they serve.

    Those that do not answer are left out. Raises PreflightError where one serves another model, or no longer the one
    that the run, if `known`, began with.
    """
    models, notes = {} if known is None else dict(known.models), list[str]()
    served = await _served_functions(plan, client)
    if known is not None:
        check_functions(known, served)
    models = served | models
    for name, config in several_servers(plan).items():
        seen, before = await likeness.seen_models(client, replica_configs(config)), models.get(name)
        wrong, unlike = likeness.others(config.model, seen), likeness.unlike(seen)
        for url, one in seen.items():
            wrong += [f"{url}: {line}" for line in likeness.differences(before or one, one, likeness.LASTING)]
            unlike += [f"{url}, since the run began: {line}" for line in likeness.differences(before or one, one)]
        label = name if name.startswith("task ") else f"agent {name}"
        if wrong:
            raise PreflightError(f"{label}: {'; '.join(wrong)}; leave such servers out")
        notes += [f"{label}: {line}" for line in unlike]
        if seen:
            models.setdefault(name, next(iter(seen.values())))
    for line in notes:
        log.warning("%s", line)
    return SeenServers(models, tuple(notes))


def check_functions(manifest: Manifest, served: Mapping[str, SeenModel]) -> None:
    """Raises PreflightError where an agent server has another file of a function than a run began with."""
    for name in manifest.models.keys() & served.keys():
        for line in likeness.differences(manifest.models[name], served[name], ("digest",)):
            raise PreflightError(f"agent {name}, since the run began: {line}; serve it as it was, or start a new run")


async def _served_functions(plan: Plan, client: HttpClient) -> dict[str, SeenModel]:
    """agent -> what its agent server shows of it, for functions there that get metadata."""
    asked = [agent for agent in plan.agents if agent.metadata and agent.endpoint is not None]
    asked = [agent for agent in asked if (at := plan.endpoint_of(agent)).dialect == "chat" and not at.has_replicas]
    found = await asyncio.gather(*(likeness.seen_agent(client, chat_config(plan, agent, None)) for agent in asked))
    return {agent.name: seen for agent, seen in zip(asked, found, strict=True) if seen is not None}


def trials_at_once(plan: Plan, agent: AgentEntry, sessions: Mapping[str, int]) -> str:
    """How many trials of an agent can be in flight, and what binds them; `sessions` are those of each task."""
    endpoint, tasks = plan.endpoint_of(agent), [task for name, task in plan.pairs() if name == agent.name]
    room = rooms(endpoint)
    bounds = {
        f"endpoint {endpoint.name}": sum(room),
        "its own `concurrency`": agent.concurrency or sum(room),
        f"the sessions of {' and '.join(tasks)}": sum(sessions.get(task, 0) for task in tasks),
    }
    binds, trials = min(bounds.items(), key=lambda bound: bound[1])
    each = f", some {round(trials / len(room))} at each of its {len(room)} servers" if len(room) > 1 else ""
    return f"agent {agent.name} plays up to {trials} trials at once, bound by {binds}{each}"


def limits_of_part(part: PlanPart, of: int) -> str:
    """How a part of a plan shares the plan's limits, which a part without a common server divides by `of`."""
    which = f"part {part.number} of {part.of}"
    if of == 1:
        return f"{which}: concurrency, rpm, tpm and limits.run hold over all parts, which this database server has"
    return f"{which}: it takes 1/{of} of concurrency (at least 1), rpm, tpm and limits.run; the other parts take theirs"


async def listed_samples(
    plan: Plan, client: TaskClient, digests: Mapping[str, str], *, own: bool
) -> dict[str, SampleList]:
    """The sample lists of the run's tasks, once the servers, which may be its own, have read them.

    Raises PreflightError.
    """
    names, patience_s = [task.name for task in plan.tasks], plan.limits.patience_s
    with beside(_explain(client)):
        try:
            async with asyncio.timeout(patience_s):
                if own:
                    await _reported(client, set(names))
        except TimeoutError as error:
            late = f"limits.patience_s: no worker of this run reported within {patience_s:g} s"
            raise PreflightError(late) from error
        try:
            asked = (client.samples(name, digests.get(name)) for name in names)
            listed = dict(zip(names, await asyncio.gather(*asked), strict=True))
        except TaskServerError as error:
            raise PreflightError(f"controller {plan.controller}: {error}") from error
    check_trust(plan, listed)
    return listed


async def _reported(client: TaskClient, names: set[str]) -> None:
    """Wait until workers have reported these tasks to our own controller."""
    listed = await client.tasks()
    while not names <= {task.name for task in listed.tasks}:
        listed = await client.tasks(after=listed.version, wait_s=REPORT_S)


async def _explain(client: TaskClient) -> None:
    """Log every STILL_S seconds which calls to the task server are not answered."""
    begun = time.monotonic()
    while True:
        await asyncio.sleep(STILL_S)
        now = time.monotonic()
        waits = StallReasons(now=now, server=client.calls.values())
        log.warning("the run has not started after %.0f s: %s", now - begun, "; ".join(waits.reasons()))


def check_trust(plan: Plan, listed: Mapping[str, SampleList]) -> None:
    """Raises PreflightError if an agent that is not built in would play in an isolation too thin for it."""
    for agent, task in plan.pairs():
        if listed[task].trusted_agents_only and plan.agent(agent).policy is None:
            raise PreflightError(
                f"task {task}: its isolation is too thin for agent {agent}, which is not built in; "
                "use the environment's full engine (for os: `engine: docker`)"
            )


def check_tasks(manifest: Manifest, listed: Mapping[str, SampleList]) -> None:
    """Raises PreflightError if a task's protocol, data, prompts or settings have changed since the run began."""
    for name, record in manifest.tasks.items():
        if name in listed and listed[name].protocol != record.protocol:
            raise PreflightError(
                f"task {name}: its protocol changed since the run began "
                f"({record.protocol} -> {listed[name].protocol}); change it back, or start a new run"
            )
        if name in listed and listed[name].digest != record.digest:
            where = changed_source(record, listed[name])
            raise PreflightError(
                f"task {name}: its data, prompts or settings changed since the run began "
                f"({where}digest {record.digest[:12]} -> {listed[name].digest[:12]}); restore them, or start a new run"
            )


def changed_source(record: TaskRecord, listed: SampleList) -> str:
    """Where the file of a user's world differs first from what the run began with; empty for other worlds."""
    if not record.source:
        return ""
    from proctor.own_files.source import difference  # 35 ms that installed environments do without

    return "".join(f"{place} differs; " for place in [difference(record.source, listed.source)] if place)


class PartAsked(NamedTuple):
    """What `--part K/N` and `--name` ask for."""

    plan: str
    """The name of the parts together."""
    number: int
    of: int


def new_run(
    plan: Plan,
    plan_path: str,
    overrides: Sequence[str],
    limit: int | None,
    listed: Mapping[str, SampleList],
    *,
    filters: Filters = NO_FILTERS,
    part: PartAsked | None = None,
    functions: Mapping[str, Any] = NOTHING,
) -> tuple[Manifest, PlannedTrials]:
    """A new run's manifest and trials; `limit` is the number of samples per task, None for all.

    Raises PreflightError where nothing is left to play.
    """
    samples, records = chosen_tasks(plan, listed, filters, limit)
    played = None if part is None else PlanPart(**part._asdict(), samples=samples)
    manifest = Manifest(
        version=version("proctor"),
        id=secrets.token_hex(16) if played is None else _id_of_parts(plan, played, records),
        plan_path=plan_path,
        plan=plan.model_dump(mode="json"),
        overrides=tuple(overrides),
        identity=plan.identity(functions),
        limit=limit,
        filters=filters,
        tasks=records,
        tags=tuple(dict.fromkeys(plan.tags)),
        owner=owner_name(),
        part=played,
    )
    return manifest, PlannedTrials(plan, samples) if played is None else PlannedTrials(plan, samples, played.has)


def chosen_tasks(
    plan: Plan, listed: Mapping[str, SampleList], filters: Filters, limit: int | None
) -> tuple[dict[str, dict[str, str]], dict[str, TaskRecord]]:
    """task -> its samples that are played, with their clusters; and the tasks' records. Raises PreflightError."""
    catalogues = {name: Catalogue(task.cluster_of(), task.category_of()) for name, task in listed.items()}
    try:
        chosen = choose_samples(plan, catalogues, filters, limit)
    except SelectionError as error:
        raise PreflightError(str(error)) from error
    samples = {name: {each: catalogues[name].cluster_of[each] for each in of.samples} for name, of in chosen.items()}
    records = {
        name: TaskRecord.of(
            task,
            len(samples[name]),
            _cut(chosen[name]) or other_play(plan, name, task.published_rounds),
            chosen[name].text,
        )
        for name, task in listed.items()
    }
    return samples, records


def _id_of_parts(plan: Plan, part: PlanPart, tasks: Mapping[str, TaskRecord]) -> str:
    """The id of all parts of a plan, for which servers take them as one run: each machine finds it by itself."""
    digests = {name: task.digest for name, task in tasks.items()}
    return digest_of([part.plan, part.of, owner_name(), plan.identity(), digests])[:32]


def _cut(chosen: ChosenSamples) -> str | None:
    """Why a run over a part of the samples can't be compared with published scores; None if all are played."""
    if not chosen.by:
        return None
    return f"only {len(chosen.samples)} of {chosen.of} samples are played; leave {' and '.join(chosen.by)} out"
