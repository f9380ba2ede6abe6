"""Tasks that this machine plays itself: their data, and what their environments stand on."""

import asyncio
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from environments.base import Environment, EnvironmentFault
from environments.definition import TaskDefinition
from environments.yaml_file import FileError
from eval_client.doctor.docker_host import Sandboxes
from eval_client.doctor.finding import Finding, fail, ok, warn

NO_CONTAINERS = frozenset({"docker-down", "docker-image-missing", "extra-missing"})
"""Findings after which no container can be made: entering the environment would only say the same again."""


@dataclass(frozen=True)
class TaskFacts:
    """A task's data as this machine reads them."""

    name: str
    samples: int
    digest: str
    not_comparable: str | None
    trusted_agents_only: bool
    published_sampling: str = ""
    """What agents' requests had for published scores, in words."""


def task_facts(definition: TaskDefinition) -> TaskFacts:
    """Reads a task's data. Raises FileError, naming file and field."""
    environment = definition.build()
    try:
        return TaskFacts(
            name=definition.name,
            samples=len(environment.samples()),
            digest=environment.digest(),
            not_comparable=environment.comparable(),
            trusted_agents_only=environment.trusted_agents_only(),
            published_sampling=", ".join(
                f"{name}: {value}" for name, value in environment.published_sampling().items()
            ),
        )
    except (OSError, ValueError) as error:
        raise FileError(f"task {definition.name!r}: {error}") from error


def data_findings(facts: TaskFacts, model_agents: Collection[str]) -> list[Finding]:
    """What follows, where these agents, which are not built in, shall play the task."""
    if not facts.samples:
        return [fail("task-empty", f"task {facts.name}: there are no samples")]
    found = [ok("data", f"task {facts.name}: {facts.samples} samples, digest {facts.digest[:12]}")]
    if facts.not_comparable is not None:
        found.append(warn("not-comparable", f"task {facts.name}: {facts.not_comparable}"))
    else:
        agents = f", of agents with {facts.published_sampling}" if facts.published_sampling else ""
        found.append(ok("comparable", f"task {facts.name}: its scores may stand beside published ones{agents}"))
    if facts.trusted_agents_only and model_agents:
        who = ", ".join(sorted(model_agents))
        found.append(fail("task-untrusted", f"task {facts.name}: its isolation is too thin for {who}"))
    return found


def digest_findings(here: Iterable[TaskFacts], there: dict[str, str | None]) -> list[Finding]:
    """Whether built-in agents read the same data as the servers; `there` is task -> digest."""
    return [
        fail("data-differs", f"task {facts.name}: digest {facts.digest[:12]} here, {digest[:12]} at the servers")
        for facts in here
        if (digest := there.get(facts.name)) is not None and digest != facts.digest
    ]


def sandboxes(definition: TaskDefinition) -> Sandboxes | None:
    """The containers that the task's sandboxes are; None where it makes none."""
    if definition.environment != "os":
        return None
    from environments.operating_system.environment import OperatingSystem

    environment = definition.build()
    if isinstance(environment, OperatingSystem) and environment.engine == "docker":
        return Sandboxes(environment.image, in_memory=environment.disk == "tmpfs")
    return None


def lacks_mariadb(definition: TaskDefinition) -> bool:
    """Whether the task would start a database server that this machine doesn't have."""
    if definition.environment != "db":
        return False
    from environments.database.environment import Database
    from environments.database.private_server import installed

    environment = definition.build()
    private = isinstance(environment, Database) and environment.engine != "sqlite" and environment.server is None
    return private and not installed()


async def entered(definition: TaskDefinition, patience_s: float, leaving: set[asyncio.Task[None]]) -> Finding:
    """Enters the environment's lifespan once and leaves it; `leaving` gets what is left later than the patience."""
    try:
        environment = _lean(definition.build())
    except (FileError, ImportError) as error:
        return fail("environment-missing", str(error))
    up = asyncio.Event()

    async def enter() -> None:
        async with environment.lifespan():
            up.set()

    entering = asyncio.create_task(enter())
    waiting = asyncio.create_task(up.wait())
    await asyncio.wait({entering, waiting}, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not entering.done():
        leaving.add(entering)
    if up.is_set():
        return ok("environment", f"task {definition.name}: its environment comes up")
    if not entering.done():
        return warn("environment-late", f"task {definition.name}: its environment is not up after {patience_s:g} s")
    return _not_up(definition.name, entering.exception())


def _not_up(task: str, error: BaseException | None) -> Finding:
    if isinstance(error, ImportError):
        return fail("environment-missing", f"task {task}: {error}")
    if isinstance(error, EnvironmentFault):
        return fail("environment-fault", f"task {task}: {error}")
    return fail("environment-fault", f"task {task}: {type(error).__name__}: {error}")


def _lean(environment: Environment) -> Environment:
    """The environment without what it makes ahead of need: only whether it can come up is asked."""
    return environment.model_copy(update={"pool": 0}) if "pool" in type(environment).model_fields else environment
