"""The demo's run that version 0.2.0 stored, and what its `proctor report --format json` printed: figures stay equal.

Both were written by `proctor demo` of commit e9269dc5.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

STORED = Path(__file__).with_name("version_0_2_0")
RUN = "demo-20261130-031435-6597"
ADDED: dict[str, Any] = {
    "cache_write_tokens": 0,
    "declined": 0,
    "estimated_tokens": 0,
    "passed": ...,
    "repeats": [],
    "told_usage": True,
    "unfinished": None,
    "effective_samples": ...,
    "interval": ...,
}
"""Fields that the issues on numbers and endpoints added; ... where pairs differ."""
FEW = "Few independent samples ("
MOST_FILES = 70
"""Of ours that the report of a run imports."""
IMPORTED = """
import sys
from eval_client.cli.results.report import report
report(["-o", sys.argv[1], sys.argv[2], "--format", "json"], standalone_mode=False)
files = {module.__file__ for module in list(sys.modules.values()) if getattr(module, "__file__", None)}
rooms = ("agent_server", "environments", "eval_client", "proctor", "task_server")
ours = sorted(file for file in files if any(f"/{room}/" in file.removeprefix(sys.argv[3]) for room in rooms)
              and file.startswith(sys.argv[3]) and "site-packages" not in file)
print("\\n".join(ours), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> "subprocess.CompletedProcess[str]":
    """The report, and the files of ours that made it."""
    folder = tmp_path_factory.mktemp("runs")
    (folder / RUN).mkdir()
    (folder / RUN / "run.sqlite").write_bytes(gzip.decompress((STORED / "run.sqlite.gz").read_bytes()))
    root = str(Path(__file__).parents[4])
    command = [sys.executable, "-c", IMPORTED, str(folder), RUN, root]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=root)


def test_its_figures_are_what_that_version_printed(told: "subprocess.CompletedProcess[str]") -> None:
    expected, found = json.loads((STORED / "report.json").read_text()), json.loads(told.stdout)
    for each in (expected, found):  # that version had the highest value first
        each["pairs"].sort(key=lambda pair: (pair["task"], pair["agent"]))
    for before, pair in zip(expected["pairs"], found["pairs"], strict=True):
        for name, value in ADDED.items():
            assert value in (..., pair[name])
            del pair[name]
        assert pair["validity"].pop("refused") == 0, "inputs that an endpoint declined had no class of their own"
        assert pair["notes"].pop().startswith(FEW)
        before["standard_error"] = before["standard_error"] or None  # an error of 0 is none: nothing varies
    assert found == expected


def test_no_world_and_few_files_are_imported(told: "subprocess.CompletedProcess[str]") -> None:
    files = told.stderr.splitlines()
    assert not [file for file in files if file.endswith("environment.py") and "/environments/" in file]
    assert len(files) <= MOST_FILES, told.stderr
