"""The list of planted bugs keeps up with the code and with the tests."""

import re

import pytest

from tests.faults.planted import BUGS, Bug
from tests.support import ROOT

FAULTS = ROOT / "tests" / "faults"


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_what_a_bug_replaces_stands_in_its_file(bug: Bug) -> None:
    assert bug.old in (ROOT / bug.file).read_text(encoding="utf-8")
    assert (ROOT / "tests" / bug.test.partition("::")[0]).is_file()


@pytest.mark.parametrize("file", sorted(FAULTS.glob("test_*.py")), ids=lambda file: str(file.stem))
def test_every_test_of_the_fault_suite_has_a_bug_to_notice(file: object) -> None:
    name = str(getattr(file, "name", ""))
    tests = re.findall(r"^def test_(\w+)", (FAULTS / name).read_text(encoding="utf-8"), flags=re.MULTILINE)
    words = [bug.test.partition("::")[2].split(" and ")[0] for bug in BUGS if bug.test.startswith(f"faults/{name}")]
    unguarded = [test for test in tests if len(tests) > 1 and not any(word in test for word in words)]
    assert words
    assert unguarded == []
