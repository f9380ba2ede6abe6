"""The lock file pins everything that is declared, and names no place to get it from."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from proctor.registry import SEPARATE
from tests.pace import slowly
from tests.support import ROOT

LINES = [
    line for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
]
PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([0-9][A-Za-z0-9.+!]*)(; [a-z_]+ (==|!=|<|>=) '[A-Za-z0-9.]+')?")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


PYTHON = f"""#!{sys.executable}
'''A Python whose pip knows four packages: `dev` needs two, `textworld` these and two more.'''
import json, os, pathlib, shutil, sys

given = sys.argv[1:]
log = pathlib.Path(os.environ["INSTALLED"])
if given[:2] == ["-m", "venv"]:
    (pathlib.Path(given[-1]) / "bin").mkdir(parents=True)
    shutil.copy(sys.argv[0], pathlib.Path(given[-1]) / "bin" / "python")
elif given[:3] == ["-m", "pip", "freeze"]:
    pins = ["aiohttp==1", "uvloop==2"] + ["spacy==3", "textworld==4"] * ("textworld" in log.read_text())
    print("\\n".join(pins))
elif "--report" in given:
    new = [("proctor", "0", "dir_info"), ("textworld", "4", "archive_info"), ("spacy", "3", "archive_info")]
    found = [dict(metadata=dict(name=name, version=which), download_info={{kind: {{}}}}) for name, which, kind in new]
    pathlib.Path(given[given.index("--report") + 1]).write_text(json.dumps(dict(install=found)))
elif given[:3] == ["-m", "pip", "install"]:
    log.write_text(given[-1])
else:
    os.execv({sys.executable!r}, [{sys.executable!r}, *given])
"""


PROJECT, *PACKAGES = (
    tomllib.loads(path.read_text(encoding="utf-8"))
    for path in (ROOT / "pyproject.toml", *sorted(ROOT.glob("packages/*/pyproject.toml")))
)
EXTRAS: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]


def declared() -> set[str]:
    requirements = [
        *PROJECT["build-system"]["requires"],
        *(requirement for each in (PROJECT, *PACKAGES) for requirement in each["project"]["dependencies"]),
        *(requirement for extra in EXTRAS.values() for requirement in extra),
    ]
    names = {normal(re.split(r"[\s\[<>=!~;]", requirement)[0]) for requirement in requirements}
    return names - {each["project"]["name"] for each in (PROJECT, *PACKAGES)}


def test_every_line_is_one_pinned_version_and_no_address() -> None:
    assert [line for line in LINES if not PIN.fullmatch(line)] == []


def test_no_package_is_pinned_twice() -> None:
    names = [normal(line.partition("==")[0]) for line in LINES]
    assert len(names) == len(set(names))


def test_every_declared_dependency_is_pinned() -> None:
    assert declared() - {normal(line.partition("==")[0]) for line in LINES} == set()


def test_what_only_some_systems_have_carries_its_marker() -> None:
    assert any(re.fullmatch(r"uvloop==\S+; platform_system != 'Windows'", line) for line in LINES)


@pytest.fixture
def made(tmp_path: Path) -> tuple[list[str], str]:
    """The lines that `make lock` writes beside that Python, and what it has installed for them."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    python, installed = tmp_path / "python", tmp_path / "installed"
    python.write_text(PYTHON, encoding="utf-8")
    python.chmod(0o755)
    surroundings = {**os.environ, "PYTHON": str(python), "INSTALLED": str(installed)}
    subprocess.run(
        [tmp_path / "scripts" / "lock.sh"], env=surroundings, check=True, capture_output=True, timeout=slowly(60)
    )
    lines = (tmp_path / "requirements.lock").read_text(encoding="utf-8").splitlines()
    return lines[1:], installed.read_text(encoding="utf-8")


def test_the_lock_pins_what_is_only_for_cross_checks_without_installing_it(made: tuple[list[str], str]) -> None:
    lines, installed = made
    assert lines == ["aiohttp==1", "spacy==3", "textworld==4", "uvloop==2; platform_system != 'Windows'"]
    assert installed == ".[dev]"


def test_what_is_only_for_cross_checks_belongs_to_no_other_extra() -> None:
    assert [name for name, needs in EXTRAS.items() if "textworld" in " ".join(needs)] == ["textworld"]


def test_packages_of_their_own_have_our_version_and_are_our_extras() -> None:
    version, licence = PROJECT["project"]["version"], (ROOT / "LICENSE").read_bytes()
    for each in PACKAGES:
        name = each["project"]["name"]
        extra = name.removeprefix("proctor-")
        assert each["project"]["version"] == version
        assert f"proctor=={version}" in each["project"]["dependencies"]
        assert EXTRAS[extra] == [f"{name}=={version}"]
        assert (ROOT / "packages" / extra / "LICENSE").read_bytes() == licence


def test_what_packages_offer_is_what_names_their_extras() -> None:
    offered = {
        each["project"]["name"].removeprefix("proctor-"): {
            group: tuple(sorted(entries))
            for group, entries in each["project"]["entry-points"].items()
            if group != "proctor.wires"  # only a command of the same package reads these
        }
        for each in PACKAGES
    }
    assert offered == {
        extra: {group: tuple(sorted(names)) for group, names in groups.items()} for extra, groups in SEPARATE.items()
    }
