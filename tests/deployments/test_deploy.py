"""docs/how-to/deploy.md, followed word by word by a shell, in a fresh clone."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.deployments.docker_compose import SOCKET, project
from tests.support import ROOT, finished, free_port

NOT_THE_PAGES = shutil.ignore_patterns(".git", ".venv", ".proctor-test", "wheelhouse", "secrets", ".*_cache")

pytestmark = [pytest.mark.compose, pytest.mark.images, pytest.mark.docker, pytest.mark.usefixtures("no_leftovers")]


def test_the_page_brings_up_a_stack_and_scores_runs_on_it(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "deploy.md").read_text()
    blocks = re.findall(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    assert all(line.startswith("$ ") for line in lines)
    commands = [line.removeprefix("$ ") for line in lines]
    assert len(commands) > 15
    named = "COMPOSE_PROJECT_NAME=proctor "
    assert sum(named in command for command in commands) == 1
    ours = f"COMPOSE_PROJECT_NAME={project('deploy')} "  # never the operators' name: the test removes its volumes
    commands = [command.replace(named, ours) for command in commands]
    clone = tmp_path / "proctor"
    shutil.copytree(ROOT, clone, ignore=NOT_THE_PAGES)
    settings = {
        "DOCKER_SOCKET": str(SOCKET),
        "PYTHON": sys.executable,
        "COMPOSE_HTTP_TIMEOUT": "300",
        "STORE_PORT": str(free_port()),  # Debian's own server may have the usual one
        "PROMETHEUS_PORT": str(free_port()),
        "VIEW_PORT": str(free_port()),
    }
    script = "set -eux\ntrap '$DOWN' EXIT\n" + "\n".join(commands)
    down = "docker-compose --profile os --profile client --profile alerts down --volumes"
    done = finished(["bash", "-c", script], cwd=clone, env={**os.environ, **settings, "DOWN": down})
    assert done.returncode == 0, done.stdout + done.stderr
    assert "undefined secret" not in done.stderr
    assert "debconf" not in done.stdout + done.stderr
    assert done.stdout.count("100%") >= 9 + 10 + 10, done.stdout
    assert re.search(r'"run": ?"first"', done.stdout), done.stdout
    assert re.search(r"first\s*\|\s*finished", done.stdout), done.stdout
