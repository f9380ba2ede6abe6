"""CI fails where a test was skipped, but for those of tests/allowed_skips.txt."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ALLOWED_SKIPS
from tests.support import ROOT

SKIPPED = "import pytest\n\ndef test_skipped():\n    pytest.skip('nothing to see')\n"


@pytest.mark.parametrize(("ci", "code"), [("", 0), ("true", 1)])
def test_a_skipped_test_fails_in_ci_and_nowhere_else(tmp_path: Path, ci: str, code: int) -> None:
    (tmp_path / "test_one.py").write_text(SKIPPED)
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-rs", "test_one.py"]
    variables = {**os.environ, "CI": ci, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, "nothing to see" in done.stdout) == (code, True), done.stdout + done.stderr


def test_the_allowed_ones_exist_and_have_a_reason() -> None:
    lines = [line for line in ALLOWED_SKIPS.read_text().splitlines() if not line.startswith("#")]
    for line in lines:
        node, _, reason = line.partition("#")
        file, _, name = node.strip().partition("::")
        assert f"def {name}(" in (ROOT / file).read_text()
        assert reason.strip()
