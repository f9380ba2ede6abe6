"""Pure: the tables of `proctor report`, over one run or several."""

from collections.abc import Sequence
from typing import NamedTuple

from eval_client.core.statistics.several import pareto_front
from eval_client.report.report import ERROR_PARTS, VALIDITY, PairReport, RunReport
from eval_client.report.shared_tables import Line, lines_of, shared_tables
from proctor.summary import NOT_UNDERSTOOD
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

ON_FRONT = "*"


class TaskTables(NamedTuple):
    """The tables of one task."""

    task: str
    board: ResultTable
    metrics: ResultTable | None
    """The environment's metrics; None where it has none."""


def report_tables(reports: Sequence[RunReport], *, full: bool) -> list[ResultTable]:
    """For each task the leaderboard and, in full, the environment's metrics; then validity with faults, and costs."""
    of_tasks = [(each.board, each.metrics if full else None) for each in task_tables(reports)]
    return [*(table for both in of_tasks for table in both if table is not None), *shared_tables(reports)]


def task_tables(reports: Sequence[RunReport]) -> list[TaskTables]:
    """The tables of each task."""
    lines = lines_of(reports)
    tables = []
    for task in dict.fromkeys(line.pair.task for line in lines):
        of_task = [line for line in lines if line.pair.task == task]
        of_task.sort(key=lambda line: (line.pair.value is None, -(line.pair.value or 0.0)))
        metrics = _metrics(of_task) if any(line.pair.metrics for line in of_task) else None
        tables.append(TaskTables(task, _leaderboard(of_task), metrics))
    return tables


def pairs_table(reports: Sequence[RunReport]) -> ResultTable:
    """All pairs with all that is equal in every environment, a row each: for spreadsheets and programs."""
    titles = ("run", "agent", "task", "environment", "metric", "value", "scored", "planned", "coverage", *VALIDITY)
    titles += ("bad_replies", "cut_answers", "faults", "turns", "prompt_tokens", "cached_tokens")
    titles += ("completion_tokens", "reasoning_tokens", "cache_write_tokens", "estimated_tokens", "money")
    titles += ("seconds", "protocol")
    columns = tuple(
        TableColumn(title, parts=ERROR_PARTS if title == "value" else ())
        for title in (*titles, "not_comparable_because")
    )
    repeats = repeat_titles([pair for report in reports for pair in report.pairs])
    columns += tuple(TableColumn(title, parts=ERROR_PARTS[1:]) for title in repeats)
    rows = tuple(
        TableRow((*_pair_cells(report.run, pair), *repeat_cells(pair, repeats)))
        for report in reports
        for pair in report.pairs
    )
    return ResultTable("", columns, rows)


def _pair_cells(run: str, pair: PairReport) -> tuple[Entry, ...]:
    tokens = (
        *(pair.prompt_tokens, pair.cached_tokens, pair.completion_tokens, pair.reasoning_tokens),
        *(pair.cache_write_tokens, pair.estimated_tokens),
    )
    numbers = (pair.turns, *tokens, pair.money, pair.seconds)
    return (
        *(run, pair.agent, pair.task, pair.environment, pair.primary),
        pair.figure,
        *(pair.scored, pair.planned, Figure(pair.coverage)),
        *(Figure(pair.validity.get(reason)) for reason in VALIDITY),
        Figure(pair.metrics.get(NOT_UNDERSTOOD)),
        Figure(pair.cut_answers),
        sum(pair.faults.values()),
        *(Figure(number) for number in numbers),
        pair.protocol,
        pair.comparable,
    )


def _leaderboard(lines: Sequence[Line]) -> ResultTable:
    first = lines[0].pair
    columns, names = row_names([(line.pair.agent, line.run) for line in lines], ("agent", "run"))
    columns += (
        TableColumn(first.primary, parts=ERROR_PARTS),
        *(TableColumn(title, parts=ERROR_PARTS[1:]) for title in repeat_titles([line.pair for line in lines])),
        TableColumn("scored"),
        TableColumn("coverage"),
    )
    costs, cost_columns, cost_notes = _trial_costs(lines)
    columns += cost_columns
    rows = tuple(
        TableRow((*name, *_score_cells(line.pair, lines), *cost))
        for name, line, cost in zip(names, lines, costs, strict=True)
    )
    comparable = [
        f"Not comparable with published scores: {line.pair.comparable}" for line in lines if line.pair.comparable
    ]
    notes = dict.fromkeys(
        [*comparable, *(note for line in lines for note in line.pair.notes), *_means(lines), *cost_notes]
    )
    protocol = "" if first.protocol == "text" else f", {first.protocol}"
    counts = ((line.pair.scored, line.pair.planned) for line in lines)
    title = title_with_behind(f"{first.task} ({first.environment}{protocol})", counts)
    return ResultTable(title, columns, rows, tuple(notes))


def _means(lines: Sequence[Line]) -> list[str]:
    """The mean scores, which `proctor status` shows, where the primary metric is another number."""
    others = [
        f"{line.pair.agent} {line.pair.mean_score:.3f}"
        for line in lines
        if line.pair.mean_score is not None
        and line.pair.value is not None
        and f"{line.pair.value:.3f}" != f"{line.pair.mean_score:.3f}"
    ]
    return [f"Mean scores, which are not {lines[0].pair.primary}: {', '.join(others)}"] if others else []


def _score_cells(pair: PairReport, lines: Sequence[Line]) -> tuple[Entry, ...]:
    repeats = repeat_cells(pair, repeat_titles([line.pair for line in lines]))
    return pair.figure, *repeats, f"{pair.scored}/{pair.planned}", coverage_text(pair.coverage)


def repeat_titles(pairs: Sequence[PairReport]) -> list[str]:
    """The columns pass@1, pass@k, pass^k of the k of these pairs; empty where samples have one epoch."""
    ks = sorted({each.k for pair in pairs for each in pair.repeats})
    return [*(f"pass@{k}" for k in ks), *(f"pass^{k}" for k in ks if k > 1)]


def repeat_cells(pair: PairReport, titles: Sequence[str]) -> list[Figure]:
    """A pair's cells of these columns."""
    figures = {}
    for each in pair.repeats:
        figures[f"pass@{each.k}"] = Figure(each.pass_at, interval=each.pass_at_interval)
        figures[f"pass^{each.k}"] = Figure(each.pass_hat, interval=each.pass_hat_interval)
    return [figures.get(title, Figure(None)) for title in titles]


def _trial_costs(lines: Sequence[Line]) -> tuple[list[tuple[Figure, ...]], tuple[TableColumn, ...], list[str]]:
    """Cells, columns and notes of what a trial and a passed sample cost; none where no agent is known to cost."""
    pairs = [line.pair for line in lines]
    if all(pair.cost is None for pair in pairs):
        return [()] * len(lines), (), []
    priced = all(pair.money for pair in pairs if pair.cost is not None)
    unit, form = ("money", MONEY) if priced else ("tokens", ",.0f")
    of_trial, of_passed = [], []
    for pair in pairs:
        cost = pair.money if priced else float(pair.prompt_tokens + pair.completion_tokens) or None
        ended = pair.scored + sum(pair.faults.values())
        of_trial.append(cost / ended if cost and ended else None)
        of_passed.append(cost / pair.passed if cost and pair.passed else None)
    known = [place for place, cost in enumerate(of_trial) if cost is not None and pairs[place].value is not None]
    best = pareto_front([(of_trial[place] or 0.0, pairs[place].value or 0.0) for place in known])
    front = {known[place] for place in best} if len(known) > 1 else set()
    cells: list[tuple[Figure, ...]] = [
        (Figure(cost, form, mark=ON_FRONT if place in front else ""), Figure(of_passed[place], form))
        for place, cost in enumerate(of_trial)
    ]
    columns = TableColumn(f"{unit} per trial", parts=("mark",)), TableColumn(f"{unit} per passed sample")
    notes = [f"{ON_FRONT} on the cost-score front: no other agent is cheaper and as good."] if front else []
    return cells, columns, notes


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


def matrix_table(report: RunReport) -> ResultTable:
    """The primary metric of each task, with its standard error, and coverage where trials are missing."""
    agents = tuple(dict.fromkeys(pair.agent for pair in report.pairs))
    by_pair = {(pair.task, pair.agent): pair for pair in report.pairs}
    scores = (TableColumn(agent, parts=(*ERROR_PARTS, "coverage")) for agent in agents)
    columns = (TableColumn("task", left=True), TableColumn("metric", left=True), *scores)
    rows = []
    for task, first in {pair.task: pair for pair in reversed(report.pairs)}.items():
        cells = (_score(by_pair.get((task, agent))) for agent in agents)
        rows.append(TableRow((task, first.primary, *cells)))
    title = title_with_behind("", ((pair.scored, pair.planned) for pair in report.pairs))
    return ResultTable(title, columns, tuple(reversed(rows)))


def _score(pair: PairReport | None) -> Figure | None:
    if pair is None:
        return None
    return pair.figure._replace(coverage=pair.coverage)


def took(report: RunReport, seconds: float) -> str:
    """What a run took: trials, turns, time, tokens and money."""
    pairs = report.pairs
    trials, turns = sum(pair.scored for pair in pairs), sum(pair.turns for pair in pairs)
    tokens = sum(pair.prompt_tokens + pair.completion_tokens for pair in pairs)
    paid = f"{tokens:,} tokens" if tokens else "no model was asked"
    return f"{trials:,} trials scored, {turns:,} turns in {seconds:.0f} s; {paid}"
