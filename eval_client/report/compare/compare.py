"""Compares two agents of one run, or of two runs, task by task."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from eval_client.core.statistics.several import holm, letters
from eval_client.report.compare.alike import check_alike
from eval_client.report.compare.measure import Settings, measure
from eval_client.report.compare.notes import notes_of, warnings_of
from eval_client.report.compare.sides import Side, TaskSide
from eval_client.report.compare.values import ComparedAgent, Comparison, Comparisons, TaskComparison
from eval_client.report.reference import CompareError, NotComparable


def compare_sides(a: Side, b: Side, settings: Settings) -> Comparison:
    """Compare two sides. Raises CompareError, SQLAlchemyError."""
    return _compare([(a, b)], settings)[0]


def compare_run(pairs: Sequence[tuple[Side, Side]], settings: Settings, *, lettered: bool) -> Comparisons:
    """Compare agents of one run; letters need all pairs. Raises CompareError, SQLAlchemyError."""
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
    notes, warnings = notes_of(corrected, settings.alpha, settings.power), warnings_of(corrected, settings.alpha)
    return corrected.model_copy(update={"notes": notes, "warnings": warnings})


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
