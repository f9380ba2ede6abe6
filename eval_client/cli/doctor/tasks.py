"""Checks of tasks that this machine plays itself: their data, and whether their environments start."""

import asyncio
from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from eval_client.cli.doctor import machine
from eval_client.cli.doctor.finding import LONGER, Finding, fail, ok, warn
from eval_client.plan.plan import Plan
from eval_client.plan.published import other_play, other_sampling
from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.config.yaml import FileError
from proctor.environment import Environment, EnvironmentFault, missing_policies
from proctor.llm.wire import CHARS_PER_TOKEN, characters
from proctor.session.kept_replies import SessionReplies, session_replies
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.tables.table import counted
from proctor.types import Action, Message

REACH_S = 2.0
"""Longest wait for one server in a quick check."""
UNPLAYED = "the task can't be played"


class TaskData(NamedTuple):
    """The data of a task on this machine."""

    digest: str | None
    """None where the data can't be read."""
    found: Sequence[Finding]


def read_data(definition: TaskDefinition, plan: Plan) -> TaskData:
    """Read the data of a task, and what keeps its agents from playing it, or its scores from being compared."""
    try:
        environment = definition.build()
        size = len(environment.samples())
        digest = environment.digest()
        if registry.is_own(definition.environment):
            from proctor.own_files.source import world_source  # 35 ms that installed environments do without

            digest = world_source(environment).digest
        found = data_findings(environment, definition.name, plan, digest) if size else [_empty(definition)]
        return TaskData(digest, found)
    except ImportError as error:
        return TaskData(None, [_missing(definition.name, error)])
    except (OSError, ValueError) as error:
        what = str(error) if isinstance(error, FileError) else f"task {definition.name!r}: {error}"
        return TaskData(None, [fail("data-broken", what, UNPLAYED, "correct `data`, or the file that is named")])


def _empty(definition: TaskDefinition) -> Finding:
    return fail("task-empty", f"task {definition.name}: there are no samples", "it has no trials", "correct `data`")


def data_findings(environment: Environment, task: str, plan: Plan, digest: str) -> list[Finding]:
    """The findings on the data of a task, as this plan plays it."""
    found = [ok("data", f"task {task}: {counted(len(environment.samples()), 'sample')}, digest {digest[:12]}")]
    published, playing = environment.published_sampling(), plan.playing(task)
    sampled = (other_sampling(plan.agent(agent), published) for agent in playing)
    own = environment.not_comparable_because() or other_play(plan, task, environment.max_turns)
    if (reason := own or next(filter(None, sampled), None)) is not None:
        why, fix = "scores can't be compared with published ones", "see docs/reference/environments/"
        found.append(warn("not-comparable", f"task {task}: {reason}", why, fix))
    lacking = missing_policies(environment, playing.values())
    needed = [(agent, policy) for agent, policy in playing.items() if policy in lacking]
    return [*found, *model_findings(environment, task, plan), *(_no_policy(task, *each) for each in needed)]


def _no_policy(task: str, agent: str, policy: str | None) -> Finding:
    what = f"task {task}: its environment has no {policy} policy, needed by agent {agent}"
    fix = "list the other pairs under `assignments`, or add the policy's method to the environment"
    return fail("policy-missing", what, "the agent can't play the task, so the run is refused", fix)


def model_findings(environment: Environment, task: str, plan: Plan) -> list[Finding]:
    """What speaks against models that play a task in this environment."""
    models = ", ".join(sorted(agent for agent, policy in plan.playing(task).items() if policy is None))
    found = list[Finding]()
    if models and environment.trusted_agents_only():
        what, why = f"task {task}: its isolation is too weak for {models}", "a model could break out of its sandbox"
        fix = "use the environment's full engine (for os: parameters: {engine: docker})"
        found.append(fail("task-untrusted", what, why, fix))
    if models and (caution := environment.caution_for_models()) is not None:
        what, why = f"task {task}, played by {models}: {caution}", "a model's score says little as the task is set up"
        fix = "set the field that the line names (for stss: parameters: {driver: {base_url: ..., model: ...}}, "
        fix += "for simulbench: parameters: {judge: ...})"
        found.append(warn("task-simplified", what, why, fix))
    return found


async def engine(definition: TaskDefinition, patience_s: float) -> list[Finding]:
    """The findings on what starts a task's sandboxes or databases. Starts nothing. Raises FileError."""
    if definition.environment == "db":
        from environments.database.engines.private_server import installed
        from environments.database.environment import Database

        world = definition.build()
        private = isinstance(world, Database) and world.engine != "sqlite" and world.server is None
        return [_no_mariadb(definition.name)] if private and not installed() else []
    if definition.environment == "os":
        from environments.operating_system.environment import OperatingSystem

        boxes = definition.build()
        if isinstance(boxes, OperatingSystem) and boxes.engine == "docker":
            return await machine.docker(boxes.image, patience_s, needed=True)
    return []


def _no_mariadb(task: str) -> Finding:
    what = f"task {task}: no program mariadbd on this machine"
    fix = "apt-get install mariadb-server, or set the task's parameters to {engine: sqlite}"
    return fail("mariadb-missing", what, "environment `db` starts a private MariaDB server by default", fix)


async def engine_problem(definition: TaskDefinition) -> Finding | None:
    """Why this machine can't start a task's engine; None if it can."""
    found = await engine(definition, REACH_S)
    prefix = f"task {definition.name}: "
    named = (each.model_copy(update={"what": prefix + each.what.removeprefix(prefix)}) for each in found)
    return next((each for each in named if each.is_problem), None)


def offers_tools(definition: TaskDefinition) -> bool:
    """Whether a task is played by function calls, by its parameters and the defaults of its environment."""
    if "protocol" in definition.parameters:
        return definition.parameters["protocol"] == "tools"
    try:
        field = registry.load(definition.environment).model_fields.get("protocol")
    except (ValueError, ImportError):
        return False  # the check of the data reports the error
    return field is not None and field.default == "tools"


async def started(definition: TaskDefinition, patience_s: float, *, by_calls: bool = False) -> list[Finding]:
    """Start a task's environment once, and stop it; `by_calls`: models play it by functions, so one sample is played.

    Both take `patience_s` at most, and stopping as long as it needs.
    """
    environment, name = definition.build(), definition.name
    found = list[Finding]()
    try:
        async with asyncio.timeout(patience_s) as limit, environment.lifespan():
            found = [ok("environment", f"task {name}: its environment starts")]
            if by_calls:
                found += await _without_calls(name, environment, patience_s / 2)
            limit.reschedule(None)
    except Exception as error:
        if not found:
            found = [_late(name, patience_s) if limit.expired() else _not_up(name, error)]
    return found


def _late(task: str, patience_s: float) -> Finding:
    what = f"task {task}: its environment has not started after {patience_s:g} s"
    return warn("environment-late", what, "the start of a run waits for it, up to limits.patience_s", LONGER)


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
    ends = f"ends as {finish.reason.value} after {counted(len(sent), 'turn')}"
    cost = f"score {finish.score:g}, some {tokens:,} prompt tokens without those of functions"
    return [ok("agent-tools", f"task {task}: a model that calls no function {ends}: {cost}")]


def _not_up(task: str, error: Exception) -> Finding:
    if isinstance(error, ImportError):
        return _missing(task, error)
    named = "" if isinstance(error, EnvironmentFault) else f"{type(error).__name__}: "
    what, why = f"task {task}: {named}{error}", "none of its sessions could start"
    return fail("environment-fault", what, why, "correct the cause that is named")


def _missing(task: str, error: ImportError) -> Finding:
    return fail("environment-missing", f"task {task}: {error}", UNPLAYED, "pip install the package that is named")
