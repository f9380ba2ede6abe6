"""Compares two agents of one run, or of two runs, task by task."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from eval_client.core.statistics.power import least_p
from eval_client.core.statistics.several import holm, letters
from eval_client.report.compare.measure import Settings, measure
from eval_client.report.compare.sides import CompareError, NotComparable, Side, TaskSide, check_alike
from eval_client.report.compare.values import ComparedAgent, Comparison, Comparisons, TaskComparison, range_text

ENOUGH_MATCHED = 0.95
"""Below this share of matched samples the missing scores count too."""
FEW_CLUSTERS, FEW_EFFECTIVE = 10, 5
UNEQUALLY_MISSING = 0.05
"""Below this p the two sides do not miss the same samples by chance."""


def compare_sides(a: Side, b: Side, settings: Settings) -> Comparison:
    """Compare two sides. Raises CompareError, DatabaseError."""
    return _compare([(a, b)], settings)[0]


def compare_run(pairs: Sequence[tuple[Side, Side]], settings: Settings, *, lettered: bool) -> Comparisons:
    """Compare agents of one run; letters need all pairs. Raises CompareError, DatabaseError."""
    found = _compare(pairs, settings)
    return Comparisons(comparisons=tuple(found), letters=_letters(found, settings.alpha) if lettered else {})


def _compare(pairs: Sequence[tuple[Side, Side]], settings: Settings) -> list[Comparison]:
    """Compare pairs of sides, with Holm's correction over the tests of all."""
    all_tasks = [_common_tasks(a, b, settings.tasks) for a, b in pairs]
    for tasks in all_tasks:
        check_alike(tasks, settings.across)
    tests = sum(map(len, all_tasks))
    rows = [measure(a, b, settings, tests) for tasks in all_tasks for a, b in tasks]
    adjusted = holm([row.p for row in rows])
    finished = iter([_explained(row, p, settings) for row, p in zip(rows, adjusted, strict=True)])
    return [
        _comparison(a, b, [next(finished) for _ in tasks], tests, settings)
        for (a, b), tasks in zip(pairs, all_tasks, strict=True)
    ]


def _explained(row: TaskComparison, p_holm: float, settings: Settings) -> TaskComparison:
    corrected = row.model_copy(update={"p_holm": p_holm})
    return corrected.model_copy(update={"warnings": warnings_of(corrected, settings.alpha)})


def warnings_of(row: TaskComparison, alpha: float) -> tuple[str, ...]:
    """Why the figures deserve less trust than they seem to."""
    unlike = [f"Not alike: {'; '.join(row.unlike)}."] if row.unlike else []
    return (*_few_clusters(row, alpha), *_disagreement(row, alpha), *_missing(row), *unlike)


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


def _disagreement(row: TaskComparison, alpha: float) -> list[str]:
    if row.test == "mcnemar" or row.t_p is None or (row.p < alpha) == (row.t_p < alpha):
        return []
    return [f"Sign flips and Student's t (p {row.t_p:.2g}) disagree at this level."]


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
        a=_agent(a),
        b=_agent(b),
        alike=tuple(dict.fromkeys(text for row in rows for text in row.unlike)),
        across=settings.across,
        alpha=settings.alpha,
        power=settings.power,
        tests=tests,
        tasks=tuple(rows),
    )


def _agent(side: Side) -> ComparedAgent:
    return ComparedAgent(run=side.store.run, agent=side.agent, version=side.manifest.version)


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


def _letters(found: Sequence[Comparison], alpha: float) -> dict[str, dict[str, str]]:
    agents = list(dict.fromkeys(agent for each in found for agent in (each.a.agent, each.b.agent)))
    tests = [(row.task, frozenset((each.a.agent, each.b.agent)), row.p_holm) for each in found for row in each.tasks]
    return letters_by_task(agents, tests, alpha)


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
