"""A folder of the user's that has the name of one of our packages."""

import os
import sys
from pathlib import Path

import pytest

from tests.e2e.proctor import environment, proctor
from tests.pace import slowly
from tests.support import finished

INSTALLED = Path(sys.executable).parent / "proctor"
PLAN = """\
agents: [{name: naive, builtin: naive}]
tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]
"""


def put(folder: Path, name: str) -> Path:
    """A package that must not be imported."""
    package = folder / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    return package


def test_the_installed_command_imports_nothing_from_the_working_directory(tmp_path: Path) -> None:
    for name in ("environments", "task_server", "proctor", "aiohttp"):
        put(tmp_path, name)
    (tmp_path / "plan.yaml").write_text(PLAN)
    played = finished(
        [str(INSTALLED), "run", "plan.yaml", "--limit", "1", "-q"], cwd=tmp_path, env=environment(), timeout=slowly(120)
    )
    assert played.returncode == 0, played.stderr


@pytest.mark.parametrize("name", ["environments", "agent_server", "proctor"])
def test_a_package_on_the_path_that_hides_ours_is_named(tmp_path: Path, name: str) -> None:
    package = put(tmp_path / "mine", name)
    path = os.pathsep.join([str(tmp_path / "mine"), os.environ.get("PYTHONPATH", "")])
    for arguments in (("envs",), ("run", "plan.yaml"), ("--version",)):
        refused = proctor(*arguments, cwd=tmp_path, PYTHONPATH=path)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert refused.stderr.startswith(f"Error: {package} shadows the package {name!r} of Proctor in ")
        assert refused.stderr.count("\n") == 1


def test_from_python_the_error_names_it_too(tmp_path: Path) -> None:
    package = put(tmp_path, "environments")
    (package / "__init__.py").write_text("")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    played = finished(
        [sys.executable, "-c", "import proctor; proctor.play('db', 'naive')"],
        cwd=tmp_path,
        env=environment(PYTHONPATH=path),
        timeout=slowly(60),
    )
    assert played.returncode == 1
    assert f"{package} has no module 'environments.database' (of proctor)" in played.stderr
