"""AgentBench's tables: the paper's 29 rows, errors, bounds, daggers."""

import itertools
import random

import pytest

from eval_client.core.statistics.missing import group_mean_bounds
from eval_client.report.agentbench import (
    TASKS,
    PlayedTask,
    agent_rows,
    overall,
    overall_error,
    scores_table,
    validity_table,
)
from eval_client.report.pair_report import VALIDITY, PairReport
from proctor.tables.command import rendered
from proctor.tables.table import Figure

PAPER = """
gpt-4 4.01 4.007387 42.4 32.0 58.8 74.5 16.6 78.0 61.1 29.0
claude-3 3.11 3.114417 22.9 51.7 34.6 44.5 14.3 70.0 27.9 26.0
glm-4 2.89 2.892098 29.2 42.3 46.3 34.1 14.2 34.0 61.6 27.0
claude-2 2.49 2.490749 18.1 27.3 41.3 55.5 8.4 54.0 61.4 0.0
claude 2.44 2.446406 9.7 22.0 38.9 40.9 8.2 58.0 55.7 25.0
gpt-3.5-turbo 2.32 2.319512 32.6 36.7 25.9 33.7 10.5 16.0 64.1 20.0
text-davinci-003 1.71 1.711742 20.1 16.3 34.9 3.0 7.1 20.0 61.7 26.0
claude-instant 1.60 1.598799 16.7 18.0 20.8 5.9 12.6 30.0 49.7 4.0
chat-bison-001 1.39 1.387308 9.7 19.7 23.0 16.6 4.4 18.0 60.5 12.0
text-davinci-002 1.25 1.250680 8.3 16.7 41.5 11.8 0.5 16.0 56.3 9.0
llama-2-70b 0.78 0.777859 9.7 13.0 8.0 21.3 0.0 2.0 5.6 19.0
guanaco-65b 0.54 0.535918 8.3 14.7 1.9 0.1 1.5 12.0 0.9 10.0
codellama-34b 0.96 0.956966 2.8 14.0 23.5 8.4 0.7 4.0 52.1 20.0
vicuna-33b 0.73 0.729586 15.3 11.0 1.2 16.3 1.0 6.0 23.9 7.0
wizardlm-30b 0.46 0.462868 13.9 12.7 2.9 0.3 1.8 6.0 4.4 1.0
guanaco-33b 0.39 0.386613 11.1 9.3 3.2 0.3 0.0 6.0 6.2 5.0
vicuna-13b 0.93 0.932103 10.4 6.7 9.4 0.1 8.0 8.0 41.7 12.0
llama-2-13b 0.77 0.769277 4.2 11.7 3.6 26.4 0.0 6.0 25.3 13.0
openchat-13b 0.70 0.698454 15.3 12.3 5.5 0.1 0.0 0.0 46.9 15.0
wizardlm-13b 0.66 0.664757 9.0 12.7 1.7 1.9 0.0 10.0 43.7 12.0
vicuna-7b 0.56 0.556041 9.7 8.7 2.5 0.3 6.4 0.0 2.2 9.0
codellama-13b 0.56 0.556505 3.5 9.7 10.4 0.0 0.0 0.0 43.8 14.0
codellama-7b 0.50 0.503716 4.9 12.7 8.2 0.0 0.0 2.0 25.2 12.0
koala-13b 0.34 0.341678 3.5 5.0 0.4 0.1 4.4 0.0 3.9 7.0
llama-2-7b 0.34 0.338956 4.2 8.0 2.1 6.9 0.0 0.0 11.6 7.0
codegeex2-6b 0.27 0.266126 1.4 0.0 4.8 0.3 0.0 0.0 20.9 11.0
dolly-12b 0.14 0.142510 0.0 0.0 0.0 0.1 1.2 0.0 0.4 9.0
chatglm-6b 0.11 0.114435 4.9 0.3 0.0 0.0 0.0 0.0 0.5 4.9
oasst-12b 0.03 0.028201 1.4 0.0 0.0 0.0 0.0 0.0 0.3 1.0
"""
"""Model, the paper's overall score, ours, and the eight tasks' scores in percent: arXiv 2308.03688, table 3."""
ROWS = [line.split() for line in PAPER.strip().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_papers_rows_give_their_overall_scores(row: list[str]) -> None:
    assert overall([float(each) for each in row[3:]]) == pytest.approx(float(row[2]), abs=1e-6)


def test_28_of_29_agree_with_the_paper_and_the_weights_are_means_over_27() -> None:
    agree = [round(overall([float(each) for each in row[3:]]), 2) == float(row[1]) for row in ROWS]
    assert (len(agree), sum(agree)) == (29, 28)
    old = [row for row in ROWS if row[0] not in ("claude-3", "glm-4")]
    means = [sum(float(row[3 + place]) for row in old) / len(old) for place in range(len(TASKS))]
    assert [round(mean, 1) for mean in means] == [task.weight for task in TASKS]


PERCENT = [31.25, 28.0, 44.1, 50.5, 12.75, 62.0, 58.3, 27.5]
ERRORS = [3.86, 2.59, 3.2, 9.7, 2.9, 6.86, 2.4, 4.4]


def test_the_error_of_the_overall_score() -> None:
    assert overall(PERCENT) == pytest.approx(3.138770030595607)
    assert overall_error(ERRORS) == pytest.approx(0.17628158632866395)


def played(place: int, agent: str = "gpt", run: str = "r", missing: int = 0, why: str | None = None) -> PlayedTask:
    task = TASKS[place]
    metrics = {task.metric: PERCENT[place] * task.best / 100}
    for group in task.mean_over:
        metrics |= {f"{group}_scored": (task.samples - missing) / 3, f"{group}_accuracy": metrics[task.metric]}
    pair = PairReport(
        agent=agent,
        task=f"t{place}",
        environment=task.environment,
        protocol="text",
        planned=task.samples,
        scored=task.samples - missing,
        primary=task.metric,
        value=metrics[task.metric],
        standard_error=ERRORS[place] * task.best / 100,
        metrics=metrics,
        notes=(),
        comparable=why,
        validity=dict(zip(VALIDITY, (0.5, 0.25, 0.125, 0.125, 0.0, 0.0), strict=True)),
        cut_answers=3,
        faults={"gone": missing} if missing else {},
        turns=0,
        prompt_tokens=0,
        completion_tokens=0,
        cached_tokens=0,
        reasoning_tokens=0,
        money=None,
        seconds=0.0,
        helpers=(),
    )
    return PlayedTask(run=run, pair=pair, samples=task.samples, model_version=None)


def overall_of(tasks: list[PlayedTask]) -> Figure:
    (row,) = scores_table(agent_rows(tasks)).rows
    figure = row.cells[2]
    assert isinstance(figure, Figure)
    return figure


def test_both_tables_say_how_many_of_the_planned_trials_are_behind_them() -> None:
    whole, partly = agent_rows([played(0)]), agent_rows([played(0, missing=2), played(1)])
    samples = TASKS[0].samples + TASKS[1].samples
    for table in (scores_table, validity_table):
        assert table(whole).title.endswith(")")
        assert table(partly).title.endswith(f": {samples - 2:,} of {samples:,} planned trials are scored")


def test_eight_tasks_of_two_runs_have_one_overall_score_and_seven_have_none() -> None:
    eight = [played(place, run="one" if place < 3 else "two") for place in range(8)]
    assert overall_of(eight).lines() == ("3.14", "±0.18")
    assert overall_of(eight[:7]).lines() == ("7 of 8 tasks",)


def test_what_differs_from_the_paper_gets_a_dagger_and_its_reason() -> None:
    tasks = [played(place, why="own samples" if place == 1 else None) for place in range(8)]
    tasks[4] = tasks[4]._replace(samples=7, protocol="tools")
    assert overall_of(tasks).mark == "†"
    (row,) = scores_table(agent_rows(tasks)).rows
    assert row.notes[0] == "† DB (t1): own samples."
    assert "7 samples, the paper's test split 50; the protocol is tools" in row.notes[1]


@pytest.mark.parametrize("place", [0, 1, 7])
def test_missing_trials_give_bounds(place: int) -> None:
    figure = overall_of([played(each, missing=3 if each == place else 0) for each in range(8)])
    assert figure.low is not None
    assert figure.high is not None
    assert figure.value is not None
    assert figure.low < figure.value < figure.high
    assert figure.high - figure.low == pytest.approx(300 / TASKS[place].samples / TASKS[place].weight / 8, rel=0.05)


def test_bounds_of_a_mean_over_groups_hold_for_every_way_to_fill_them() -> None:
    chance = random.Random(3)
    for _ in range(60):
        groups = [[float(chance.random() < 0.5) for _ in range(chance.randrange(4))] for _ in range(3)]
        if not any(groups):
            continue
        missing = chance.randrange(4)
        known = [(len(group), sum(group) / len(group) if group else 0.0) for group in groups]
        means = []
        for places in itertools.product(range(3), repeat=missing):
            for score in (0.0, 1.0):
                filled = [group + [score] * places.count(place) for place, group in enumerate(groups)]
                means.append([sum(group) / len(group) for group in filled if group])
        values = [sum(each) / len(each) for each in means]
        assert group_mean_bounds(known, missing) == pytest.approx((min(values), max(values)))


def test_an_agent_that_played_a_task_in_two_runs_has_a_row_for_each() -> None:
    table = scores_table(agent_rows([played(0), played(0, run="again")]))
    assert [row.cells[:2] for row in table.rows] == [("gpt", "r"), ("gpt", "again")]


def test_shares_of_validity_sum_to_100_and_faults_stand_below() -> None:
    other = played(0, "other")
    other = other._replace(pair=other.pair.model_copy(update={"cut_answers": None}))
    rows = validity_table(agent_rows([played(0, missing=2), played(1), other])).rows
    assert [row.cells[1] for row in rows[:8]] == [
        "Completed",
        "CLE",
        "Invalid Format",
        "Invalid Action",
        "TLE",
        "Refused",
        "Faults",
        "Cut answers",
    ]
    values = [cell.value for row in rows[:5] if isinstance(cell := row.cells[2], Figure) and cell.value is not None]
    assert sum(values) == pytest.approx(100, abs=0.1)
    assert (rows[5].rule, rows[6].cells[2]) == (True, 2)
    cuts = [row.cells[2:5] for row in rows if row.cells[1] == "Cut answers"]
    assert cuts == [(None, 3, None), (3, 3, None), (None, None, None)], "of all agents, and of each"


def test_latex_has_eleven_columns_in_every_row() -> None:
    lines = rendered([scores_table(agent_rows([played(place) for place in range(8)]))], "latex").splitlines()
    form = next(line for line in lines if "tabular}{" in line)
    assert len(form.split("{")[2].rstrip("}")) == 11
    body = [line for line in lines if line.endswith("\\\\") and "multicolumn" not in line]
    assert [line.count("&") for line in body] == [10, 10]
