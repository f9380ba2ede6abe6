"""What `make dist` makes: a wheel that installs offline and plays, and an sdist that builds the same wheel."""

import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.e2e.installed.conftest import Installed, User
from tests.support import ROOT, build

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]


@pytest.mark.smoke
def test_the_installed_command_has_the_version_that_the_checkout_declares(user: User) -> None:
    assert user.types("proctor --version", started=True) == f"proctor {VERSION}\n"


def test_a_forked_command_is_that_of_the_wheel(user: User) -> None:
    modules = "eval_client, agent_server, task_server, environments.stss.environment, proctor"
    files = f"import {modules}; print(*sorted({{m.__spec__.origin for m in ({modules})}}), sep='\\n')"
    told = user.installed.forked(f'proctor -c "{files}"', user.folder).stdout.split()
    assert len(told) == len(modules.split(", "))
    assert all(file.startswith(f"{user.installed.venv}/lib/") for file in told)


def test_the_sdist_builds_the_wheel(installed: Installed, tmp_path: Path) -> None:
    with tarfile.open(installed.dist / f"proctor-{VERSION}.tar.gz") as sdist:
        sdist.extractall(tmp_path, filter="data")
    build(tmp_path / f"proctor-{VERSION}", tmp_path / "again", "--target", "wheel")
    name = f"proctor-{VERSION}-py3-none-any.whl"
    ours, again = (contents(folder / name) for folder in (installed.dist, tmp_path / "again"))
    assert ours == again
    assert "eval_client/plan/prices.yaml" in ours


def contents(wheel: Path) -> dict[str, int]:
    """name of a file -> its checksum"""
    with zipfile.ZipFile(wheel) as files:
        return {file.filename: file.CRC for file in files.infolist()}


@pytest.mark.parametrize("columns", [80, *(pytest.param(wide, marks=pytest.mark.thorough) for wide in (120, 200))])
def test_the_demo_ends_in_a_matrix_that_fits_the_terminal(user: User, columns: int) -> None:
    told = user.types("proctor demo --limit 1 -q", COLUMNS=str(columns)).splitlines()
    head = next(number for number, line in enumerate(told) if line.split()[:2] == ["task", "metric"])
    assert told[head].split()[2:] == ["reference", "naive", "random"]
    rows = told[head + 2 : told.index("", head)]
    for row in rows:
        task, _, *scores = row.split()
        assert [score for score in scores if not score.startswith("±")], f"{task} has no score"
    assert {row.split()[0] for row in rows} >= {"alfworld", "card_game", "kg", "ltp", "mind2web", "stss", "webshop"}
    assert max(len(line) for line in told[head : head + 2 + len(rows)]) <= columns
    assert "trials scored" in told[told.index("", head) + 1]
    for command in ("report", "show", "view"):
        assert any(f"proctor {command} runs/demo-" in line for line in told), command
