"""The list of planted bugs keeps up with the code and with the tests."""

import re
from pathlib import Path

import pytest

from tests.faults.planted import BUGS, Bug
from tests.simulation.mutants import MUTANTS, Mutant
from tests.support import ROOT
from tests.unit.house.planting import changed

FAULTS = ROOT / "tests" / "faults"


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_what_a_bug_replaces_stands_once_where_it_says(bug: Bug) -> None:
    assert changed(bug.change)
    assert (ROOT / "tests" / bug.test.partition("::")[0]).is_file()


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.bug for mutant in MUTANTS])
def test_so_does_what_a_bug_of_the_simulation_replaces(mutant: Mutant) -> None:
    assert changed(mutant.change)


@pytest.mark.parametrize("file", sorted(FAULTS.rglob("test_*.py")), ids=lambda file: str(file.stem))
def test_every_test_of_the_fault_suite_has_a_bug_to_notice(file: object) -> None:
    assert isinstance(file, Path)
    name = str(file.relative_to(FAULTS))
    tests = re.findall(r"^def test_(\w+)", (FAULTS / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    words = [bug.test.partition("::")[2].split(" and ")[0] for bug in BUGS if bug.test.startswith(f"faults/{name}")]
    unguarded = [test for test in tests if len(tests) > 1 and not any(word in test for word in words)]
    assert words
    assert unguarded == []
