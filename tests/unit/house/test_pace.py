"""What deadlines and budgets of the tests go by."""

import json
import os
import subprocess
import sys

import pytest

from tests import pace
from tests.support import ROOT


@pytest.mark.parametrize(
    ("measured", "processes", "processors", "busy", "expected"),
    [
        (1.0, 1, 2, 2.0, 1.0),
        (3.0, 1, 1, 2.0, 3.0),
        (0.5, 1, 2, 2.0, 1.0),
        (2.0, 2, 2, 2.0, 4.0),
        (2.0, 4, 16, 2.0, 2.0),
        (15.0, 2, 2, 2.0, pace.MOST),
        (2.0, 8, 2, 0.5, 4.0),
        (2.0, 4, 2, 0.25, 2.0),
    ],
)
def test_a_slow_machine_and_many_processes_stretch_deadlines_up_to_a_bound(
    measured: float, processes: int, processors: int, busy: float, expected: float
) -> None:
    assert pace.factor(measured, processes, processors, busy) == expected


def told(**variables: str) -> "subprocess.CompletedProcess[str]":
    """A fresh process's factor, and the variable that its children would get."""
    code = "import json, os; from tests import pace; print(json.dumps([pace.FACTOR, os.environ[pace.VARIABLE]]))"
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    surroundings.pop(pace.VARIABLE)
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=ROOT, env={**surroundings, **variables}, capture_output=True, text=True, check=False
    )


def test_the_pace_is_measured_once_and_handed_on() -> None:
    measured, handed_on = json.loads(told().stdout)
    assert 1 <= measured <= pace.MOST
    assert float(handed_on) == pytest.approx(measured, abs=0.01)
    assert json.loads(told(PROCTOR_TEST_PACE="7.5").stdout) == [7.5, "7.5"]


def test_a_pace_that_is_no_number_is_refused() -> None:
    assert "PROCTOR_TEST_PACE: 'slow' is not a number" in told(PROCTOR_TEST_PACE="slow").stderr


def test_a_cost_is_the_multiple_of_a_piece_and_the_best_try_counts() -> None:
    assert pace.cost_s(lambda: [pace.piece() for _ in range(5)], 25) == pytest.approx(5 * pace.PIECE_S, rel=0.4)
    meter = pace.Meter()
    for pieces in (40, 1):
        with meter:
            for _ in range(pieces):
                pace.piece()
    assert meter.cost_s < 10 * pace.PIECE_S
