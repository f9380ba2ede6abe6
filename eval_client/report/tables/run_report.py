"""Pure: the tables of `proctor report`, over one run or several."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from eval_client.report.plots.cost import pareto_front
from eval_client.report.report import ERROR_PARTS, VALIDITY, HelperReport, PairReport, RunReport
from eval_client.store.records import ReplicaCost
from proctor.summary import NOT_UNDERSTOOD, THOUGHTS
from proctor.tables.money import money_text
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
SHORT = {
    "turn_limit": "turn limit",
    "invalid_format": "bad format",
    "invalid_action": "bad action",
    "context_limit": "context",
}


class _Line(NamedTuple):
    """A pair, and the run that it is of."""

    run: str
    pair: PairReport


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
    lines = _lines(reports)
    tables = []
    for task in dict.fromkeys(line.pair.task for line in lines):
        of_task = [line for line in lines if line.pair.task == task]
        of_task.sort(key=lambda line: (line.pair.value is None, -(line.pair.value or 0.0)))
        metrics = _metrics(of_task) if any(line.pair.metrics for line in of_task) else None
        tables.append(TaskTables(task, _leaderboard(of_task), metrics))
    return tables


def shared_tables(reports: Sequence[RunReport]) -> list[ResultTable]:
    """Validity with faults, and costs, of all tasks together."""
    lines = _lines(reports)
    left_out = [f"{report.run}: {line}" for report in reports for line in report.left_out]
    tables = [_validity(lines, left_out), _costs(reports, lines)]
    tables += [_replica_costs(reports)] if any(report.replicas for report in reports) else []
    return [*tables, _helper_costs(lines)] if any(line.pair.helpers for line in lines) else tables


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


def _lines(reports: Sequence[RunReport]) -> list[_Line]:
    return [_Line(report.run, pair) for report in reports for pair in report.pairs]


def _leaderboard(lines: Sequence[_Line]) -> ResultTable:
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


def _means(lines: Sequence[_Line]) -> list[str]:
    """The mean scores, which `proctor status` shows, where the primary metric is another number."""
    others = [
        f"{line.pair.agent} {line.pair.mean_score:.3f}"
        for line in lines
        if line.pair.mean_score is not None
        and line.pair.value is not None
        and f"{line.pair.value:.3f}" != f"{line.pair.mean_score:.3f}"
    ]
    return [f"Mean scores, which are not {lines[0].pair.primary}: {', '.join(others)}"] if others else []


def _task(pair: PairReport) -> str:
    """The pair's task, with its protocol where that is not text."""
    return pair.task if pair.protocol == "text" else f"{pair.task} ({pair.protocol})"


def _score_cells(pair: PairReport, lines: Sequence[_Line]) -> tuple[Entry, ...]:
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


def _trial_costs(lines: Sequence[_Line]) -> tuple[list[tuple[Figure, ...]], tuple[TableColumn, ...], list[str]]:
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


def _metrics(lines: Sequence[_Line]) -> ResultTable:
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


def _validity(lines: Sequence[_Line], left_out: Sequence[str]) -> ResultTable:
    titles = (*(SHORT.get(reason, reason) for reason in VALIDITY), "bad replies", "cut", "faults")
    rows: list[tuple[Entry, ...]] = []
    for _, pair in lines:
        shares = (Figure(pair.validity.get(reason), ".0%") for reason in VALIDITY)
        unread, cut = Figure(pair.metrics.get(NOT_UNDERSTOOD), ".0f"), Figure(pair.cut_answers, ",.0f")
        rows.append((*shares, unread, cut, sum(pair.faults.values())))
    cuts = [
        f"cut: {pair.cut_answers:,} answers of {pair.agent} on {_task(pair)}, in {pair.turns:,} turns; its max_tokens "
        "may be too low"
        for _, pair in lines
        if pair.cut_answers
    ]
    faults = [
        f"unscored: {count} of {pair.agent} on {_task(pair)}: {cause}"
        for _, pair in lines
        for cause, count in sorted(pair.faults.items(), key=lambda item: -item[1])
    ]
    declined = [
        f"refused: {pair.declined} inputs of {pair.agent} on {_task(pair)}, which the plan leaves unscored"
        for _, pair in lines
        if pair.declined
    ]
    title = "validity: shares of the scored trials; replies whose form was not understood; answers cut by max_tokens; "
    title += "unscored trials"
    return _by_pair(title, lines, titles, rows, [*left_out, *cuts, *_thoughts(lines), *declined, *faults])


def _thoughts(lines: Sequence[_Line]) -> list[str]:
    """Where thoughts stood in scored replies whose profile does not drop them."""
    counts = [(pair, [pair.metrics.get(name, 0) for name in THOUGHTS]) for _, pair in lines]
    return [
        f"thoughts: {agents:,.0f} replies of {pair.agent} and {helpers:,.0f} of the task's own models on {_task(pair)} "
        "held thoughts; its profile reads replies as the published program would, while `strict` drops thoughts"
        for pair, (agents, helpers) in counts
        if agents or helpers
    ]


def _costs(reports: Sequence[RunReport], lines: Sequence[_Line]) -> ResultTable:
    """A row for each pair, and one more for what it has paid in trials without a final row."""
    named: list[_Line] = []
    rows: list[tuple[Entry, ...]] = []
    for line in lines:
        pair, open_cost = line.pair, line.pair.unfinished
        ended = pair.scored + sum(pair.faults.values())
        counts = (pair.prompt_tokens, pair.cached_tokens, pair.completion_tokens, pair.reasoning_tokens)
        tokens = [Figure(count if pair.told_usage else None, ",.0f") for count in counts]
        money = Figure(pair.money if pair.told_usage else None, MONEY)
        named.append(line)
        rows.append((pair.turns, *tokens, money, Figure(pair.seconds / ended if ended else None, ".2f")))
        if open_cost is not None:
            named.append(line._replace(pair=pair.model_copy(update={"task": f"{pair.task}, unfinished"})))
            paid = (open_cost.prompt_tokens, open_cost.cached_tokens, open_cost.completion_tokens)
            tokens = [Figure(count, ",.0f") for count in (*paid, open_cost.reasoning_tokens)]
            rows.append((None, *tokens, Figure(open_cost.money, MONEY), None))
    titles = ("turns", "tokens in", "cached", "tokens out", "reasoning", "money", "s per trial")
    beside = ", and of those under way or given back" if len(named) > len(lines) else ""
    title = f"costs of the finished trials{beside}"
    estimates = [note for report in reports for note in report.estimates]
    table = _by_pair(title, named, titles, rows, [*estimates, *_price_notes(reports, lines)])
    return _with_total(table, len(titles))


def _price_notes(reports: Sequence[RunReport], lines: Sequence[_Line]) -> list[str]:
    """Where the prices are from, and whose tokens have none."""
    lists = dict.fromkeys(report.price_list for report in reports if report.price_list)
    priced = any(line.pair.money is not None for line in lines)
    without = dict.fromkeys(
        line.pair.agent for line in lines if line.pair.money is None and line.pair.prompt_tokens and priced
    )
    return [*lists, *([f"money is without {', '.join(without)}: no price is known"] if without else [])]


def _with_total(table: ResultTable, figures: int) -> ResultTable:
    """The costs with a row of totals of what is known, where there is more than one row."""
    if len(table.rows) < 2:
        return table
    cells = [row.cells[-figures:] for row in table.rows]
    turns, *tokens, money = ([_number(of_row[place]) for of_row in cells] for place in range(figures - 1))
    totals = (_total(turns), *map(_total, tokens), _total(money, MONEY), None)
    names = ("total", *[""] * (len(table.columns) - figures - 1))
    return table._replace(rows=(*table.rows, TableRow((*names, *totals), rule=True)))


def _number(entry: Entry) -> float | None:
    return entry.value if isinstance(entry, Figure) else entry if isinstance(entry, int) else None


def _total(counts: Sequence[float | None], form: str = ",.0f") -> Figure:
    known = [count for count in counts if count is not None]
    return Figure(math.fsum(known) if known else None, form)


def _replica_costs(reports: Sequence[RunReport]) -> ResultTable:
    """What each server of an endpoint that has several answered; what a server does not tell is unknown."""
    costs = [(report.run, cost) for report in reports for cost in report.replicas]
    columns, cells = row_names(
        [(cost.agent, cost.replica, run) for run, cost in costs], ("agent", "replica", "run"), always=2
    )
    columns += tuple(map(TableColumn, ("calls", "tokens out", "tokens out a second", "cached share")))
    rows = tuple(
        TableRow(
            (
                *name,
                cost.calls,
                Figure(cost.completion_tokens or None, ",.0f"),
                Figure(cost.tokens_a_second, ".1f"),
                Figure(cost.cached_share, ".0%"),
            )
        )
        for name, (_, cost) in zip(cells, costs, strict=True)
    )
    return ResultTable("answers of each server, over all trials", columns, rows, _slowest([cost for _, cost in costs]))


def _slowest(costs: Sequence[ReplicaCost]) -> tuple[str, ...]:
    """The slowest server of each agent against the median."""
    lines = []
    for agent in dict.fromkeys(cost.agent for cost in costs):
        speeds = {cost.replica: cost.tokens_a_second for cost in costs if cost.agent == agent}
        known = {replica: speed for replica, speed in speeds.items() if speed is not None}
        if len(known) > 1:
            slowest, median = min(known, key=lambda replica: known[replica]), statistics.median(known.values())
            lines.append(
                f"{agent}: the slowest server, {slowest}, writes {known[slowest]:.1f} tokens a second and call, the "
                f"median {median:.1f}"
            )
    return tuple(lines)


def _helper_costs(lines: Sequence[_Line]) -> ResultTable:
    costs = [(line, cost) for line in lines for cost in line.pair.helpers]
    names = [(line.pair.agent, _task(line.pair), cost.model, line.run) for line, cost in costs]
    columns, cells = row_names(names, ("agent", "task", "model", "run"), always=3)
    columns += tuple(map(TableColumn, ("calls", "tokens in", "tokens out", "money")))
    rows = tuple(
        TableRow((*name, cost.calls, *_helper_cells(cost))) for name, (_, cost) in zip(cells, costs, strict=True)
    )
    return ResultTable(
        "costs of the tasks' own models (judges, hosts, users), over all trials", columns, rows, _sums(lines, costs)
    )


def _helper_cells(cost: HelperReport) -> tuple[Figure, ...]:
    """Tokens and money; unknown where the endpoint reports no usage."""
    told = bool(cost.prompt_tokens + cost.completion_tokens)
    tokens = (Figure(count if told else None, ",.0f") for count in (cost.prompt_tokens, cost.completion_tokens))
    return (*tokens, Figure(cost.money if told else None, MONEY))


def _sums(lines: Sequence[_Line], costs: Sequence[tuple[_Line, HelperReport]]) -> tuple[str, ...]:
    """What the tasks' own models cost, and what that makes with the agents."""
    of_models = [cost.money for _, cost in costs if cost.money is not None]
    of_agents = [
        each.money for line in lines for each in (line.pair, line.pair.unfinished) if each is not None and each.money
    ]
    if not of_models:
        return ()
    together = f"; with the agents {money_text(math.fsum(of_models + of_agents))}" if of_agents else ""
    return (f"in all {money_text(math.fsum(of_models))}{together}",)


def _by_pair(
    title: str,
    lines: Sequence[_Line],
    titles: Sequence[str],
    rows: Sequence[tuple[Entry, ...]],
    notes: Sequence[str] = (),
) -> ResultTable:
    """A table with a row for each pair, named by agent and task, and by run where there are several."""
    names = [(line.pair.agent, _task(line.pair), line.run) for line in lines]
    columns, cells = row_names(names, ("agent", "task", "run"), always=2)
    columns += tuple(map(TableColumn, titles))
    table_rows = tuple(TableRow((*name, *row)) for name, row in zip(cells, rows, strict=True))
    return ResultTable(title, columns, table_rows, tuple(notes))
