"""The paper's tables: its own rows, given as trials, come out as published."""

import pytest

from environments.simulbench.table import ratings_table, verdicts_table
from proctor.plugins import FinishedTrial, RecordedPair
from proctor.tables.table import Entry, Figure
from proctor.types import Finish

COUNTS = {"lastonly": 225, "firstchan": 93, "subseqchan": 182}
PAPER = """
9.29 8.62 8.13 8.29 8.74
9.40 8.65 7.57 7.93 8.59
9.32 8.13 7.98 8.03 8.61
9.03 7.28 7.20 7.23 8.04
9.16 8.25 7.25 7.59 8.30
8.73 6.53 6.60 6.58 7.55
8.99 7.62 6.83 7.10 7.95
8.39 6.90 6.76 6.81 7.52
8.37 6.41 6.14 6.23 7.19
8.59 6.46 6.40 6.42 7.40
8.48 5.84 6.11 6.02 7.13
8.37 5.46 6.09 5.88 7.00
"""
"""Table 4 of the paper: last only, first and subsequent challenging turns, hard, all."""


def trial(finish: Finish, agent: str = "a") -> FinishedTrial:
    return FinishedTrial(run="r", agent=agent, task="t", sample="s", epoch=0, finish=finish)


def rated(rating: float, place: str = "firstchan", kind: str = "stateful") -> Finish:
    detail = {"simulbench": "script", "place": place, "type": kind}
    finish = {"reason": "completed", "score": 0.5, "metrics": {"rating": rating}, "detail": detail}
    return Finish.model_validate(finish)


def pair(agent: str = "a", planned: int = 1, comparable: str | None = None) -> RecordedPair:
    return RecordedPair(run="r", agent=agent, task="t", planned=planned, comparable=comparable)


def figure(entry: Entry) -> Figure:
    assert isinstance(entry, Figure)
    return entry


@pytest.mark.parametrize("line", PAPER.split("\n")[1:-1])
def test_hard_and_all_are_means_over_scripts_as_in_the_paper(line: str) -> None:
    *subsets, hard, everything = map(float, line.split())
    means = dict(zip(COUNTS, subsets, strict=True))
    trials = [trial(rated(means[place], place)) for place, count in COUNTS.items() for _ in range(count)]
    (row,) = ratings_table(trials, [pair(planned=500)]).rows
    assert figure(row.cells[-2]).value == pytest.approx(hard, abs=0.006)
    assert figure(row.cells[-1]).value == pytest.approx(everything, abs=0.006)
    assert (figure(row.cells[-2]).samples, figure(row.cells[-1]).samples) == (275, 500)


@pytest.mark.parametrize(
    ("counts", "percents"),
    [
        ((111, 98, 66), ["40.36", "35.64", "24.00", "16.36"]),
        ((107, 112, 56), ["38.91", "40.73", "20.36", "18.55"]),
        ((98, 90, 87), ["35.64", "32.73", "31.64", "4.00"]),
    ],
)
def test_wins_ties_and_losses_are_percents_of_the_pairs(counts: tuple[int, int, int], percents: list[str]) -> None:
    """The paper's table 1, where 32.727 is printed as 32.72."""

    def compared(outcome: str) -> Finish:
        metrics = {name: float(name == outcome) for name in ("win", "tie", "lose")}
        detail = {"simulbench": "compare", "candidate": "new", "reference": "old"}
        finish = {"reason": "completed", "score": 0.5, "metrics": metrics, "detail": detail}
        return Finish.model_validate(finish)

    outcomes = [name for name, count in zip(("win", "tie", "lose"), counts, strict=True) for _ in range(count)]
    trials = [trial(compared(each)) for each in outcomes]
    (row,) = verdicts_table(trials, [pair(planned=275)]).rows
    assert row.cells[:3] == ("new", "old", "a")
    assert [figure(cell).lines()[0] for cell in row.cells[3:]] == percents
    assert verdicts_table(trials, [pair(planned=300)]).title.endswith(": 275 of 300 planned trials are scored")
    assert ratings_table([trial(compared("win"))], [pair()]).rows == ()
