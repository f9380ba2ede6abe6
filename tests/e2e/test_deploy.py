"""docs/deploy.md, followed word by word by a shell, in a fresh clone."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.docker_compose import SOCKET
from tests.support import ROOT

pytestmark = [pytest.mark.compose, pytest.mark.images, pytest.mark.docker]


def test_the_page_brings_up_a_stack_and_scores_runs_on_it(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "deploy.md").read_text()
    blocks = re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines)
    commands = [line.removeprefix("$ ") for line in lines]
    assert len(commands) > 15
    clone = tmp_path / "proctor"
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    settings = {"DOCKER_SOCKET": str(SOCKET), "PYTHON": sys.executable, "COMPOSE_HTTP_TIMEOUT": "300"}
    script = "set -eux\ntrap '$DOWN' EXIT\n" + "\n".join(commands)
    down = "docker-compose --profile os --profile client down --volumes"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=clone,
        env={**os.environ, **settings, "DOWN": down},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("100%") >= 9 + 10, done.stdout
    assert re.search(r"first\s*\|\s*finished", done.stdout), done.stdout
