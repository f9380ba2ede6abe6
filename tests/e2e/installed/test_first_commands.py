"""The first commands of pages run as written, but for ports, without a model, a key or published data."""

import contextlib
import re
import shlex
from collections import defaultdict
from pathlib import Path

import pytest

from tests.e2e.proctor import exits, server
from tests.support import ROOT, free_port

HOW_TO = ROOT / "docs" / "how-to"
NAMES = "agents exports local-model openenv operations publishing resume runs task-servers teams"
WORLDS = sorted((ROOT / "docs" / "reference" / "environments").glob("*.md"))
PAGES = [*WORLDS, *sorted(HOW_TO.glob("*-paper.md")), *(HOW_TO / f"{name}.md" for name in NAMES.split())]


@pytest.mark.thorough
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_first_commands_of_a_page_run_as_written(page: Path, tmp_path: Path) -> None:
    ports = defaultdict[str, int](free_port)
    first, *_ = re.findall(r"^```console\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    if page.parent == HOW_TO:
        exits(0, "run", "-m", "naive", "-e", "alfworld", "--limit", "2", "-q", cwd=tmp_path)
    lines = re.findall(r"^\$ proctor (.*?)( &)?(?:\s+#.*)?$", first, re.MULTILINE)
    assert lines
    with contextlib.ExitStack() as servers:
        for line, behind in lines:
            words = shlex.split(re.sub(r"\b[89]\d{3}\b", lambda port: str(ports[port[0]]), line))
            if behind:
                servers.enter_context(server(*words, cwd=tmp_path, PROCTOR_TOKEN=""))
            else:
                exits(0, *words, cwd=tmp_path, PROCTOR_TOKEN="")
