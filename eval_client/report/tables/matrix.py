"""Pure: a run in one table, tasks by agents."""

from eval_client.report.report import ERROR_PARTS, PairReport, RunReport
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow, title_with_behind


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
