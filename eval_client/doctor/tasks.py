"""Checks of tasks that this machine plays itself: their data, and whether their environments start."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil

from pydantic import JsonValue

from eval_client.doctor.docker_host import Sandboxes
from eval_client.doctor.finding import Finding, fail, ok, warn
from eval_client.plan.plan import Plan
from eval_client.plan.published import other_play, other_sampling
from proctor.config.task import TaskDefinition
from proctor.config.yaml import FileError
from proctor.environment import Environment, EnvironmentFault, PolicyKind, missing_policies
from proctor.llm.wire import CHARS_PER_TOKEN, characters
from proctor.session.kept_replies import SessionReplies, session_replies
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, Message

NO_CONTAINERS = frozenset({"docker-down", "docker-image-missing", "extra-missing"})
"""Findings after which no container can be made; starting the environment would only repeat them."""


@dataclass(frozen=True)
class TaskFacts:
    """Facts about a task, from the data on this machine."""

    name: str
    samples: int
    digest: str
    not_comparable: str | None
    trusted_agents_only: bool
    caution: str | None = None
    """Why a model's score says little."""
    published_sampling: Mapping[str, JsonValue] = field(default_factory=dict)
    """The sampling parameters of the agents' requests behind published scores."""
    rounds: int | None = None
    """The most turns of a session."""
    missing_policies: tuple[PolicyKind, ...] = ()
    """The policies that its agents need and its environment lacks."""


def task_facts(definition: TaskDefinition, wanted: Iterable[PolicyKind | None] = ()) -> TaskFacts:
    """Read the data of a task; `wanted` are the policies that its agents need. Raises FileError."""
    environment = definition.build()
    try:
        return TaskFacts(
            name=definition.name,
            samples=len(environment.samples()),
            digest=environment.digest(),
            not_comparable=environment.not_comparable_because(),
            trusted_agents_only=environment.trusted_agents_only(),
            caution=environment.caution_for_models(),
            published_sampling=environment.published_sampling(),
            rounds=environment.max_turns,
            missing_policies=missing_policies(environment, wanted),
        )
    except (OSError, ValueError) as error:
        raise FileError(f"task {definition.name!r}: {error}") from error


def as_planned(facts: TaskFacts, plan: Plan) -> TaskFacts:
    """The facts, with what the plan itself keeps from standing beside published scores."""
    agents = map(plan.agent, plan.playing(facts.name))
    sampled = (other_sampling(agent, facts.published_sampling) for agent in agents)
    other = other_play(plan, facts.name, facts.rounds) or next(filter(None, sampled), None)
    return replace(facts, not_comparable=facts.not_comparable or other)


def data_findings(facts: TaskFacts, playing: Mapping[str, PolicyKind | None]) -> list[Finding]:
    """The findings on a task's data. `playing`: agent -> the policy that it plays by, None for a model."""
    if not facts.samples:
        return [fail("task-empty", f"task {facts.name}: there are no samples")]
    found = [ok("data", f"task {facts.name}: {facts.samples} samples, digest {facts.digest[:12]}")]
    if facts.not_comparable is not None:
        found.append(warn("not-comparable", f"task {facts.name}: {facts.not_comparable}"))
    else:
        sampling = ", ".join(f"{name}: {value}" for name, value in facts.published_sampling.items())
        agents = f", of agents with {sampling}" if sampling else ""
        found.append(ok("comparable", f"task {facts.name}: its scores can be compared with published ones{agents}"))
    models = sorted(agent for agent, policy in playing.items() if policy is None)
    found += model_findings(facts.name, models, weak=facts.trusted_agents_only, caution=facts.caution)
    found += [
        fail("policy-missing", f"task {facts.name}: its environment has no {policy} policy, needed by agent {agent}")
        for agent, policy in playing.items()
        if policy in facts.missing_policies
    ]
    return found


def model_findings(task: str, models: Sequence[str], *, weak: bool, caution: str | None) -> list[Finding]:
    """The findings on a task that these models play. `weak`: its isolation is only for built-in agents."""
    named = ", ".join(models)
    found = [fail("task-untrusted", f"task {task}: its isolation is too weak for {named}")] if weak and models else []
    if caution is not None and models:
        found.append(warn("task-simplified", f"task {task}, played by {named}: {caution}"))
    return found


def digest_findings(here: Iterable[TaskFacts], there: dict[str, str | None]) -> list[Finding]:
    """Whether built-in agents here read the same data as the servers. `there`: task -> digest at the servers."""
    return [
        fail("data-differs", f"task {facts.name}: digest {facts.digest[:12]} here, {digest[:12]} at the servers")
        for facts in here
        if (digest := there.get(facts.name)) is not None and digest != facts.digest
    ]


def sandboxes(definition: TaskDefinition) -> Sandboxes | None:
    """The containers that the task's sandboxes need; None where they are no containers."""
    if definition.environment != "os":
        return None
    from environments.operating_system.environment import OperatingSystem

    environment = definition.build()
    if isinstance(environment, OperatingSystem) and environment.engine == "docker":
        return Sandboxes(environment.image, in_memory=environment.disk == "tmpfs")
    return None


def lacks_mariadb(definition: TaskDefinition) -> bool:
    """Whether the task would start a MariaDB server that is not installed on this machine."""
    if definition.environment != "db":
        return False
    from environments.database.engines.private_server import installed
    from environments.database.environment import Database

    environment = definition.build()
    private = isinstance(environment, Database) and environment.engine != "sqlite" and environment.server is None
    return private and not installed()


async def entered(
    definition: TaskDefinition, patience_s: float, closing: set[asyncio.Task[None]], *, by_calls: bool = False
) -> list[Finding]:
    """Enter and leave the environment's lifespan once; `closing` gets the task if it is still running on return.

    `by_calls`: models play it by functions, so one sample is played without calls, if there is time.
    """
    try:
        environment = definition.build()
    except (FileError, ImportError) as error:
        return [fail("environment-missing", str(error))]
    name, up, played = definition.name, asyncio.Event(), list[Finding]()

    async def enter() -> None:
        async with environment.lifespan():
            up.set()
            if by_calls:
                played.extend(await _without_calls(name, environment, patience_s / 2))

    entering = asyncio.create_task(enter())
    waiting = asyncio.create_task(up.wait())
    await asyncio.wait({entering, waiting}, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if by_calls and up.is_set():
        await asyncio.wait({entering}, timeout=patience_s / 2)
    if not entering.done():
        closing.add(entering)
    if up.is_set():
        return [ok("environment", f"task {name}: its environment starts"), *played]
    if not entering.done():
        return [warn("environment-late", f"task {name}: its environment has not started after {patience_s:g} s")]
    return [_not_up(name, entering.exception())]


async def _without_calls(task: str, environment: Environment, limit_s: float) -> list[Finding]:
    """What a model that calls no function comes to in the task's first sample, and what its prompts cost."""
    sent = list[int]()

    def answer(_: str, transcript: Sequence[Message]) -> Action:
        sent.append(characters(transcript))
        return Action(content="I have no function to call.")

    session_replies.set(SessionReplies((), lambda: None, may_buy=False))
    try:
        async with asyncio.timeout(limit_s):
            finish = await play_to_finish(environment, environment.samples()[0], PolicyAgent(answer))
    except TimeoutError:
        return []
    if finish.score is None:
        return []
    tokens = ceil(sum(sent) / CHARS_PER_TOKEN)
    ends = f"ends as {finish.reason.value} after {len(sent)} {'turn' if len(sent) == 1 else 'turns'}"
    cost = f"score {finish.score:g}, some {tokens:,} prompt tokens without those of functions"
    return [ok("agent-tools", f"task {task}: a model that calls no function {ends}: {cost}")]


def _not_up(task: str, error: BaseException | None) -> Finding:
    if isinstance(error, ImportError):
        return fail("environment-missing", f"task {task}: {error}")
    if isinstance(error, EnvironmentFault):
        return fail("environment-fault", f"task {task}: {error}")
    return fail("environment-fault", f"task {task}: {type(error).__name__}: {error}")
