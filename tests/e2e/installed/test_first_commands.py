"""The first commands of pages run as written, without a model, a key or published data."""

import re
import shlex
from pathlib import Path

import pytest

from tests.e2e.proctor import exits
from tests.support import ROOT

HOW_TO = ROOT / "docs" / "how-to"
PAGES = [
    *sorted((ROOT / "docs" / "reference" / "environments").glob("*.md")),
    *(HOW_TO / f"{name}.md" for name in ("resume", "runs", "simulbench-paper", "stss-paper")),
]


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_first_commands_of_a_page_run_as_written(page: Path, tmp_path: Path) -> None:
    first = re.search(r"^```console\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert first is not None
    if page.parent == HOW_TO:
        exits(0, "run", "-m", "naive", "-e", "alfworld", "--limit", "2", "-q", cwd=tmp_path)
    lines = re.findall(r"^\$ proctor (.*?)(?:\s+#.*)?$", first[1], re.MULTILINE)
    assert lines
    for line in lines:
        exits(0, *shlex.split(line), cwd=tmp_path)
