"""Task servers: whether they answer, take our token, hold the plan's tasks, and are of our version and time."""

import asyncio
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from eval_client.doctor.finding import Finding, fail, ok, skip, warn
from proctor.http.client import AnyClient, Untrusted
from proctor.observability.redaction import redacted
from task_server.http.transport import Caller
from task_server.wire.errors import ApiError, BadReply, NotReady, TaskServerError, Unauthorized
from task_server.wire.messages import (
    UNKNOWN_VERSION,
    VERSION,
    Health,
    TaskCapacity,
    TaskList,
    WorkerList,
    WorkerStatus,
)

SKEW_S = 5.0


@dataclass(frozen=True)
class HealthAnswer:
    """What `/healthz` answered."""

    alive: Health
    ahead_s: float | None
    """By how many seconds its clock is ahead of ours, at least; behind where negative. None where it doesn't tell."""


@dataclass(frozen=True)
class WorkerFacts:
    """A worker as the controller lists it, and as it answers us itself; None where it doesn't."""

    standing: WorkerStatus
    health: HealthAnswer | None


@dataclass(frozen=True)
class ServerFacts:
    """A task server as it was met."""

    url: str
    health: HealthAnswer | TaskServerError
    not_ready: str | None = None
    tasks: TaskList | TaskServerError | None = None
    workers: tuple[WorkerFacts, ...] = ()


async def server_facts(http: AnyClient, url: str, token: str | None, patience_s: float) -> ServerFacts:
    """Asks a controller or a lone worker, and each worker that it lists."""
    url = url.rstrip("/")
    caller = Caller(http, token, home=url)
    try:
        health = await _health(caller, url, patience_s)
    except TaskServerError as error:
        return ServerFacts(url, error)
    not_ready, tasks, workers = await asyncio.gather(
        _not_ready(caller, url, patience_s), _tasks(caller, url, patience_s), _workers(caller, url, patience_s)
    )
    return ServerFacts(url, health, not_ready, tasks, workers)


async def _health(caller: Caller, url: str, patience_s: float) -> HealthAnswer:
    asked = time.time()
    alive = await caller.call("GET", f"{url}/healthz", Health, deadline_s=patience_s)
    return HealthAnswer(alive, None if alive.time is None else ahead_s(asked, alive.time, time.time()))


def ahead_s(asked: float, theirs: float, answered: float) -> float:
    """How far another clock that was read between two moments of ours must be off at the least."""
    return max(0.0, theirs - answered) - max(0.0, asked - theirs)


async def _not_ready(caller: Caller, url: str, patience_s: float) -> str | None:
    try:
        await caller.call("GET", f"{url}/readyz", Health, deadline_s=patience_s)
    except NotReady as error:
        return str(error)
    except TaskServerError:
        return None  # the other calls find it out, and say more
    return None


async def _tasks(caller: Caller, url: str, patience_s: float) -> TaskList | TaskServerError:
    try:
        return await caller.call("GET", f"{url}/tasks", TaskList, deadline_s=patience_s)
    except TaskServerError as error:
        return error


async def _workers(caller: Caller, url: str, patience_s: float) -> tuple[WorkerFacts, ...]:
    try:
        listed = await caller.call("GET", f"{url}/workers", WorkerList, deadline_s=patience_s)
    except TaskServerError:
        return ()  # a lone worker has none
    return tuple(await asyncio.gather(*(_worker(caller, standing, patience_s) for standing in listed.workers)))


async def _worker(caller: Caller, standing: WorkerStatus, patience_s: float) -> WorkerFacts:
    try:
        health = await _health(caller, standing.url.rstrip("/"), patience_s / 2)
    except TaskServerError:
        return WorkerFacts(standing, None)
    reached = health.alive.url.rstrip("/") == standing.url.rstrip("/")
    return WorkerFacts(standing, health if reached else None)


def server_findings(
    facts: ServerFacts, *, token_env: str, has_token: bool, tasks: Collection[str], relayed: bool
) -> list[Finding]:
    """What follows for a plan with these tasks."""
    if isinstance(facts.health, TaskServerError):
        return [_unreachable(facts.url, facts.health)]
    found = [*_version("controller", facts.url, facts.health.alive.version), *_clock(facts.url, facts.health)]
    if isinstance(facts.tasks, Unauthorized):
        state = "holds the token that was sent" if has_token else "is unset"
        what = f"{facts.url} refuses the token (variable {token_env} {state})"
        return [fail("controller-token", what, f"set {token_env} to the token it was started with"), *found]
    if isinstance(facts.tasks, TaskServerError):
        return [_unreachable(facts.url, facts.tasks), *found]
    assert facts.tasks is not None
    if facts.not_ready is None or facts.health.alive.role == "worker":  # a worker's tasks say it more exactly
        found.insert(0, ok("controller", f"{facts.health.alive.role} at {facts.url} answers"))
    else:
        found.insert(0, warn("controller-not-ready", f"{facts.url}: {facts.not_ready}"))
    found += [_task(facts.url, name, facts.tasks.tasks) for name in tasks]
    for worker in facts.workers:
        found += _worker_findings(worker, relayed)
    return found


def _unreachable(url: str, error: TaskServerError) -> Finding:
    what = str(error) if url in str(error) else f"{url}: {error}"
    if isinstance(error.__cause__, Untrusted):
        return fail("controller-tls", what)
    kind = "controller-other" if isinstance(error, (BadReply, ApiError)) else "controller-unreachable"
    return fail(
        kind, what, "" if kind == "controller-other" else f"proctor controller, or correct `controller` ({url})"
    )


def _task(url: str, name: str, offered: Sequence[TaskCapacity]) -> Finding:
    of_task = [standing for standing in offered if standing.name == name]
    if len(of_task) > 1:
        return fail("task-workers-differ", f"task {name}: {of_task[-1].waiting}")
    standing = of_task[0] if of_task else None
    if standing is None or (standing.waiting is not None and standing.total == 0):
        known = ", ".join(sorted({each.name for each in offered})) or "none"
        said = "" if standing is None else f": {standing.waiting}"
        fix = f"proctor worker --tasks FILE --controller {url}, with this task in FILE, or correct the task's name"
        return fail("task-unknown", f"task {name}: no worker holds it{said}; tasks there: {known}", fix)
    if standing.waiting is not None:
        return fail("task-waiting", f"task {name} waits: {standing.waiting}")
    if standing.total == 0:
        return fail("task-no-capacity", f"task {name}: its workers have no slot for it")
    if standing.free == 0:
        return warn("task-full", f"task {name}: all {standing.total} slots are taken")
    return ok("task", f"task {name}: {standing.free} of {standing.total} slots are free")


def _worker_findings(worker: WorkerFacts, relayed: bool) -> Iterator[Finding]:
    standing = worker.standing
    name = f"worker {standing.worker} at {standing.url}"
    if relayed:
        yield skip("worker", f"{name}: turns go through the controller, as the plan asks (route: relayed)")
    elif worker.health is None:
        yield warn("worker-relayed", f"{name} can't be reached from here")
    else:
        yield ok("worker", f"{name} can be reached from here")
    yield from _version(f"worker {standing.worker}", standing.url, standing.version)
    if worker.health is not None:
        yield from _clock(standing.url, worker.health)


def _version(part: str, url: str, theirs: str) -> Sequence[Finding]:
    if theirs == VERSION:
        return [ok("version", f"{part} at {url} is of our version, {VERSION}")]
    shown = "an older version than any that tells" if theirs == UNKNOWN_VERSION else f"version {theirs}"
    fix = f"pip install proctor=={VERSION} where it runs, and start it again"
    return [fail("version-differs", f"{part} at {url} is of {redacted(shown)}, this is {VERSION}", fix)]


def _clock(url: str, health: HealthAnswer) -> Sequence[Finding]:
    if health.ahead_s is None:
        return [skip("clock", f"{url} doesn't tell its time")]
    if abs(health.ahead_s) <= SKEW_S:
        return [ok("clock", f"the clock at {url} agrees with ours")]
    way = "ahead of" if health.ahead_s > 0 else "behind"
    return [warn("clock-skew", f"the clock at {url} is {abs(health.ahead_s):.0f} s {way} ours")]
