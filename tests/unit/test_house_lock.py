"""The lock file pins everything that is declared, and names no place to get it from."""

import re
import tomllib

from tests.support import ROOT

LINES = [
    line for line in (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines() if not line.startswith("#")
]
PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)==([0-9][A-Za-z0-9.+!]*)(; [a-z_]+ (==|!=|<|>=) '[A-Za-z0-9.]+')?")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared() -> set[str]:
    with (ROOT / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    extras = project["project"]["optional-dependencies"].values()
    requirements = [
        *project["build-system"]["requires"],
        *project["project"]["dependencies"],
        *(requirement for extra in extras for requirement in extra),
    ]
    names = {normal(re.split(r"[\s\[<>=!~;]", requirement)[0]) for requirement in requirements}
    return names - {"proctor"}


def test_every_line_is_one_pinned_version_and_no_address() -> None:
    assert [line for line in LINES if not PIN.fullmatch(line)] == []


def test_no_package_is_pinned_twice() -> None:
    names = [normal(line.partition("==")[0]) for line in LINES]
    assert len(names) == len(set(names))


def test_every_declared_dependency_is_pinned() -> None:
    assert declared() - {normal(line.partition("==")[0]) for line in LINES} == set()


def test_what_only_some_systems_have_carries_its_marker() -> None:
    assert any(re.fullmatch(r"uvloop==\S+; platform_system != 'Windows'", line) for line in LINES)
