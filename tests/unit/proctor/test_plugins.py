"""Commands of packages: found by entry point; those that are gone say what took their place."""

from collections.abc import Sequence
from importlib.metadata import EntryPoint

import click
import pytest
from click.testing import CliRunner

from eval_client.cli.main import GONE, proctor
from proctor import registry


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
        EntryPoint("toy", "tests.unit.proctor.test_plugins:toy", registry.COMMANDS),
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
