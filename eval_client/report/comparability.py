"""Pure: whether runs may stand in one table: what shaped their trials must be equal."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Literal, NamedTuple

from pydantic import JsonValue

from eval_client.plan.entries import AgentEntry
from eval_client.plan.plan import Plan
from eval_client.store.records import Manifest

SHOWN_VALUE = 60
"""Characters of a value that a difference shows."""
AGENT_FIELDS = ("builtin", "model", "sampling", "reasoning", "system_role")
"""What makes an agent another one; endpoint, price and concurrency may differ."""


class TaskShape(NamedTuple):
    """A task of a run."""

    run: str
    task: str
    environment: str
    shape: Mapping[str, object]
    """What shaped its trials; `selection` is how the samples were chosen, empty where all were, and in older runs."""


def task_shapes(run: str, manifest: Manifest) -> list[TaskShape]:
    """Every task of a run, in the run's order."""
    plan = manifest.read_plan()
    limits, version = plan.limits.trial.model_dump(mode="json"), ".".join(manifest.version.split(".")[:2])
    shared = {"seed": plan.seed, "epochs": plan.epochs, "trial_limits": limits, "version": version}
    found = []
    for name, task in manifest.tasks.items():
        own = {"environment": task.environment, "digest": task.digest, "samples": task.samples}
        found.append(TaskShape(run, name, task.environment, {**own, "selection": task.selection, **shared}))
    return found


def unlike_tasks(tasks: Iterable[TaskShape], same: Literal["task", "environment"]) -> list[str]:
    """The differences between tasks with an equal `same`, a line for each field; empty where they are alike."""
    lines, known = [], dict[str, TaskShape]()
    for each in tasks:
        first = known.setdefault(getattr(each, same), each)
        lines += [
            f"{first.task} of {first.run}, {each.task} of {each.run}: {name}: {_shown(value)} and "
            f"{_shown(each.shape[name])}"
            for name, value in first.shape.items()
            if value != each.shape[name]
        ]
    return lines


def shaping_parameters(manifest: Manifest, task: str) -> dict[str, JsonValue] | None:
    """The parameters that shaped a task's trials; None where a controller defines the task."""
    tasks = manifest.identity.get("tasks")
    shape = tasks.get(task) if isinstance(tasks, dict) else None
    parameters = shape.get("parameters") if isinstance(shape, dict) else None
    return parameters if isinstance(parameters, dict) else None


def unlike_agents(plans: Mapping[str, Plan]) -> tuple[str, ...]:
    """The differences between agents of one name in several runs (run -> plan), a line for each field."""
    lines = []
    for one, other in combinations(plans, 2):
        agents = {agent.name: agent for agent in plans[other].agents}
        lines += [
            f"agent {agent.name}: {name}: {_shown(_field(agent, name))} in {one}, "
            f"{_shown(_field(agents[agent.name], name))} in {other}"
            for agent in plans[one].agents
            if agent.name in agents
            for name in AGENT_FIELDS
            if _field(agent, name) != _field(agents[agent.name], name)
        ]
    return tuple(lines)


def _field(agent: AgentEntry, name: str) -> object:
    return (agent.model or agent.name) if name == "model" else getattr(agent, name)


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= SHOWN_VALUE else f"{text[:SHOWN_VALUE]}..."
