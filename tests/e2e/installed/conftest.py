"""Proctor as it is installed: its wheel in an empty virtual environment, away from the checkout.

The packages that it needs are those of the tests' own environment, linked; Proctor itself comes from the wheel alone.
"""

import functools
import os
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.installed.readme import EXPORT_KEY, INSTALL
from tests.e2e.preloaded import Forked, Forks
from tests.e2e.scripted import ScriptedEndpoint, listening
from tests.pace import slowly
from tests.support import ROOT, built_packages, finished, made_once

NOT_LINKED = ("proctor-", "_editable_impl_proctor", "__editable__", "proctor.", "proctor_", "__pycache__")


@dataclass(frozen=True)
class Installed:
    """A virtual environment with Proctor, and the folder of the sdist and the wheel; not to be written to."""

    venv: Path
    dist: Path

    def environment(self, **extra: str) -> dict[str, str]:
        """The variables of a user's shell; the checkout is in none of them."""
        left_out = ("PYTHON", "PROCTOR", "OPENAI", "VIRTUAL_ENV")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        path = f"{self.venv / 'bin'}{os.pathsep}{os.environ['PATH']}"
        wide = {"COLUMNS": "200", "NO_COLOR": "1"}
        return {**kept, "VENV": str(self.venv), "PATH": path, **wide, "DOCKER_HOST": "unix:///nowhere", **extra}

    def shell(self, command: str, cwd: Path, *, answers: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
        """A command line, as typed into a shell; `answers` are its standard input."""
        return finished(
            ["bash", "-c", command], cwd=cwd, env=self.environment(**extra), input=answers, timeout=slowly(300)
        )

    def forked(self, command: str, cwd: Path, *, answers: str = "", **extra: str) -> subprocess.CompletedProcess[str]:
        """The same for a line that is a command of `proctor` alone: forked from a process that has imported it."""
        (program, *arguments), pipe = shlex.split(command), subprocess.PIPE
        assert program == "proctor"
        streams = {"stdin": pipe, "stdout": pipe, "stderr": pipe}
        forks = _forks(self)
        with Forked(forks, arguments, cwd, apart=True, env=self.environment(**extra), **streams) as process:
            output, errors = process.communicate(answers, timeout=slowly(300))
        return subprocess.CompletedProcess(command, process.returncode, output, errors)


@functools.cache
def _forks(installed: Installed) -> Forks:
    """A process that has imported what is installed, and one for the servers of its runs; they find these tests' forker
    by a link, and of the checkout nothing else."""
    folder, environment = installed.venv.parent / "forker", installed.environment()
    python = installed.venv / "bin" / "python"
    return Forks(environment, Forks(environment, python=python, folder=folder), python=python, folder=folder)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Proctor, installed by the README's line from a wheel of this checkout; nothing is fetched."""
    dist = built_packages(tmp_path_factory)
    return Installed(made_once(tmp_path_factory, "installed", lambda folder: install(dist, folder)) / "venv", dist)


@pytest.fixture(scope="session")
def bridged(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The same with the extra `bridges`."""
    dist = built_packages(tmp_path_factory)
    made = made_once(
        tmp_path_factory, "bridged", lambda folder: install(dist, folder, "pip install 'proctor[bridges]'")
    )
    return Installed(made / "venv", dist)


def install(dist: Path, folder: Path, command: str = INSTALL) -> None:
    """Install into a folder."""
    made, packages, forker = Installed(folder / "venv", dist), folder / "packages", folder / "forker"
    packages.mkdir()
    forker.mkdir()
    (forker / "tests").symlink_to(ROOT / "tests")
    for path in Path(sysconfig.get_path("purelib")).iterdir():
        if not path.name.startswith(NOT_LINKED):
            (packages / path.name).symlink_to(path)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(made.venv)], check=True, timeout=slowly(60))
    (site,) = made.venv.glob("lib/python*/site-packages")
    (site / "packages.pth").write_text(f"{packages}\n")
    pip = made.venv / "bin" / "pip"
    pip.write_text(f'#!/bin/sh\nexec {made.venv}/bin/python -m pip "$@"\n')
    pip.chmod(0o755)
    done = made.shell(command, folder, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(made.dist))
    assert done.returncode == 0, done.stderr


@pytest.fixture
def user(installed: Installed, tmp_path: Path) -> "User":
    """A user with an empty folder."""
    return User(installed, tmp_path)


@dataclass(frozen=True)
class User:
    """Types commands in a folder of their own."""

    installed: Installed
    folder: Path

    def types(self, command: str, *, answers: str = "", code: int = 0, started: bool = False, **extra: str) -> str:
        """All that a command prints; it ends with this exit code. `proctor` is forked unless it is to be started."""
        key = EXPORT_KEY.removeprefix("export ").split("=", 1)
        play = self.installed.shell if started or not command.startswith("proctor ") else self.installed.forked
        done = play(command, self.folder, answers=answers, **{key[0]: key[1], **extra})
        assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    """An endpoint that answers as its script says, in a thread of its own."""
    scripted = ScriptedEndpoint()
    with listening(scripted):
        yield scripted
