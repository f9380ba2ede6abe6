"""Pure: AgentBench's tables of scores and of validity, for runs (arXiv 2308.03688, tables 3 and 4)."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eval_client.core.statistics.missing import group_mean_bounds
from eval_client.report.pair_report import ERROR_PARTS, PairReport
from eval_client.report.run_tables import repeat_cells, repeat_columns, repeat_titles
from proctor.tables.table import DAGGER, Figure, Part, ResultTable, TableColumn, TableRow, row_names, title_with_behind
from proctor.types import FinishReason


class BenchTask(NamedTuple):
    """One of the paper's eight tasks."""

    title: str
    environment: str
    metric: str
    group: str
    weight: float
    """The average score of the paper's models in percent: Weight^-1 of table 2."""
    samples: int
    """The size of the published test split."""
    best: float = 1.0
    """The metric's highest value."""
    mean_over: tuple[str, ...] = ()
    """The groups whose means the metric averages; empty where it is the plain mean of the scores."""


TASKS = (
    BenchTask("OS", "os", "acc", "Code-grounded", 10.8, 144),
    BenchTask("DB", "db", "overall_cat_accuracy", "Code-grounded", 13.0, 300, mean_over=("SELECT", "INSERT", "UPDATE")),
    BenchTask("KG", "kg", "F1", "Code-grounded", 13.9, 150),
    BenchTask("DCG", "card_game", "score", "Game-grounded", 12.0, 20),
    BenchTask("LTP", "ltp", "game_progress", "Game-grounded", 3.5, 50),
    BenchTask("HH", "alfworld", "success_rate", "Game-grounded", 13.0, 50),
    BenchTask("WS", "webshop", "reward", "Web-grounded", 30.7, 200),
    BenchTask("WB", "mind2web", "step_sr", "Web-grounded", 11.6, 100, best=100.0),
)
"""In the paper's order; weights of its table 2, metrics of its section 4.1."""
ENVIRONMENTS = tuple(task.environment for task in TASKS)
REASONS = {
    FinishReason.COMPLETED: "Completed",
    FinishReason.CONTEXT_LIMIT: "CLE",
    FinishReason.INVALID_FORMAT: "Invalid Format",
    FinishReason.INVALID_ACTION: "Invalid Action",
    FinishReason.TURN_LIMIT: "TLE",
}
"""The rows of the paper's table 4."""
COUNTS = {"Faults": "unscored", "Cut answers": "cut_answers"}
TEXT_PROTOCOL = "text"
OVERALL = (
    "OA: AgentBench's overall score, the mean over its eight tasks of the score in percent divided by the average "
    "score of the paper's models; ±: standard error."
)
BOUNDED = "OA's range is what the missing trials could make of it: all of them scored 0, and all 1."
NOT_COMPARABLE = f"{DAGGER}: not comparable with the paper's table; a note names each task and the reason."
ALL_AGENTS = ("all agents", "")
VALIDITY = (
    "Shares of the scored trials in percent; `all agents` is the mean of the agents' shares. Faults are numbers of "
    "trials without a score: they enter no share. Refused inputs, a share too, and cut answers, numbers of answers "
    "that the endpoint cut at max_tokens, are not in the paper."
)


class PlayedTask(NamedTuple):
    """What an agent reached on one of the eight tasks in a run."""

    run: str
    pair: PairReport
    samples: int
    """Samples of the task in the run."""
    model_version: str | None
    """What the run's plan tells of the agent's model, beyond its name."""
    protocol: str = TEXT_PROTOCOL

    @property
    def missing(self) -> int:
        """Planned trials without a score."""
        return self.pair.planned - self.pair.scored


Rows = Mapping[tuple[str, str], Mapping[str, PlayedTask]]
"""(agent, runs) -> environment -> what it reached; `runs` is empty where no agent has a task in several runs."""


def overall(percents: Sequence[float]) -> float:
    """The overall score of the eight tasks' scores in percent, in the order of TASKS."""
    return math.fsum(percent / task.weight for percent, task in zip(percents, TASKS, strict=True)) / len(TASKS)


def overall_error(errors: Sequence[float]) -> float:
    """The standard error of the overall score, of those of the tasks' scores in percent: the tasks are independent."""
    return math.hypot(*(error / task.weight for error, task in zip(errors, TASKS, strict=True))) / len(TASKS)


def agent_rows(played: Sequence[PlayedTask]) -> Rows:
    """A row for each agent over all runs; where an agent played a task in several runs, one for each of its runs."""
    by_agent: dict[str, list[PlayedTask]] = {}
    for each in played:
        by_agent.setdefault(each.pair.agent, []).append(each)
    several = any(len({each.pair.environment for each in mine}) < len(mine) for mine in by_agent.values())
    rows: dict[tuple[str, str], dict[str, PlayedTask]] = {}
    for each in played:
        row = rows.setdefault((each.pair.agent, each.run if several else ""), {})
        row[each.pair.environment] = each
    return rows


def scores_table(rows: Rows) -> ResultTable:
    """The paper's table 3: the overall score, and the eight tasks' scores in percent; the best agent first."""
    name_columns, names = row_names(list(rows), ("Model", "Run"))
    made = [_scores_row(name, row) for name, row in zip(names, rows.values(), strict=True)]
    made.sort(key=lambda item: -math.inf if item[0].value is None else item[0].value, reverse=True)
    parts: tuple[Part, ...] = (*ERROR_PARTS, "coverage", "mark")
    columns = (
        *(*name_columns, TableColumn("VER", left=True)),
        TableColumn("OA", parts=("standard_error", "low", "high", "mark")),
        *(TableColumn(task.title, group=task.group, parts=parts) for task in TASKS),
    )
    marked = any(entry.mark for _, row in made for entry in row.cells if isinstance(entry, Figure))
    bounded = any(found.low is not None for found, _ in made)
    notes = (*([NOT_COMPARABLE] if marked else []), OVERALL, *([BOUNDED] if bounded else []))
    title = _title("AgentBench: scores in percent (table 3)", _all(rows))
    return ResultTable(title, columns, tuple(row for _, row in made), notes)


def _scores_row(name: Sequence[str], row: Mapping[str, PlayedTask]) -> tuple[Figure, TableRow]:
    """The overall score, and an agent's row of the table of scores."""
    scores = tuple(_score(task, row.get(task.environment)) for task in TASKS)
    versions = dict.fromkeys(each.model_version for each in row.values() if each.model_version)
    notes = tuple(note for task in TASKS for note in _notes(task, row.get(task.environment)))
    found = _overall_figure(scores, row)
    return found, TableRow((*name, ", ".join(versions) or None, found, *scores), notes=notes)


def agentbench_tables(rows: Rows, *, validity: bool = True) -> list[ResultTable]:
    """The paper's tables, and between them that of repeated trials where there are any."""
    repeats = _repeats_table(rows)
    return [scores_table(rows), *([repeats] if repeats.rows else []), *([validity_table(rows)] if validity else [])]


def _repeats_table(rows: Rows) -> ResultTable:
    """pass@k and pass^k of tasks whose samples were played several times."""
    repeated = [each for each in _all(rows) if each.pair.repeats]
    titles = repeat_titles([each.pair for each in repeated])
    names = [(each.pair.agent, each.pair.task, each.run) for each in repeated]
    name_columns, cells = row_names(names, ("Model", "Task", "Run"), always=2)
    found = zip(cells, repeated, strict=True)
    shown = tuple(TableRow((*name, *repeat_cells(each.pair, titles))) for name, each in found)
    title = _title("AgentBench: repeated trials, pass@k and pass^k", repeated)
    return ResultTable(title, (*name_columns, *repeat_columns(titles)), shown)


def validity_table(rows: Rows) -> ResultTable:
    """The paper's table 4: how the trials ended, over all agents and then for each."""
    blocks = [(ALL_AGENTS, list(rows.values())), *((name, [row]) for name, row in rows.items())]
    name_columns, names = row_names([name for name, _ in blocks], ("Model", "Run"))
    lines: list[TableRow] = []
    for key, (_, of_block) in zip(names, blocks, strict=True):
        lines += [
            TableRow((*key, title, *(_share(of_block, task, reason) for task in TASKS)), rule=bool(lines) and not place)
            for place, (reason, title) in enumerate(REASONS.items())
        ]
        refused = (_share(of_block, task, FinishReason.REFUSED) for task in TASKS)
        lines.append(TableRow((*key, "Refused", *refused), rule=True))
        for title, field in COUNTS.items():
            lines.append(TableRow((*key, title, *(_count(of_block, task, field) for task in TASKS))))
    task_columns = tuple(TableColumn(task.title, group=task.group) for task in TASKS)
    columns = (*name_columns, TableColumn("Reason", left=True), *task_columns)
    title = _title("AgentBench: validity in percent (table 4)", _all(rows))
    return ResultTable(title, columns, tuple(lines), (VALIDITY,))


def _all(rows: Rows) -> list[PlayedTask]:
    return [each for row in rows.values() for each in row.values()]


def _title(title: str, played: Sequence[PlayedTask]) -> str:
    return title_with_behind(title, ((each.pair.scored, each.pair.planned) for each in played))


def _score(task: BenchTask, played: PlayedTask | None) -> Figure:
    if played is None:
        return Figure(None, ".1f")
    pair, shown, percent = played.pair, played.pair.figure, 100 / task.best
    known = pair.value is not None and pair.primary == task.metric  # a run may have another metric yet
    value = 100 * (pair.value or 0.0) / task.best if known else None
    error, interval = (shown.standard_error, shown.interval) if known else (None, None)
    return Figure(
        value,
        ".1f",
        standard_error=error and percent * error,
        interval=interval and (percent * interval[0], percent * interval[1]),
        coverage=pair.coverage,
        mark=DAGGER if _reasons(task, played) else "",
    )


def _overall_figure(figures: Sequence[Figure], row: Mapping[str, PlayedTask]) -> Figure:
    values = [figure.value for figure in figures if figure.value is not None]
    if len(values) < len(TASKS):
        return Figure(None, ".2f", instead=f"{len(values)} of {len(TASKS)} tasks")
    found = [(task, row[task.environment].pair.standard_error) for task in TASKS]
    errors = [100 * error / task.best for task, error in found if error is not None]
    bounds = [_bounds(task, row[task.environment]) for task in TASKS]
    missing = any(each.missing for each in row.values())
    return Figure(
        overall(values),
        ".2f",
        standard_error=overall_error(errors) if len(errors) == len(TASKS) else None,
        low=overall([low for low, _ in bounds]) if missing else None,
        high=overall([high for _, high in bounds]) if missing else None,
        mark=DAGGER if any(figure.mark for figure in figures) else "",
    )


def _bounds(task: BenchTask, played: PlayedTask) -> tuple[float, float]:
    """The bounds of the task's metric in percent, over its missing trials."""
    pair, mean = played.pair, (played.pair.value or 0.0) / task.best
    if task.mean_over:
        groups = [
            (int(pair.metrics.get(f"{group}_scored", 0)), pair.metrics.get(f"{group}_accuracy", 0.0))
            for group in task.mean_over
        ]
        low, high = group_mean_bounds(groups, played.missing)
    else:
        total = pair.scored + played.missing
        low, high = pair.scored * mean / total, (pair.scored * mean + played.missing) / total
    return 100 * low, 100 * high


def _reasons(task: BenchTask, played: PlayedTask) -> list[str]:
    """Why the score must not be set beside the paper's."""
    reasons = []
    if played.pair.comparable is not None:
        reasons.append(played.pair.comparable)
    if played.samples != task.samples:
        reasons.append(f"it has {played.samples} samples, the paper's test split {task.samples}")
    if played.protocol != TEXT_PROTOCOL:
        reasons.append(f"the protocol is {played.protocol}; the paper's scores and weights are of its text protocol")
    return reasons


def _notes(task: BenchTask, played: PlayedTask | None) -> list[str]:
    if played is None:
        return []
    pair = played.pair
    reasons = "; ".join(_reasons(task, played))
    notes = [f"{DAGGER} {task.title} ({pair.task}): {reasons}."] if reasons else []
    if pair.scored and pair.primary != task.metric:
        notes.append(f"{task.title}: {task.metric} of {pair.agent} is not computed yet; resume the run {played.run}.")
    if played.missing:
        notes.append(f"{task.title}: {played.missing:,} of {pair.planned:,} trials of {pair.agent} have no score.")
    return notes


def _share(rows: Sequence[Mapping[str, PlayedTask]], task: BenchTask, reason: FinishReason) -> Figure:
    """The mean over agents of a reason's share of their scored trials, in percent."""
    pairs = [row[task.environment].pair for row in rows if task.environment in row]
    shares = [pair.validity[reason] for pair in pairs if pair.scored]
    return Figure(100 * math.fsum(shares) / len(shares) if shares else None, ".1f")


def _count(rows: Sequence[Mapping[str, PlayedTask]], task: BenchTask, field: str) -> int | None:
    """The sum of a count over agents; None where one is not known."""
    counts = [getattr(row[task.environment].pair, field) for row in rows if task.environment in row]
    return None if not counts or None in counts else sum(counts)
