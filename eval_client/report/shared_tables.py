"""Pure: the tables over all tasks of runs: how trials ended, and what they cost."""

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eval_client.report.pair_report import VALIDITY, HelperReport, PairReport, RunReport, UnfinishedCost
from eval_client.store.records import ReplicaCost
from proctor.tables.table import (
    MONEY,
    Entry,
    Figure,
    ResultTable,
    TableColumn,
    TableRow,
    counted,
    money_text,
    row_names,
)
from proctor.types import NOT_UNDERSTOOD, THOUGHTS

SHORT = {
    "turn_limit": "turn limit",
    "invalid_format": "bad format",
    "invalid_action": "bad action",
    "context_limit": "context",
}
VALIDITY_TITLE = (
    "validity: shares of the scored trials; replies whose form was not understood; answers cut by max_tokens; "
    "unscored trials"
)


class Line(NamedTuple):
    """A pair, and the run that it is of."""

    run: str
    pair: PairReport


Named = tuple[tuple[str, ...], tuple[Entry, ...]]
"""What names a row, its run last, and the row's figures."""


def shared_tables(reports: Sequence[RunReport]) -> list[ResultTable]:
    """Validity with faults, and costs, of all tasks together."""
    lines = lines_of(reports)
    left_out = [f"{report.run}: {line}" for report in reports for line in (*report.notes, *report.left_out)]
    tables = [_validity(lines, left_out), _costs(reports, lines)]
    tables += [_replica_costs(reports)] if any(report.replicas for report in reports) else []
    tables += [_agreement(lines)] if any(line.pair.agreement for line in lines) else []
    return [*tables, _helper_costs(lines)] if any(line.pair.helpers for line in lines) else tables


def lines_of(reports: Sequence[RunReport]) -> list[Line]:
    """All pairs of runs."""
    return [Line(report.run, pair) for report in reports for pair in report.pairs]


def _named_table(
    title: str, names: Sequence[str], rows: Sequence[Named], titles: Iterable[str], notes: Iterable[str] = ()
) -> ResultTable:
    """A table of named rows; their run is shown where there are several."""
    columns, cells = row_names([name for name, _ in rows], (*names, "run"), always=len(names))
    table_rows = tuple(TableRow((*name, *figures)) for name, (_, figures) in zip(cells, rows, strict=True))
    return ResultTable(title, (*columns, *map(TableColumn, titles)), table_rows, tuple(notes))


def _task(pair: PairReport) -> str:
    """The pair's task, with its protocol where that is not text."""
    return pair.task if pair.protocol == "text" else f"{pair.task} ({pair.protocol})"


def _validity(lines: Sequence[Line], left_out: Sequence[str]) -> ResultTable:
    titles = (*(SHORT.get(reason, reason) for reason in VALIDITY), "bad replies", "cut", "faults")
    rows: list[Named] = []
    cuts, thoughts, declined, faults = list[str](), list[str](), list[str](), list[str]()
    for run, pair in lines:
        task = _task(pair)
        shares = (Figure(pair.validity.get(reason), ".0%") for reason in VALIDITY)
        unread, cut = Figure(pair.metrics.get(NOT_UNDERSTOOD), ".0f"), Figure(pair.cut_answers, ",.0f")
        rows.append(((pair.agent, task, run), (*shares, unread, cut, pair.unscored)))
        if pair.cut_answers:
            answers = (
                f"{counted(pair.cut_answers, 'answer')} of {pair.agent} on {task}, in {counted(pair.turns, 'turn')}"
            )
            cuts.append(f"cut: {answers}; its max_tokens may be too low")
        thoughts += _thoughts(pair)
        if pair.declined:
            declined.append(
                f"refused: {counted(pair.declined, 'input')} of {pair.agent} on {task}, which the plan leaves unscored"
            )
        causes = sorted(pair.faults.items(), key=lambda item: -item[1])
        faults += [f"unscored: {count} of {pair.agent} on {task}: {cause}" for cause, count in causes]
    notes = (*left_out, *cuts, *thoughts, *declined, *faults)
    return _named_table(VALIDITY_TITLE, ("agent", "task"), rows, titles, notes)


def _thoughts(pair: PairReport) -> list[str]:
    """Where thoughts stood in scored replies whose profile does not drop them."""
    agents, helpers = (pair.metrics.get(name, 0) for name in THOUGHTS)
    if not agents and not helpers:
        return []
    return [
        f"thoughts: {agents:,.0f} replies of {pair.agent} and {helpers:,.0f} of the task's own models on {_task(pair)} "
        "held thoughts; its profile reads replies as the published program would, while `strict` drops thoughts"
    ]


def _costs(reports: Sequence[RunReport], lines: Sequence[Line]) -> ResultTable:
    """A row for each pair, and one more for what it has paid in trials without a final row; below them the totals."""
    rows: list[Named] = []
    for run, pair in lines:
        per_trial = Figure(pair.seconds / pair.ended if pair.ended else None, ".2f")
        rows.append(((pair.agent, _task(pair), run), (pair.turns, *_paid(pair, told=pair.told_usage), per_trial)))
        if pair.unfinished is not None:
            name = _task(pair.model_copy(update={"task": f"{pair.task}, unfinished"}))
            rows.append(((pair.agent, name, run), (None, *_paid(pair.unfinished), None)))
    titles = ("turns", "tokens in", "cached", "tokens out", "reasoning", "money", "s per trial")
    beside = ", and of those under way or given back" if len(rows) > len(lines) else ""
    notes = [*(note for report in reports for note in report.estimates), *_price_notes(reports, lines)]
    table = _named_table(f"costs of the finished trials{beside}", ("agent", "task"), rows, titles, notes)
    return table if len(rows) < 2 else table._replace(rows=(*table.rows, _totals(rows, len(table.columns))))


def _paid(cost: PairReport | UnfinishedCost, *, told: bool = True) -> tuple[Figure, ...]:
    """Tokens and money, unknown where no endpoint told them."""
    counts = (cost.prompt_tokens, cost.cached_tokens, cost.completion_tokens, cost.reasoning_tokens)
    tokens = (Figure(count if told else None, ",.0f") for count in counts)
    return (*tokens, Figure(cost.money if told else None, MONEY))


def _price_notes(reports: Sequence[RunReport], lines: Sequence[Line]) -> list[str]:
    """Where the prices are from, and whose tokens have none."""
    lists = dict.fromkeys(report.price_list for report in reports if report.price_list)
    priced = any(line.pair.money is not None for line in lines)
    without = dict.fromkeys(
        line.pair.agent for line in lines if line.pair.money is None and line.pair.prompt_tokens and priced
    )
    return [*lists, *([f"money is without {', '.join(without)}: no price is known"] if without else [])]


def _totals(rows: Sequence[Named], columns: int) -> TableRow:
    """The totals of what is known; seconds per trial have none."""
    turns, *paid, _ = zip(*(figures for _, figures in rows), strict=True)
    totals = [Figure(_sum(turns), ",.0f"), *(Figure(_sum(each), each[0].form) for each in paid)]
    return TableRow(("total", *[""] * (columns - len(totals) - 2), *totals, None), rule=True)


def _sum(cells: Sequence[Entry]) -> float | None:
    numbers = [entry.value if isinstance(entry, Figure) else entry for entry in cells if not isinstance(entry, str)]
    known = [number for number in numbers if number is not None]
    return math.fsum(known) if known else None


def _replica_costs(reports: Sequence[RunReport]) -> ResultTable:
    """What each server of an endpoint that has several answered; what a server does not tell is unknown."""
    costs = [(report.run, cost) for report in reports for cost in report.replicas]
    rows: list[Named] = []
    for run, cost in costs:
        speed, cached = Figure(cost.tokens_a_second, ".1f"), Figure(cost.cached_share, ".0%")
        figures = (cost.calls, Figure(cost.completion_tokens or None, ",.0f"), speed, cached)
        rows.append(((cost.agent, cost.replica, run), figures))
    titles = ("calls", "tokens out", "tokens out a second", "cached share")
    slowest = _slowest([cost for _, cost in costs])
    return _named_table("answers of each server, over all trials", ("agent", "replica"), rows, titles, slowest)


def _slowest(costs: Sequence[ReplicaCost]) -> list[str]:
    """The slowest server of each agent against the median."""
    lines = []
    for agent in dict.fromkeys(cost.agent for cost in costs):
        speeds = {cost.replica: cost.tokens_a_second for cost in costs if cost.agent == agent}
        known = {replica: speed for replica, speed in speeds.items() if speed is not None}
        if len(known) > 1:
            slowest, median = min(known, key=lambda replica: known[replica]), statistics.median(known.values())
            speed = f"writes {known[slowest]:.1f} tokens a second and call, the median {median:.1f}"
            lines.append(f"{agent}: the slowest server, {slowest}, {speed}")
    return lines


def _agreement(lines: Sequence[Line]) -> ResultTable:
    """How far several judges of one task agree."""
    rows: list[Named] = [
        ((pair.agent, _task(pair), run), (each.judged, each.unread, *each.texts))
        for run, pair in lines
        for each in pair.agreement
    ]
    titles = ("judged", "unread", "exact match", "alpha", "apart", "means of the judges")
    note = (
        "alpha is Krippendorff's, who draws no conclusions below 0.667: 1 is perfect agreement, 0 that of chance; of "
        "ratings by the interval metric, of yes and no by the nominal one; none where all values are the same"
    )
    title = "agreement of the tasks' judges, over the scored trials"
    return _named_table(title, ("agent", "task"), rows, titles, [note])


def _helper_costs(lines: Sequence[Line]) -> ResultTable:
    costs = [(line, cost) for line in lines for cost in line.pair.helpers]
    rows: list[Named] = []
    for line, cost in costs:
        told = bool(cost.prompt_tokens + cost.completion_tokens)  # else the endpoint reports no usage
        tokens = (Figure(count if told else None, ",.0f") for count in (cost.prompt_tokens, cost.completion_tokens))
        name = (line.pair.agent, _task(line.pair), cost.model, line.run)
        rows.append((name, (cost.calls, *tokens, Figure(cost.money if told else None, MONEY))))
    title = "costs of the tasks' own models (judges, hosts, users), over all trials"
    titles = ("calls", "tokens in", "tokens out", "money")
    sums = _sums(lines, [cost for _, cost in costs])
    return _named_table(title, ("agent", "task", "model"), rows, titles, sums)


def _sums(lines: Sequence[Line], costs: Sequence[HelperReport]) -> list[str]:
    """What the tasks' own models cost, and what that makes with the agents."""
    of_models = [cost.money for cost in costs if cost.money is not None]
    of_agents = [
        each.money for line in lines for each in (line.pair, line.pair.unfinished) if each is not None and each.money
    ]
    if not of_models:
        return []
    together = f"; with the agents {money_text(math.fsum(of_models + of_agents))}" if of_agents else ""
    return [f"in all {money_text(math.fsum(of_models))}{together}"]
