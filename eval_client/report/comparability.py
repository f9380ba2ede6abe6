"""Pure: whether runs may stand in one table: what shaped their trials must be equal."""

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Literal

from pydantic import JsonValue

from eval_client.plan.entries import AgentEntry
from eval_client.plan.plan import Plan
from eval_client.store.records import Manifest
from proctor.types import Value

SHOWN_VALUE = 60
"""Characters of a value that a difference shows."""
AGENT_FIELDS = ("builtin", "model", "sampling", "reasoning", "system_role")
"""What makes an agent another one; endpoint, price and concurrency may differ."""


class TaskShape(Value):
    """What shaped a run's trials of one task."""

    run: str
    task: str
    environment: str
    digest: str
    """Hash of data, prompts and parameters."""
    samples: int
    selection: str
    """How the samples were chosen; empty where all were played, and in older runs."""
    seed: int
    epochs: int
    trial_limits: dict[str, JsonValue]
    version: str
    """Major and minor version of Proctor."""


SHAPING = tuple(name for name in TaskShape.model_fields if name not in ("run", "task"))


def task_shapes(run: str, manifest: Manifest) -> tuple[TaskShape, ...]:
    """The facts of every task of a run, in the run's order."""
    plan = manifest.read_plan()
    return tuple(
        TaskShape(
            run=run,
            task=name,
            environment=record.environment,
            digest=record.digest,
            samples=record.samples,
            selection=record.selection,
            seed=plan.seed,
            epochs=plan.epochs,
            trial_limits=plan.limits.trial.model_dump(mode="json"),
            version=".".join(manifest.version.split(".")[:2]),
        )
        for name, record in manifest.tasks.items()
    )


def unlike_tasks(facts: Iterable[TaskShape], same: Literal["task", "environment"]) -> list[str]:
    """The differences between facts with an equal `same`, a line for each field; empty where they are alike."""
    lines, known = [], dict[str, TaskShape]()
    for fact in facts:
        first = known.setdefault(getattr(fact, same), fact)
        lines += [
            f"{first.task} of {first.run}, {fact.task} of {fact.run}: {name}: "
            f"{_shown(getattr(first, name))} and {_shown(getattr(fact, name))}"
            for name in SHAPING
            if getattr(first, name) != getattr(fact, name)
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
