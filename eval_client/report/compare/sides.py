"""Finds the two sides of a comparison in their runs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from eval_client.plan.plan import Plan
from eval_client.report.compare.scores import PairScores, planned_scores
from eval_client.report.reference import CompareError, NotComparable, Reference
from eval_client.store.records import Manifest, TaskRecord
from eval_client.store.store import Store
from proctor.types import Summary

OpenRun = Callable[[str], Store]
"""Finds a run by its folder, its name or `latest`. Raises StoreError."""
MOST_AGENTS = 6


@dataclass(frozen=True)
class RunAgent:
    """One agent of a run."""

    store: Store
    manifest: Manifest
    agent: str

    @property
    def label(self) -> str:
        """Agent and run."""
        return f"{self.agent} ({self.store.run})"


@dataclass(frozen=True)
class TaskSide(RunAgent):
    """One side of a comparison on one task."""

    task: str
    scores: PairScores
    summary: Summary | None
    """What the run's report shows; None where it is of other trials than are scored now."""

    @property
    def record(self) -> TaskRecord:
        """The task as it was when the run began."""
        return self.manifest.tasks[self.task]


@dataclass(frozen=True)
class Side(RunAgent):
    """One side of a comparison."""

    named_task: str | None
    """The one task that was named; None for all."""
    tasks: Mapping[str, TaskSide]
    """By name, in the plan's order."""

    def on(self, task: str) -> TaskSide:
        """This agent on one task. Raises CompareError."""
        if task not in self.tasks:
            raise CompareError(f"{self.label} plays no task {task!r}; it plays: {', '.join(self.tasks)}")
        return self.tasks[task]


def find_side(reference: Reference, open_run: OpenRun) -> Side:
    """The side that a reference names. Raises CompareError, StoreError, SQLAlchemyError."""
    if reference.sample is not None:
        raise CompareError(f"/{reference.sample}: a comparison is over samples; leave the sample out")
    store = open_run(reference.run)
    manifest = store.manifest()
    agents = agents_of(manifest)
    if reference.agent is None and len(agents) > 1:
        raise CompareError(f"run {store.run}: name one of its agents, as {store.run}:{agents[0]}; {_listed(agents)}")
    agent = reference.agent or agents[0]
    if agent not in agents:
        raise CompareError(f"run {store.run} has no agent {agent!r}; {_listed(agents)}")
    side = _sides(store, manifest, [agent], reference.task)[0]
    if reference.task is not None:
        side.on(reference.task)
    return side


def find_pairs(reference: Reference, against: str | None, open_run: OpenRun) -> list[tuple[Side, Side]]:
    """All pairs of a run's agents; with `against`, each other agent and that one.

    Raises CompareError, StoreError, SQLAlchemyError.
    """
    if reference.agent is not None:
        raise CompareError(
            f"{reference.run}:{reference.agent} needs a second agent to be compared with; name it as B, as :AGENT, or "
            f"write {reference.run} --against {reference.agent}"
        )
    store = open_run(reference.run)
    manifest = store.manifest()
    agents = agents_of(manifest)
    if len(agents) < 2:
        raise NotComparable(f"run {store.run} has one agent, {agents[0]}; name a second run to compare it with")
    if against is not None and against not in agents:
        raise CompareError(f"--against {against}: run {store.run} has no such agent; {_listed(agents)}")
    if against is None and len(agents) > MOST_AGENTS:
        raise NotComparable(
            f"run {store.run} has {len(agents)} agents, too many for all pairs (at most {MOST_AGENTS}); name A and B, "
            f"or one agent with --against; {_listed(agents)}"
        )
    sides = _sides(store, manifest, agents, None)
    if against is not None:
        reference_side = next(side for side in sides if side.agent == against)
        return [(side, reference_side) for side in sides if side.agent != against]
    return [(a, b) for number, a in enumerate(sides) for b in sides[number + 1 :]]


def agents_of(manifest: Manifest) -> list[str]:
    """The agents that play any task of a run, in the plan's order."""
    return list(dict.fromkeys(agent for agent, _ in Plan.model_validate(manifest.plan).pairs()))


def _sides(store: Store, manifest: Manifest, agents: Sequence[str], task: str | None) -> list[Side]:
    summaries = store.summaries()
    tasks: dict[str, dict[str, TaskSide]] = {agent: {} for agent in agents}
    for (agent, name), scores in planned_scores(store, agents).items():
        counted, summary = summaries.get((agent, name), (0, None))
        current = counted == sum(len(each.scores) for each in scores.values())
        tasks[agent][name] = TaskSide(store, manifest, agent, name, scores, summary if current else None)
    return [Side(store, manifest, agent, task, tasks[agent]) for agent in agents]


def _listed(agents: Sequence[str]) -> str:
    return f"its agents are: {', '.join(agents)}"
