"""CI fails where a test was skipped, but for those of tests/allowed_skips.txt."""

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ALLOWED_SKIPS
from tests.support import ROOT

TWICE = """
import os, pytest
for ci in ("", "true"):
    os.environ["CI"] = ci
    code = pytest.main(["-p", "tests.conftest", "-p", "no:cacheprovider", "-rs", "test_one.py"])
    print(f"exit code {int(code)}")
"""
SKIPPED = "import pytest\n\ndef test_skipped():\n    pytest.skip('nothing to see')\n"


def test_a_skipped_test_fails_in_ci_and_nowhere_else(tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text(SKIPPED)
    variables = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    done = subprocess.run(
        [sys.executable, "-c", TWICE], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
    )
    runs = done.stdout.split("exit code ")
    assert [run[:1] for run in runs[1:]] == ["0", "1"], done.stdout + done.stderr
    assert all("nothing to see" in run for run in runs[:2])


def test_the_allowed_ones_exist_and_have_a_reason() -> None:
    lines = [line for line in ALLOWED_SKIPS.read_text().splitlines() if not line.startswith("#")]
    for line in lines:
        node, _, reason = line.partition("#")
        file, _, name = node.strip().partition("::")
        assert f"def {name}(" in (ROOT / file).read_text()
        assert reason.strip()
