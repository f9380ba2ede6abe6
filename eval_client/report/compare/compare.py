"""Compares two agents of one run, or of two runs, task by task, and all agents of a run."""

import dataclasses
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from eval_client.core.statistics.paired import difference
from eval_client.core.statistics.power import least_p
from eval_client.core.statistics.several import holm, letters
from eval_client.report.compare.measure import Settings, measure, planned_pairs
from eval_client.report.compare.sides import (
    MOST_AGENTS,
    CompareError,
    NotComparable,
    Reference,
    Side,
    TaskSide,
    agents_of,
    check_alike,
    find_pairs,
)
from eval_client.report.compare.values import ComparedAgent, Comparison, Comparisons, TaskComparison, range_text
from eval_client.report.pair_report import PairReport
from eval_client.report.scrub import publishable
from eval_client.store.store import Store
from eval_client.store.trials.scores import PairScores, planned_scores

ENOUGH_MATCHED = 0.95
"""Below this share of matched samples the missing scores count too."""
FEW_CLUSTERS, FEW_EFFECTIVE = 10, 5
UNEQUALLY_MISSING = 0.05
"""Below this p the two sides do not miss the same samples by chance."""
MOST_WORK, TEST_WORK = 15_000, 150
"""Letters are for runs whose tests take less work: one for each sample, and TEST_WORK for each test."""
TOO_MANY = f"more than {MOST_AGENTS}: `proctor compare` takes two, or one against all others"
TOO_MUCH = "too many tests to make beside a page; compare the agents to see them"
UNMATCHED = "{a} and {b} are not compared on {task}: they have no scored sample in common."


def compare_run(pairs: Sequence[tuple[Side, Side]], settings: Settings, *, lettered: bool) -> Comparisons:
    """Compare pairs of agents, with Holm's correction over the tests of all; letters need all pairs of a run.

    Raises CompareError, DatabaseError.
    """
    all_tasks = [_common_tasks(a, b, settings.tasks) for a, b in pairs]
    for tasks in all_tasks:
        check_alike(tasks, settings.across)
    tests = sum(map(len, all_tasks))
    rows = [measure(a, b, settings, tests) for tasks in all_tasks for a, b in tasks]
    adjusted = holm([row.p for row in rows])
    explained = iter([_explained(row, p, settings) for row, p in zip(rows, adjusted, strict=True)])
    found = tuple(
        _comparison(a, b, [next(explained) for _ in tasks], tests, settings)
        for (a, b), tasks in zip(pairs, all_tasks, strict=True)
    )
    agents = list(dict.fromkeys(agent for each in found for agent in (each.a.agent, each.b.agent)))
    apart = [(row.task, frozenset((each.a.agent, each.b.agent)), row.p_holm) for each in found for row in each.tasks]
    return Comparisons(comparisons=found, letters=letters_by_task(agents, apart, settings.alpha) if lettered else {})


def _explained(row: TaskComparison, p_holm: float, settings: Settings) -> TaskComparison:
    """The row with its adjusted p, and why its figures deserve less trust than they seem to."""
    alpha = settings.alpha
    corrected = row.model_copy(update={"p_holm": p_holm})
    warnings = _few_clusters(corrected, alpha)
    if row.test != "mcnemar" and row.t_p is not None and (row.p < alpha) != (row.t_p < alpha):
        warnings.append(f"Sign flips and Student's t (p {row.t_p:.2g}) disagree at this level.")
    unlike = [f"Not alike: {'; '.join(row.unlike)}."] if row.unlike else []
    return corrected.model_copy(update={"warnings": (*warnings, *_missing(corrected), *unlike)})


def _few_clusters(row: TaskComparison, alpha: float) -> list[str]:
    units = "samples" if row.clusters == row.samples else "clusters"
    lines = []
    if row.clusters < FEW_CLUSTERS:
        lines.append(f"Few {units} ({row.clusters}): error and interval are rough.")
    elif row.effective_clusters < FEW_EFFECTIVE:
        lines.append(
            f"Few effective clusters ({row.effective_clusters:.1f} of {row.clusters}): error and interval are rough."
        )
    if least_p(row.clusters) > alpha:
        lines.append(
            f"{row.clusters} {units} can't show anything at this level: no p is below {least_p(row.clusters):g}."
        )
    elif row.differing and least_p(row.differing) > alpha:
        lines.append(f"So few {units} differ ({row.differing}) that no p is below {least_p(row.differing):g}.")
    return lines


def _missing(row: TaskComparison) -> list[str]:
    lines = []
    if row.missing.a or row.missing.b:
        sign = "holds whatever they are" if row.holds else "could change"
        lines.append(f"{row.missing.a:,} trials of A and {row.missing.b:,} of B are missing: the sign {sign}.")
    if row.missing.p < UNEQUALLY_MISSING:
        lines.append(f"The two sides miss different samples (exact McNemar: p {row.missing.p:.2g}), not by chance.")
    if row.planned_on_one_side:
        lines.append(f"{row.planned_on_one_side:,} samples are planned on one side only, and left out.")
    return lines


def _comparison(a: Side, b: Side, rows: Sequence[TaskComparison], tests: int, settings: Settings) -> Comparison:
    return Comparison(
        a=ComparedAgent(run=a.store.run, agent=a.agent, version=a.manifest.version),
        b=ComparedAgent(run=b.store.run, agent=b.agent, version=b.manifest.version),
        alike=tuple(dict.fromkeys(text for row in rows for text in row.unlike)),
        across=settings.across,
        alpha=settings.alpha,
        power=settings.power,
        tests=tests,
        tasks=tuple(rows),
    )


def _common_tasks(a: Side, b: Side, wanted: Sequence[str]) -> list[tuple[TaskSide, TaskSide]]:
    """The tasks to compare, at least one. Raises CompareError."""
    named = a.named_task or b.named_task
    if named is not None:
        return [(a.on(a.named_task or named), b.on(b.named_task or named))]
    common = [task for task in a.tasks if task in b.tasks]
    for task in wanted:
        if task not in common:
            raise CompareError(f"--task {task}: not played by both; both play: {', '.join(common) or 'none'}")
    if not common:
        raise NotComparable(f"{a.label} and {b.label} have no task in common; name one for each as RUN:AGENT@TASK")
    return [(a.on(task), b.on(task)) for task in common if not wanted or task in wanted]


def letters_by_task(
    agents: Sequence[str], tests: Iterable[tuple[str, frozenset[str], float]], alpha: float
) -> dict[str, dict[str, str]]:
    """task -> agent -> letters, of the agents that are tested on it; a test is of a task and a pair, with its p."""
    tested, apart = defaultdict[str, set[str]](set), defaultdict[str, set[frozenset[str]]](set)
    for task, pair, p in tests:
        tested[task] |= pair
        if p < alpha:
            apart[task].add(pair)
    return {task: letters([agent for agent in agents if agent in tested[task]], apart[task]) for task in tested}


def with_gates(comparison: Comparison, if_worse: float | None, unless_as_good: float | None) -> Comparison:
    """The comparison with a line for each task and gate that fails.

    Margins are differences of scores, None where a gate is not asked for. `if_worse` fails where B is surely worse:
    A - B is above 0, the adjusted p below alpha and the interval above the margin. `unless_as_good` fails where the
    interval reaches above the margin, or there is none. Both fail where fewer than 95 % of the planned samples are
    matched and the missing scores could put A - B above the margin.
    """
    lines = []
    for row in comparison.tasks:
        for name, margin, why in (
            ("--fail-if-worse", if_worse, _worse),
            ("--fail-unless-as-good", unless_as_good, _not_as_good),
        ):
            if margin is not None and (found := why(row, margin, comparison.alpha) or _too_much_missing(row, margin)):
                lines.append(f"{name} {margin:g}: {row.name}: {found}")
    return comparison.model_copy(update={"gates": tuple(lines)})


def _worse(row: TaskComparison, margin: float, alpha: float) -> str | None:
    if row.difference <= 0 or row.p_holm >= alpha or row.interval is None or row.interval[0] <= margin:
        return None
    return (
        f"B is worse by {row.difference:.3f}, surely by more than {margin:g} (interval {range_text(row.interval)}, p "
        f"{row.p_holm:.2g})"
    )


def _not_as_good(row: TaskComparison, margin: float, _alpha: float) -> str | None:
    if row.interval is None:
        return "too few samples for an interval"
    if row.interval[1] <= margin:
        return None
    return f"B may be worse by up to {row.interval[1]:.3f} (interval of A - B {range_text(row.interval)})"


def _too_much_missing(row: TaskComparison, margin: float) -> str | None:
    if row.samples >= ENOUGH_MATCHED * row.planned or row.bounds[1] <= margin:
        return None
    return (
        f"{row.samples} of {row.planned} planned samples are matched, and the missing scores could make B worse by "
        f"{row.bounds[1]:.3f}"
    )


class Letters(NamedTuple):
    """The letters of a run's agents: those of a task share one if, and only if, no test tells them apart."""

    of_task: Mapping[str, Mapping[str, str]]
    """task -> agent -> letters; empty where they are left out."""
    left_out: str = ""
    """Why there are none; empty too where there is nothing to tell apart."""


def run_letters(store: Store, pairs: Sequence[PairReport]) -> Letters:
    """The letters of a run, those of `proctor compare RUN`; left out where they would cost too much.

    Raises StoreError, DatabaseError.
    """
    agents = agents_of(store.manifest())
    if len(agents) > MOST_AGENTS:
        return Letters({}, f"{len(agents)} agents, {TOO_MANY}")
    if len(agents) > 1 and _work(pairs) > MOST_WORK:
        return Letters({}, TOO_MUCH)
    return Letters(_letters(agents, planned_scores(store, agents)) if len(agents) > 1 else {})


def _work(pairs: Sequence[PairReport]) -> int:
    planned: dict[str, list[int]] = {}
    for pair in pairs:
        planned.setdefault(pair.task, []).append(pair.planned)
    return sum(len(each) * (len(each) - 1) // 2 * (TEST_WORK + max(each)) for each in planned.values())


def _letters(agents: Sequence[str], scores: Mapping[tuple[str, str], PairScores]) -> dict[str, dict[str, str]]:
    """No test is made of two agents without a scored sample in common, and they are not told apart."""
    settings = Settings()
    tests: list[tuple[str, frozenset[str], float]] = []
    for a, b in combinations(agents, 2):
        for task in [task for agent, task in scores if agent == a and (b, task) in scores]:
            both = planned_pairs(scores[a, task], scores[b, task]).values()
            if matched := [pair for pair in both if pair.matched]:
                p = difference(matched, settings.alpha, random.Random(settings.seed)).p
                tests.append((task, frozenset((a, b)), p))
    adjusted = holm([p for _, _, p in tests])
    corrected = [(task, pair, p) for (task, pair, _), p in zip(tests, adjusted, strict=True)]
    return letters_by_task(agents, corrected, settings.alpha)


def compared(store: Store) -> tuple[Comparisons | None, list[str]]:
    """What `proctor compare RUN` finds, without tasks on which two agents have no scored sample in common.

    The other value are sentences on what could not be compared. Raises StoreError, DatabaseError.
    """
    agents = agents_of(store.manifest())
    if len(agents) < 2:
        return None, ["Nothing to compare: the run has one agent."]
    if len(agents) > MOST_AGENTS:
        return None, [f"Not compared: with {len(agents)} agents, {TOO_MANY}."]
    pairs, left_out = [], []
    for a, b in find_pairs(Reference(store.run, None, None, None), None, lambda _: store):
        common = [task for task in a.tasks if task in b.tasks]
        both = {task: planned_pairs(a.tasks[task].scores, b.tasks[task].scores).values() for task in common}
        matched = [task for task in common if any(pair.matched for pair in both[task])]
        left_out += [UNMATCHED.format(a=a.agent, b=b.agent, task=task) for task in common if task not in matched]
        if matched:
            pairs.append((_only(a, matched), _only(b, matched)))
    if not pairs:
        return None, left_out or ["Nothing to compare: no task has two agents."]
    try:
        return compare_run(pairs, Settings(), lettered=True), left_out
    except CompareError as error:
        return None, [publishable(f"Not compared: {error}.")]


def _only(side: Side, tasks: Sequence[str]) -> Side:
    return dataclasses.replace(side, tasks={task: side.tasks[task] for task in tasks})
