"""Environments and commands are found by entry points; the error for a broken one names the fix."""

import importlib
import importlib.metadata
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from eval_client.cli.main import GONE, proctor
from proctor import registry
from proctor.environment import Environment

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a package with one entry point, and maybe one module, on the import path."""
    monkeypatch.syspath_prepend(tmp_path)

    def put(package: str, entry: str, module: str = "", source: str = "", extra: str = "") -> None:
        metadata = tmp_path / f"{package}-1.0.dist-info"
        metadata.mkdir()
        provides = f"Provides-Extra: {extra}\n" if extra else ""
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n{provides}")
        (metadata / "entry_points.txt").write_text(f"[{registry.ENVIRONMENTS}]\n{entry}\n")
        if module:
            (tmp_path / f"{module}.py").write_text(source)
            monkeypatch.delitem(sys.modules, module, raising=False)
        importlib.invalidate_caches()

    return put


def test_listing_imports_nothing(install: Install) -> None:
    install("tester", "boom = registry_boom:Boom", "registry_boom", "raise RuntimeError('imported')")
    assert "boom" in registry.names()
    with pytest.raises(RuntimeError, match="imported"):
        registry.load("boom")


def test_the_metadata_of_the_packages_is_read_once(install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    read, readings = importlib.metadata.entry_points, list[dict[str, str]]()

    def entry_points(**chosen: str) -> object:
        readings.append(chosen)
        return read(**chosen)

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    install("tester", "once = registry_once:Once", "registry_once", "Once = 3")
    assert "once" in registry.names()
    for _ in range(2):
        with pytest.raises(ImportError, match="not an Environment class"):
            registry.load("once")
    assert readings == [{}], "for all groups at once"


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(registry.UnknownEnvironment, match=r"unknown environment 'chess'; installed are: .*db.*os"):
        registry.load("chess")


def test_an_environment_class_is_returned(install: Install) -> None:
    source = "from proctor.environment import Environment\nclass Mine(Environment):\n    pass\n"
    install("tester", "mine = registry_mine:Mine", "registry_mine", source)
    assert issubclass(registry.load("mine"), Environment)


@pytest.mark.parametrize(
    ("entry", "source", "message"),
    [
        ("bad = registry_bad:Bad", "Bad = 3\n", r"'registry_bad:Bad' of tester is not an Environment class"),
        ("bad = registry_bad:Bad", "", r"'registry_bad:Bad' of tester can't be found: .*no attribute 'Bad'"),
        ("bad = registry_absent:Bad", "", r"No module named 'registry_absent'; .* pip install 'tester'$"),
        ("bad = registry_bad:Bad", "import no_such_module\n", r"No module named 'no_such_module'; .* 'tester'$"),
        ("web = registry_bad:Bad", "import no_such_module\n", r"pip install 'tester\[web\]'"),
    ],
)
def test_a_broken_package_is_named(install: Install, entry: str, source: str, message: str) -> None:
    install("tester", entry, "registry_bad", source, extra="web")
    with pytest.raises(ImportError, match=message):
        registry.load(entry[:3])


def test_a_name_offered_by_two_packages_is_refused(install: Install) -> None:
    install("tester", "twin = registry_one:One")
    install("other", "twin = registry_two:Two")
    with pytest.raises(ImportError, match="offered twice, by registry_one:One of tester and registry_two:Two of other"):
        registry.load("twin")


@pytest.mark.parametrize("name", registry.names())
def test_the_scales_beside_an_environment_are_its_own(name: str) -> None:
    assert registry.scales(name) == registry.load(name).scales


@click.group()
def toy() -> None:
    """Commands of a toy."""


@toy.command()
def scores() -> None:
    """Print a score."""
    click.echo("0.5")


@pytest.fixture
def _installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("toy", "tests.unit.proctor.test_registry:toy", registry.COMMANDS),
        EntryPoint("bare", "no_such_package.commands:bare", registry.COMMANDS),
    ]

    def entry_points(group: str, name: str | None = None) -> Sequence[EntryPoint]:
        return [point for point in points if point.group == group and name in (None, point.name)]

    monkeypatch.setattr(registry, "entry_points", entry_points)


@pytest.mark.usefixtures("_installed")
def test_a_command_of_a_package_is_called_and_one_that_lacks_a_package_names_it() -> None:
    done = CliRunner().invoke(proctor, ["toy", "scores"])
    assert (done.exit_code, done.output) == (0, "0.5\n")
    no_package = CliRunner().invoke(proctor, ["bare"])
    assert no_package.exit_code == 2
    assert "No module named 'no_such_package'; install what it needs: pip install " in no_package.output


@pytest.mark.usefixtures("_installed")
def test_the_help_lists_them() -> None:
    output = CliRunner().invoke(proctor, ["--help"]).output
    assert "Commands of environments" in output
    assert "proctor toy --help" in output


@pytest.mark.parametrize("name", GONE)
def test_a_command_of_the_version_before_is_answered_by_one_line(name: str) -> None:
    done = CliRunner().invoke(proctor, [*name.split(), "FOLDER", "--seed", "1"])
    (line,) = [line for line in done.output.splitlines() if line.startswith("Error: ")]
    told = name if name.startswith("--") else f"proctor {name}"
    assert (done.exit_code, line) == (2, f"Error: `{told}` is gone: {GONE[name]}")
