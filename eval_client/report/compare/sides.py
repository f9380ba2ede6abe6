"""Finds the two sides of a comparison in their runs."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from eval_client.plan.plan import differences
from eval_client.store.records import Manifest, TaskRecord
from eval_client.store.store import Store
from eval_client.store.trials.scores import PairScores, planned_scores
from proctor.types import Summary


class CompareError(ValueError):
    """What is asked for can't be compared or found; the message names the fix."""


class NotComparable(CompareError):
    """What is asked for is there, and its differences, its gaps or its size forbid a comparison."""


class Reference(NamedTuple):
    """RUN, RUN:AGENT, RUN:AGENT@TASK or RUN:AGENT@TASK/SAMPLE; `latest` for RUN where the text begins with a colon."""

    run: str
    agent: str | None
    task: str | None
    sample: str | None


def parse_reference(text: str) -> Reference:
    """Split at the first colon, the first @ after it, and the first / after that; a sample may hold any character.

    Raises CompareError where a part is empty.
    """
    run, colon, rest = text.partition(":")
    agent, at, rest = rest.partition("@")
    task, slash, sample = rest.partition("/")
    for sign, part, name in ((colon, agent, "agent"), (at, task, "task"), (slash, sample, "sample")):
        if sign and not part:
            raise CompareError(f"{text!r}: no {name} after {sign!r}; write RUN:AGENT, or RUN:AGENT@TASK")
    return Reference(run or "latest", agent or None, task or None, sample or None)


OpenRun = Callable[[str], Store]
"""Finds a run by its folder, its name or `latest`. Raises StoreError."""

MOST_AGENTS = 6

Across = Literal["limits", "seed", "version", "task"]

ACROSS = get_args(Across)
"""Kinds of unlikeness that a comparison may be made across."""


class Unlike(NamedTuple):
    """One field that differs."""

    kind: Across | None
    """None for what nothing can be compared across."""
    text: str
    """`field: A's -> B's`"""


@dataclass(frozen=True)
class RunAgent:
    store: Store
    manifest: Manifest
    agent: str

    @property
    def label(self) -> str:
        return f"{self.agent} ({self.store.run})"


@dataclass(frozen=True)
class TaskSide(RunAgent):
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
    """The side that a reference names. Raises CompareError, StoreError, DatabaseError."""
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

    Raises CompareError, StoreError, DatabaseError.
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
    return list(dict.fromkeys(agent for agent, _ in manifest.read_plan().pairs()))


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


def unlike(a: TaskSide, b: TaskSide) -> list[Unlike]:
    """All that differs between two sides, agents and their endpoints aside."""
    one, other = a.record, b.record
    if one.environment != other.environment:
        return [Unlike(None, f"tasks.{a.task}.environment: {one.environment!r} -> {other.environment!r}")]
    found: list[Unlike] = []
    if one.digest != other.digest:
        texts = _parameters(a, b) or [f"tasks.{a.task}: data or prompts"]
        found += [Unlike("task", f"{text} (digest {one.digest[:12]} -> {other.digest[:12]})") for text in texts]
    mine, its = a.manifest.identity, b.manifest.identity
    found += [Unlike("limits", text) for text in differences(mine.get("limits"), its.get("limits"), "limits")]
    found += [Unlike("seed", text) for text in differences(mine.get("seed"), its.get("seed"), "seed")]
    if _minor(a.manifest.version) != _minor(b.manifest.version):
        found.append(Unlike("version", f"version of Proctor: {a.manifest.version} -> {b.manifest.version}"))
    return found


def check_alike(pairs: Collection[tuple[TaskSide, TaskSide]], across: Collection[str]) -> None:
    """Raises NotComparable with all differences of two agents' tasks that are not waved through.

    Also where two tasks that differ have other samples: across tasks, samples are paired by their ids.
    """
    refused = [each for a, b in pairs for each in unlike(a, b) if each.kind not in across]
    if not refused:
        for a, b in pairs:
            only_a, only_b = a.scores.keys() - b.scores.keys(), b.scores.keys() - a.scores.keys()
            if a.record.digest != b.record.digest and only_a and only_b:  # --limit cuts one alone
                raise NotComparable(
                    f"tasks {a.task} and {b.task} have different samples: {min(only_a)!r} only in {a.label}, "
                    f"{min(only_b)!r} only in {b.label}; --across task needs equal ids"
                )
        return
    lines = "\n  ".join(dict.fromkeys(each.text for each in refused))
    kinds = sorted({each.kind for each in refused if each.kind is not None})
    fix = "compare tasks of one environment"
    if all(each.kind is not None for each in refused):
        fix = f"to compare all the same: {' '.join(f'--across {kind}' for kind in kinds)}"
    a, b = next(iter(pairs))
    raise NotComparable(f"{a.label} and {b.label} are not alike:\n  {lines}\n{fix}")


def _parameters(a: TaskSide, b: TaskSide) -> list[str]:
    """The parameters that differ; none where a controller defines the task, since the manifest has none then."""
    one, other = a.manifest.parameters(a.task), b.manifest.parameters(b.task)
    return [] if one is None or other is None else differences(one, other, f"tasks.{a.task}.parameters")


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
