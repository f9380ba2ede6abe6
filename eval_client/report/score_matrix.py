"""Pure: a run as agents by tasks, and what missing trials could make of its scores."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_client.core import Pair
from eval_client.core.statistics.missing import mean_bounds
from eval_client.core.statistics.samples import Interval, Scores
from eval_client.report.compare.compare import Letters
from eval_client.report.pair_report import PairReport, RunReport
from eval_client.store.trials.rows import TrialRow
from eval_client.store.trials.scores import TrialFacts
from proctor.tables.table import Entry, Figure, ResultTable, TableColumn, TableRow, coverage_text

SHADES = 10
"""Steps of the shade behind a score."""
BOUNDS_NOTE = "Mean score could be: with all missing scores 0, and with all 1."
EPOCHS_NOTE = ("Scores are means over the epochs; answers are those of the first.",)
Facts = Mapping[Pair, Sequence[TrialFacts]]


def matrix(pairs: Sequence[PairReport], letters: Letters) -> dict[str, Any]:
    """Agents by tasks, in the order of the plan and of their first tasks, with the run's trials over all pairs.

    `tasks` has a pair of each task, `rows` the cells of each agent: None where it does not play a task.
    """
    cells = {(pair.agent, pair.task): _cell(pair, letters) for pair in pairs}
    tasks = {pair.task: pair for pair in pairs}
    agents = dict.fromkeys(pair.agent for pair in pairs)
    return {
        "tasks": tasks.values(),
        "rows": {agent: [cells.get((agent, task)) for task in tasks] for agent in agents},
        "planned": sum(pair.planned for pair in pairs),
        "scored": sum(pair.scored for pair in pairs),
        "unscored": sum(pair.unscored for pair in pairs),
    }


def _cell(pair: PairReport, letters: Letters) -> dict[str, Any]:
    """A pair, with its coverage where trials are missing, and the shade of its mean score, from 0 to SHADES."""
    return {
        "pair": pair,
        "coverage": None if pair.coverage == 1 else coverage_text(pair.coverage),
        "shade": None if pair.mean_score is None else round(SHADES * pair.mean_score),
        "letters": letters.of_task.get(pair.task, {}).get(pair.agent, ""),
    }


def sample_scores(trials: Sequence[TrialFacts]) -> dict[str, Scores]:
    """sample -> the scores of its epochs, and how many are missing."""
    held: dict[str, list[float | None]] = {}
    for trial in trials:
        held.setdefault(trial.sample, []).append(trial.score)
    return {
        sample: Scores(tuple([score for score in scores if score is not None]), scores.count(None))
        for sample, scores in held.items()
    }


def score_bounds(trials: Sequence[TrialFacts]) -> Interval:
    """The mean score over all planned samples, with all missing ones 0, and with all 1."""
    return mean_bounds(list(sample_scores(trials).values()))


def with_bounds(board: ResultTable, pairs: Sequence[PairReport], facts: Facts) -> ResultTable:
    """A leaderboard with what the mean scores could be, where trials are missing."""
    if all(pair.coverage == 1 for pair in pairs):
        return board
    rows = []
    for row, pair in zip(board.rows, pairs, strict=True):
        low, high = score_bounds(facts[pair.agent, pair.task])
        rows.append(row._replace(cells=(*row.cells, "-" if pair.coverage == 1 else f"{low:.3f}..{high:.3f}")))
    columns = (*board.columns, TableColumn("mean score could be"))
    return board._replace(columns=columns, rows=tuple(rows), notes=(*board.notes, BOUNDS_NOTE))


def not_comparable_notes(made: RunReport) -> list[str]:
    """Why scores are not comparable with published ones, once for each task."""
    reasons = {(pair.task, pair.comparable): None for pair in made.pairs if pair.comparable}
    return [f"{task}: not comparable with published scores: {reason}" for task, reason in reasons]


def sample_tables(facts: Facts, told: Mapping[int, TrialRow]) -> list[ResultTable]:
    """For each task a row for each sample, with the score of each agent.

    `told` has the first trials of samples whose words may be published, by their ids: what was asked and expected, and
    what the agent answered.
    """
    tables = []
    for task in dict.fromkeys(task for _, task in facts):
        held = {agent: sample_scores(trials) for (agent, of), trials in facts.items() if of == task}
        firsts = {
            agent: {each.sample: told[each.id] for each in facts[agent, task] if each.id in told} for agent in held
        }
        has_words = any(firsts.values())
        rows = []
        for name in dict.fromkeys(name for scores in held.values() for name in scores):
            words = [firsts[agent].get(name) for agent in held]
            known = next(filter(None, words), None)
            asked = (known.asked, known.expected) if known else (None, None)
            cells: list[Entry] = [name, *(asked if has_words else ())]
            for scores, row in zip(held.values(), words, strict=True):
                cells.append(Figure(scores[name].mean if name in scores and scores[name].scores else None))
                cells += [row.answered if row else None] if has_words else []
            rows.append(TableRow(tuple(cells)))
        columns = [TableColumn(title, left=True) for title in ("sample", *(("asked", "expected") if has_words else ()))]
        for agent in held:
            columns += [TableColumn(agent), *([TableColumn(f"{agent} answered", left=True)] if has_words else [])]
        several = any(trial.epoch for agent in held for trial in facts[agent, task])
        tables.append(ResultTable(task, tuple(columns), tuple(rows), EPOCHS_NOTE if has_words and several else ()))
    return tables
