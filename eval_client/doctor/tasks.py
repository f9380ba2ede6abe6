"""Tasks that this machine plays itself: their data, and what their environments stand on."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eval_client.doctor.docker_host import Sandboxes
from eval_client.doctor.finding import Finding, fail, ok, warn
from proctor.config.task import TaskDefinition
from proctor.config.yaml import FileError
from proctor.environment import Environment, EnvironmentFault, PolicyKind, missing_policies

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
    missing_policies: tuple[PolicyKind, ...] = ()
    """Those that its agents play by and that its environment does not have."""


def task_facts(definition: TaskDefinition, wanted: Iterable[PolicyKind | None] = ()) -> TaskFacts:
    """Reads the data of a task, whose agents play by the policies `wanted`. Raises FileError, naming file and field."""
    environment = definition.build()
    try:
        return TaskFacts(
            name=definition.name,
            samples=len(environment.samples()),
            digest=environment.digest(),
            not_comparable=environment.not_comparable_because(),
            trusted_agents_only=environment.trusted_agents_only(),
            published_sampling=", ".join(
                f"{name}: {value}" for name, value in environment.published_sampling().items()
            ),
            missing_policies=missing_policies(environment, wanted),
        )
    except (OSError, ValueError) as error:
        raise FileError(f"task {definition.name!r}: {error}") from error


def data_findings(facts: TaskFacts, playing: Mapping[str, PolicyKind | None]) -> list[Finding]:
    """What follows for the agents that play the task, each with its policy; None where it is a model."""
    if not facts.samples:
        return [fail("task-empty", f"task {facts.name}: there are no samples")]
    found = [ok("data", f"task {facts.name}: {facts.samples} samples, digest {facts.digest[:12]}")]
    if facts.not_comparable is not None:
        found.append(warn("not-comparable", f"task {facts.name}: {facts.not_comparable}"))
    else:
        agents = f", of agents with {facts.published_sampling}" if facts.published_sampling else ""
        found.append(ok("comparable", f"task {facts.name}: its scores may stand beside published ones{agents}"))
    models = sorted(agent for agent, policy in playing.items() if policy is None)
    if facts.trusted_agents_only and models:
        found.append(fail("task-untrusted", f"task {facts.name}: its isolation is too thin for {', '.join(models)}"))
    found += [
        fail("policy-missing", f"task {facts.name}: its environment has no {policy} policy, needed by agent {agent}")
        for agent, policy in playing.items()
        if policy in facts.missing_policies
    ]
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
    from environments.database.engines.private_server import installed
    from environments.database.environment import Database

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
