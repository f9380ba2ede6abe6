"""Pure: the tables of `proctor report`, over one run or several."""

from collections.abc import Sequence
from typing import NamedTuple

from eval_client.core.statistics.several import pareto_front
from eval_client.report.pair_report import ERROR_PARTS, VALIDITY, PairReport, RunReport
from eval_client.report.shared_tables import Line, lines_of, shared_tables
from proctor.tables.table import (
    MONEY,
    Entry,
    Figure,
    ResultTable,
    TableColumn,
    TableRow,
    coverage_text,
    row_names,
    title_with_behind,
)
from proctor.types import NOT_UNDERSTOOD

ON_FRONT = "*"
COUNTS = ("turns", "prompt_tokens", "cached_tokens", "completion_tokens", "reasoning_tokens", "cache_write_tokens")
PAIR_TITLES = (
    *("agent", "task", "environment", "metric", "value", "scored", "planned", "coverage", *VALIDITY, "bad_replies"),
    *("cut_answers", "faults", *COUNTS, "estimated_tokens", "money", "seconds", "protocol", "not_comparable_because"),
)
FIELDS = {"metric": "primary", "value": "figure", "faults": "unscored", "not_comparable_because": "comparable"}
"""title -> the field of a pair that is called otherwise."""


class TaskTables(NamedTuple):
    task: str
    board: ResultTable
    metrics: ResultTable | None
    """The environment's metrics; None where it has none."""


def report_tables(reports: Sequence[RunReport], *, full: bool) -> list[ResultTable]:
    """For each task the leaderboard and, in full, the environment's metrics; then validity with faults, and costs."""
    of_tasks = [(each.board, each.metrics if full else None) for each in task_tables(reports)]
    return [*(table for both in of_tasks for table in both if table is not None), *shared_tables(reports)]


def task_tables(reports: Sequence[RunReport]) -> list[TaskTables]:
    lines = lines_of(reports)
    tables = []
    for task in dict.fromkeys(line.pair.task for line in lines):
        of_task = [line for line in lines if line.pair.task == task]
        metrics = _metrics(of_task) if any(line.pair.metrics for line in of_task) else None
        tables.append(TaskTables(task, _leaderboard(of_task), metrics))
    return tables


def pairs_table(reports: Sequence[RunReport]) -> ResultTable:
    """All pairs with all that is equal in every environment, a row each: for spreadsheets and programs."""
    lines = lines_of(reports)
    repeats = repeat_titles([line.pair for line in lines])
    columns = [TableColumn(title, parts=ERROR_PARTS if title == "value" else ()) for title in ("run", *PAIR_TITLES)]
    rows = [(line.run, *(_field(line.pair, title) for title in PAIR_TITLES)) for line in lines]
    return ResultTable(
        "",
        (*columns, *repeat_columns(repeats)),
        tuple(TableRow((*row, *repeat_cells(line.pair, repeats))) for row, line in zip(rows, lines, strict=True)),
    )


def _field(pair: PairReport, title: str) -> Entry:
    if title in VALIDITY:
        return Figure(pair.validity.get(title))
    if title == "bad_replies":
        return Figure(pair.metrics.get(NOT_UNDERSTOOD))
    found: Entry | float = getattr(pair, FIELDS.get(title, title))
    return Figure(found) if isinstance(found, float) else found


def _leaderboard(lines: Sequence[Line]) -> ResultTable:
    pairs = [line.pair for line in lines]
    first, repeats = pairs[0], repeat_titles(pairs)
    cost_columns, costs, cost_notes = _trial_costs(pairs)
    name_columns, names = row_names([(line.pair.agent, line.run) for line in lines], ("agent", "run"))
    columns = (
        *(*name_columns, TableColumn(first.primary, parts=ERROR_PARTS), *repeat_columns(repeats)),
        *(TableColumn("scored"), TableColumn("coverage"), *cost_columns),
    )
    rows = []
    for name, pair, cost in zip(names, pairs, costs, strict=True):
        counts = (f"{pair.scored}/{pair.planned}", coverage_text(pair.coverage))
        rows.append(TableRow((*name, pair.figure, *repeat_cells(pair, repeats), *counts, *cost)))
    notes = [f"Not comparable with published scores: {pair.comparable}" for pair in pairs if pair.comparable]
    notes += [*(note for pair in pairs for note in pair.notes), *_means(pairs), *cost_notes]
    protocol = "" if first.protocol == "text" else f", {first.protocol}"
    title = f"{first.task} ({first.environment}{protocol})"
    title = title_with_behind(title, ((pair.scored, pair.planned) for pair in pairs))
    return ResultTable(title, columns, tuple(rows), tuple(dict.fromkeys(notes)))


def _means(pairs: Sequence[PairReport]) -> list[str]:
    """The mean scores, which `proctor status` shows, where the primary metric is another number."""
    both = [(pair.agent, pair.value, pair.mean_score) for pair in pairs]
    others = [
        f"{agent} {mean:.3f}"
        for agent, value, mean in both
        if mean is not None and value is not None and f"{value:.3f}" != f"{mean:.3f}"
    ]
    return [f"Mean scores, which are not {pairs[0].primary}: {', '.join(others)}"] if others else []


def repeat_titles(pairs: Sequence[PairReport]) -> list[str]:
    """The columns pass@1, pass@k, pass^k of the k of these pairs; empty where samples have one epoch."""
    ks = sorted({each.k for pair in pairs for each in pair.repeats})
    return [*(f"pass@{k}" for k in ks), *(f"pass^{k}" for k in ks if k > 1)]


def repeat_columns(titles: Sequence[str]) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(title, parts=ERROR_PARTS[1:]) for title in titles)


def repeat_cells(pair: PairReport, titles: Sequence[str]) -> list[Figure]:
    figures = {}
    for each in pair.repeats:
        figures[f"pass@{each.k}"] = Figure(each.pass_at, interval=each.pass_at_interval)
        figures[f"pass^{each.k}"] = Figure(each.pass_hat, interval=each.pass_hat_interval)
    return [figures.get(title, Figure(None)) for title in titles]


def _trial_costs(
    pairs: Sequence[PairReport],
) -> tuple[Sequence[TableColumn], Sequence[tuple[Figure, ...]], Sequence[str]]:
    """What a trial and a passed sample cost: columns, none where no agent is known to cost; cells of pairs; notes."""
    if all(pair.cost is None for pair in pairs):
        return (), [()] * len(pairs), ()
    priced = all(pair.money for pair in pairs if pair.cost is not None)
    unit, form = ("money", MONEY) if priced else ("tokens", ",.0f")
    costs = [pair.money if priced else float(pair.prompt_tokens + pair.completion_tokens) or None for pair in pairs]
    of_trial = [cost / pair.ended if cost and pair.ended else None for pair, cost in zip(pairs, costs, strict=True)]
    known = [(cost, pair.value) for pair, cost in zip(pairs, of_trial, strict=True)]
    points = [(cost, value) for cost, value in known if cost is not None and value is not None]
    front = {points[place] for place in pareto_front(points)} if len(points) > 1 else set()
    cells = []
    for pair, cost, per_trial in zip(pairs, costs, of_trial, strict=True):
        mark = ON_FRONT if (per_trial, pair.value) in front else ""
        per_passed = cost / pair.passed if cost and pair.passed else None
        cells.append((Figure(per_trial, form, mark=mark), Figure(per_passed, form)))
    columns = TableColumn(f"{unit} per trial", parts=("mark",)), TableColumn(f"{unit} per passed sample")
    note = f"{ON_FRONT} on the cost-score front: no other agent is cheaper and as good."
    return columns, cells, (note,) if front else ()


def _metrics(lines: Sequence[Line]) -> ResultTable:
    """A row for each metric, a column for each agent."""
    several = len({line.run for line in lines}) > 1
    titles = [f"{line.pair.agent} ({line.run})" if several else line.pair.agent for line in lines]
    columns = (TableColumn("metric", left=True), *map(TableColumn, titles))
    rows = []
    for name in dict.fromkeys(name for line in lines for name in line.pair.metrics):
        values = [line.pair.metrics.get(name) if line.pair.scored else None for line in lines]
        rows.append(TableRow((name, *(Figure(value, _metric_form(values)) for value in values))))
    return ResultTable("", columns, tuple(rows))


def _metric_form(values: Sequence[float | None]) -> str:
    """One format for a row: counts as whole numbers, other values with three decimals."""
    known = [value for value in values if value is not None]
    return ".0f" if max(known, default=0.0) > 1 and all(value == int(value) for value in known) else ".3f"


def matrix_table(pairs: Sequence[PairReport]) -> ResultTable:
    """The primary metric of each task, with its standard error, and coverage where trials are missing."""
    agents, tasks = dict.fromkeys(pair.agent for pair in pairs), {pair.task: pair for pair in reversed(pairs)}
    figures = {(pair.task, pair.agent): pair.figure._replace(coverage=pair.coverage) for pair in pairs}
    scores = (TableColumn(agent, parts=(*ERROR_PARTS, "coverage")) for agent in agents)
    columns = (TableColumn("task", left=True), TableColumn("metric", left=True), *scores)
    rows = [
        TableRow((task, first.primary, *(figures.get((task, agent)) for agent in agents)))
        for task, first in reversed(tasks.items())
    ]
    return ResultTable(title_with_behind("", ((pair.scored, pair.planned) for pair in pairs)), columns, tuple(rows))


def took(report: RunReport, seconds: float) -> str:
    """What a run took: trials, turns, time, tokens and money."""
    pairs = report.pairs
    trials, turns = sum(pair.scored for pair in pairs), sum(pair.turns for pair in pairs)
    tokens = sum(pair.prompt_tokens + pair.completion_tokens for pair in pairs)
    paid = f"{tokens:,} tokens" if tokens else "no model was asked"
    return f"{trials:,} trials scored, {turns:,} turns in {seconds:.0f} s; {paid}"
