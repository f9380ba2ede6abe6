"""Pure: the tables over all tasks of runs: how trials ended, and what they cost."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

from eval_client.report.report import VALIDITY, HelperReport, PairReport, RunReport
from eval_client.store.records import ReplicaCost
from proctor.summary import NOT_UNDERSTOOD, THOUGHTS
from proctor.tables.table import (
    MONEY,
    Entry,
    Figure,
    ResultTable,
    TableColumn,
    TableRow,
    money_text,
    row_names,
)

SHORT = {
    "turn_limit": "turn limit",
    "invalid_format": "bad format",
    "invalid_action": "bad action",
    "context_limit": "context",
}


class Line(NamedTuple):
    """A pair, and the run that it is of."""

    run: str
    pair: PairReport


def shared_tables(reports: Sequence[RunReport]) -> list[ResultTable]:
    """Validity with faults, and costs, of all tasks together."""
    lines = lines_of(reports)
    left_out = [f"{report.run}: {line}" for report in reports for line in report.left_out]
    tables = [_validity(lines, left_out), _costs(reports, lines)]
    tables += [_replica_costs(reports)] if any(report.replicas for report in reports) else []
    return [*tables, _helper_costs(lines)] if any(line.pair.helpers for line in lines) else tables


def lines_of(reports: Sequence[RunReport]) -> list[Line]:
    """All pairs of runs."""
    return [Line(report.run, pair) for report in reports for pair in report.pairs]


def _task(pair: PairReport) -> str:
    """The pair's task, with its protocol where that is not text."""
    return pair.task if pair.protocol == "text" else f"{pair.task} ({pair.protocol})"


def _validity(lines: Sequence[Line], left_out: Sequence[str]) -> ResultTable:
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


def _thoughts(lines: Sequence[Line]) -> list[str]:
    """Where thoughts stood in scored replies whose profile does not drop them."""
    counts = [(pair, [pair.metrics.get(name, 0) for name in THOUGHTS]) for _, pair in lines]
    return [
        f"thoughts: {agents:,.0f} replies of {pair.agent} and {helpers:,.0f} of the task's own models on {_task(pair)} "
        "held thoughts; its profile reads replies as the published program would, while `strict` drops thoughts"
        for pair, (agents, helpers) in counts
        if agents or helpers
    ]


def _costs(reports: Sequence[RunReport], lines: Sequence[Line]) -> ResultTable:
    """A row for each pair, and one more for what it has paid in trials without a final row."""
    named: list[Line] = []
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


def _price_notes(reports: Sequence[RunReport], lines: Sequence[Line]) -> list[str]:
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


def _helper_costs(lines: Sequence[Line]) -> ResultTable:
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


def _sums(lines: Sequence[Line], costs: Sequence[tuple[Line, HelperReport]]) -> tuple[str, ...]:
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
    lines: Sequence[Line],
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
