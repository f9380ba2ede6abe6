"""Exports of stss that can't be made, and the paper's two tables from runs of both levels and both architectures."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

import click
import pytest

from environments.stss.commands import FILES, SCENARIOS
from environments.stss.environment import Stss
from environments.stss.summary import OLD, ONE_FORM, OWN_WORLD, summarize
from environments.stss.tables import action_table, language_table
from proctor.plugins import FinishedTrial, RecordedPair, TrialExport
from proctor.session.play import PolicyAgent
from proctor.tables.table import Figure, ResultTable
from proctor.types import Finish
from tests.unit.environments.given_run import GivenRun

SAMPLE = "fernmouth_birthday"


@pytest.fixture(scope="module")
def town() -> FinishedTrial:
    environment = Stss()
    finish = asyncio.run(environment.play(SAMPLE, PolicyAgent(environment.reference(SAMPLE))))
    return FinishedTrial(run="one", agent="a", task="town", sample=SAMPLE, epoch=0, finish=finish)


@pytest.mark.parametrize(
    ("form", "place", "options", "damaged", "told"),
    [
        (FILES, "file/days", {}, False, "file/days"),
        (SCENARIOS, "file/frozen.json", {"task": None}, False, "file/frozen.json"),
        (SCENARIOS, "frozen.json", {"task": "city"}, False, "no trial of the task 'city'"),
        (FILES, "days", {}, True, f"a-town-{SAMPLE}-0: the stored days of its finish are damaged"),
    ],
)
def test_what_cannot_be_done_is_told(
    tmp_path: Path,
    town: FinishedTrial,
    form: TrialExport,
    *,
    place: str,
    options: dict[str, object],
    damaged: bool,
    told: str,
) -> None:
    detail = town.finish.detail | ({"evidence": "damaged"} if damaged else {})
    given = town.model_copy(update={"finish": town.finish.model_copy(update={"detail": detail})})
    (tmp_path / "file").touch()
    with pytest.raises(click.UsageError) as refused:
        form.write(GivenRun([given]), tmp_path / place, **options)
    assert told in refused.value.message


TALKS = {"sr_conversation": 0.5, "gcsr_conversation": 0.75, "sr_summary": 0.25, "gcsr_summary": 0.5}


def trial(level: str, planning: str) -> FinishedTrial:
    detail = {"level": level, "planning": planning, "category": "help"}
    told = {"reason": "completed", "score": 0.5, "metrics": TALKS if level == "language" else {}, "detail": detail}
    finish = Finish.model_validate(told)
    return FinishedTrial(run="r", agent="a", task=f"{level}-{planning}", sample="s", epoch=0, finish=finish)


TRIALS = [trial(level, planning) for level in ("language", "action") for planning in ("ga", "tdp")]
PAIRS = [RecordedPair(run="r", agent="a", task=each.task, planned=2, comparable="own") for each in TRIALS]


@pytest.mark.parametrize("make", [language_table, action_table])
def test_a_row_for_each_architecture_with_the_note(
    make: Callable[[Sequence[FinishedTrial], Sequence[RecordedPair]], ResultTable],
) -> None:
    table = make(TRIALS, PAIRS)
    assert [row.cells[:2] for row in table.rows] == [("a", "GA"), ("a", "GA + TDP")]
    assert OWN_WORLD in table.all_notes()
    assert table.title.endswith("): 2 of 4 planned trials are scored")
    assert make(TRIALS, [pair.model_copy(update={"planned": 1}) for pair in PAIRS]).title.endswith(")")


def test_the_figures_are_percent_for_language_and_scores_for_action() -> None:
    shown = [
        [cell.lines()[0] for cell in table.rows[0].cells if isinstance(cell, Figure)]
        for table in (language_table(TRIALS, PAIRS), action_table(TRIALS, PAIRS))
    ]
    assert shown == [["50.0", "75.0", "25.0", "50.0"], ["-", "-", "-", "-", "0.500", "0.500"]]


@pytest.mark.parametrize(
    ("driver", "told"), [("rules of one form", {ONE_FORM}), ("rules", {OLD}), ("model town", set()), ("", set())]
)
def test_every_report_says_by_what_rules_the_people_are_driven(driver: str, told: set[str]) -> None:
    detail = {"driver": driver, "level": "action", "planning": "ga"}
    finish = TRIALS[0].finish.model_copy(update={"detail": TRIALS[0].finish.detail | detail})
    table = action_table([TRIALS[0].model_copy(update={"finish": finish})], PAIRS)
    assert {ONE_FORM, OLD} & {*summarize([finish]).notes} == told
    assert {ONE_FORM, OLD} & {*table.all_notes()} == told


def test_runs_of_old_and_new_rules_are_told_apart_in_one_summary() -> None:
    of_both = [
        each.finish.model_copy(update={"detail": {"driver": driver}})
        for each, driver in zip(TRIALS, ("rules", "rules of one form"), strict=False)
    ]
    notes = summarize(of_both).notes
    assert "Background characters driven by: rules, rules of one form." in notes
    assert {ONE_FORM, OLD} <= {*notes}
