"""The sections of a run's report."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eval_client.plan.plan import Plan
from eval_client.report.html import figures
from eval_client.report.html.blocks import Block, HeadingBlock, PlotBlock, Section, TableBlock, TextBlock
from eval_client.report.html.compared import Compared, comparison_table
from eval_client.report.html.facts import sample_scores, score_bounds
from eval_client.report.html.figures import Facts
from eval_client.report.html.methods import METHODS
from eval_client.report.html.papers import papers_sections
from eval_client.report.html.scrub import model_name, publishable
from eval_client.report.html.what import agents_table, tasks_table
from eval_client.report.report import PairReport, RunReport
from eval_client.report.tables.run_report import shared_tables, task_tables
from eval_client.store.records import Manifest
from eval_client.store.store import Store
from proctor.tables.table import Figure, ResultTable, TableColumn, TableRow

MOST_PAIRS = 60
"""Of larger runs only the score matrix, its table and AgentBench's scores are shown."""
LEFT_OUT = (
    "This run has {count:,} pairs of agent and task. How trials ended, costs, other metrics and the plots of single "
    "tasks are left out here; `proctor report --format csv` has the figures."
)
IN_NOTES = "a note below has the reason"
LETTERS = "Agents of a task with a common letter under 'alike' can't be told apart at the level 0.05 after Holm."
MOST_PLOTTED = 40
"""Of larger runs the plots of single tasks are left out."""
TASKS_LEFT_OUT = "With {count} pairs of agent and task, the plots of single tasks are left out."


class RunContents(NamedTuple):
    """What the sections are made of."""

    store: Store
    manifest: Manifest
    plan: Plan
    made: RunReport
    facts: Facts
    compared: Compared

    @property
    def large(self) -> bool:
        """Whether the run has too many pairs for everything to be shown."""
        return len(self.made.pairs) > MOST_PAIRS


def publishable_report(made: RunReport, facts: Facts) -> RunReport:
    """The report without what may quote addresses, paths or samples: a fault is named by its kind alone."""
    pairs = []
    for pair in made.pairs:
        unscored = (trial.reason for trial in facts[pair.agent, pair.task] if trial.score is None)
        kinds = Counter(reason.replace("_", " ") for reason in unscored if reason is not None)
        changed = {
            "faults": dict(kinds),
            "notes": tuple(map(publishable, pair.notes)),
            "comparable": None if pair.comparable is None else publishable(pair.comparable),
            "helpers": tuple(each.model_copy(update={"model": model_name(each.model)}) for each in pair.helpers),
        }
        pairs.append(pair.model_copy(update=changed))
    return made.model_copy(update={"pairs": tuple(pairs)})


def sections(contents: RunContents, *, samples: bool) -> list[Section]:
    """All sections but those of trials."""
    validity, *costs = shared_tables([contents.made])
    found = [
        Section("scores", "Scores", _scores(contents)),
        Section("comparisons", "Comparisons", _comparisons(contents.compared)),
        *([] if contents.large else [Section("reasons", "How trials ended", _reasons(contents, validity))]),
        *papers_sections(contents.store, contents.made, large=contents.large),
        *([] if contents.large else [Section("tasks", "Task by task", _tasks(contents))]),
        *([] if contents.large else [Section("costs", "Costs", _costs(costs))]),
        Section("run", "What was run", _run(contents)),
        Section("methods", "How these numbers were made", (TextBlock(METHODS),)),
    ]
    return [*found, Section("samples", "Scores by sample", _samples(contents))] if samples else found


def _scores(contents: RunContents) -> tuple[Block, ...]:
    pairs = contents.made.pairs
    if contents.large:
        return _large_scores(contents)
    blocks: list[Block] = [PlotBlock(figures.matrix(pairs))]
    letters = contents.compared.found.letters if contents.compared.found is not None else {}
    blocks += [TextBlock((LETTERS,))] if letters else []
    for task, board, metrics in task_tables([contents.made]):
        of_task = [pair for pair in pairs if pair.task == task]
        shown = _board(board, of_task, contents.facts, letters.get(task, {}))
        blocks.append(TableBlock(shown, metrics and metrics._replace(title="Other metrics")))
    return tuple(blocks)


def _large_scores(contents: RunContents) -> tuple[Block, ...]:
    """The matrix, with the reasons once for each task."""
    pairs = [
        pair.model_copy(update={"comparable": pair.comparable and IN_NOTES, "notes": ()})
        for pair in contents.made.pairs
    ]
    reasons = dict.fromkeys(
        f"{pair.task}: not comparable with published scores: {pair.comparable}"
        for pair in contents.made.pairs
        if pair.comparable is not None
    )
    left_out = LEFT_OUT.format(count=len(pairs))
    return TextBlock((left_out,)), PlotBlock(figures.matrix(pairs)), TextBlock(tuple(reasons))


def _board(board: ResultTable, pairs: Sequence[PairReport], facts: Facts, letters: Mapping[str, str]) -> ResultTable:
    """A leaderboard with bounds, where trials are missing, and with letters."""
    columns, rows, notes = list(board.columns), [list(row.cells) for row in board.rows], []
    bounds = [score_bounds(facts[pair.agent, pair.task]) for pair in pairs]
    if any(bounds):
        columns.append(TableColumn("mean score could be"))
        notes.append("Mean score could be: with all missing scores 0, and with all 1.")
        for row, ends in zip(rows, bounds, strict=True):
            row.append("-" if ends is None else f"{ends[0]:.3f}..{ends[1]:.3f}")
    if letters:
        columns.append(TableColumn("alike", left=True))
        for row, pair in zip(rows, pairs, strict=True):
            row.append(letters.get(pair.agent, ""))
    table_rows = tuple(TableRow(tuple(row)) for row in rows)
    return board._replace(columns=tuple(columns), rows=table_rows, notes=(*board.notes, *notes))


def _comparisons(compared: Compared) -> tuple[Block, ...]:
    if compared.found is None:
        return (TextBlock(compared.left_out),)
    plots = [figures.differences(each) for each in compared.found.comparisons]
    blocks: list[Block] = [TextBlock((*plots[0].table.notes, *compared.left_out))]
    for each, plot in zip(compared.found.comparisons, plots, strict=True):
        blocks += [TableBlock(comparison_table(each)), PlotBlock(plot, noted=False)]
    return tuple(blocks)


def _reasons(contents: RunContents, validity: ResultTable) -> tuple[Block, ...]:
    table = validity._replace(title="Validity and faults", notes=(validity.title.capitalize(), *validity.notes))
    return PlotBlock(figures.reasons(contents.made.pairs)), TableBlock(table)


def _tasks(contents: RunContents) -> tuple[Block, ...]:
    if len(contents.made.pairs) > MOST_PLOTTED:
        return (TextBlock((TASKS_LEFT_OUT.format(count=len(contents.made.pairs)),)),)
    found = figures.task_plots(
        contents.made.pairs, contents.facts, contents.plan.all_prices(), contents.manifest.resumed_at
    )
    notes = dict.fromkeys(note for _, plots in found for plot in plots for note in plot.table.all_notes())
    blocks: list[Block] = [TextBlock(tuple(notes))]
    for task, plots in found:
        blocks += [HeadingBlock(task), *(PlotBlock(plot, noted=False) for plot in plots)]
    return tuple(blocks)


def _costs(costs: Sequence[ResultTable]) -> tuple[Block, ...]:
    return tuple(TableBlock(table._replace(title=table.title.capitalize())) for table in costs)


def _run(contents: RunContents) -> tuple[Block, ...]:
    return TableBlock(agents_table(contents.plan)), TableBlock(tasks_table(contents.manifest))


def _samples(contents: RunContents) -> tuple[Block, ...]:
    """For each task a row for each sample, and a column for each agent."""
    blocks = []
    for task in dict.fromkeys(pair.task for pair in contents.made.pairs):
        agents = [pair.agent for pair in contents.made.pairs if pair.task == task]
        held = [sample_scores(contents.facts[agent, task]) for agent in agents]
        names = dict.fromkeys(name for scores in held for name in scores)
        rows = []
        for name in names:
            means = (scores[name].mean if name in scores and scores[name].scores else None for scores in held)
            rows.append(TableRow((name, *map(Figure, means))))
        columns = (TableColumn("sample", left=True), *map(TableColumn, agents))
        blocks.append(TableBlock(ResultTable(task, columns, tuple(rows))))
    return tuple(blocks)
