"""The doctor's page names each finding that the doctor can print, and a test brings each of them about."""

import re
from collections import Counter

from tests.support import ROOT

PAGE = (ROOT / "docs" / "reference" / "doctor.md").read_text(encoding="utf-8").split("## Checks")[1]
CHECKS, PROBLEMS = (set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`:?", part)) for part in PAGE.split("## Problems"))
FILES = (ROOT / "eval_client" / "cli" / "doctor").glob("*.py")
SOURCE = "".join(path.read_text(encoding="utf-8") for path in FILES)
TESTS = ("unit/eval_client/cli/test_doctor.py", "e2e/test_doctor.py", "integration/test_store.py")


def test_each_problem_stands_once_in_the_code_and_on_the_page_and_is_provoked_by_a_test() -> None:
    kinds = Counter(re.findall(r'\b(?:warn|fail)\)?\(\s*"([a-z-]+)"', SOURCE))
    assert [kind for kind, n in kinds.items() if n > 1] == []
    assert set(kinds) == PROBLEMS
    assert set(re.findall(r'\b(?:ok|skip)\(\s*"([a-z-]+)"', SOURCE)) == CHECKS
    tests = "".join((ROOT / "tests" / name).read_text(encoding="utf-8") for name in TESTS)
    assert [kind for kind in (*CHECKS, *PROBLEMS) if f'"{kind}"' not in tests] == []
