"""A command that is forked does as one that is started."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.forks.forker import STARTED
from tests.e2e.preloaded import Forked, _forks, preloaded
from tests.e2e.proctor import COMMAND, begin, environment, exits, proctor
from tests.faults.parts.farm import marked, processes
from tests.pace import until
from tests.support import working_in
from tests.tools_environment import NAME, write_distribution

PLAN = """\
agents: [{name: naive, builtin: naive}]
tasks: [{name: db-own, environment: db, parameters: {engine: sqlite}}]
"""


@pytest.mark.parametrize(
    "arguments",
    [("ls",), ("ls", "--json"), ("rm", "--older-than", "yesterday"), ("rm", "nope", "--yes"), ("show", "--help")],
)
def test_exit_code_and_output_are_those_of_a_command_that_is_started(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    started = subprocess.run(
        [*COMMAND, *arguments], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    forked = proctor(*arguments, cwd=tmp_path)
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)
    assert forked.stdout + forked.stderr


def test_a_fork_has_the_variables_that_it_is_given_and_the_next_has_not(tmp_path: Path) -> None:
    wrong = exits(2, "ls", cwd=tmp_path, PROCTOR_LOG_FORMAT="nonsense")
    assert "PROCTOR_LOG_FORMAT" in wrong.stderr
    assert proctor("ls", cwd=tmp_path).returncode == 0
    assert preloaded("ls", environment()) is preloaded("rm", environment(PROCTOR_USER="ann"))
    assert preloaded("ls", environment(PYTHONUTF8="1")) is None, "another Python: the command is started"
    assert preloaded("ls", environment(**STARTED)) is None
    assert preloaded("completion", environment()) is None


def test_folders_of_modules_may_be_added_but_hide_none(tmp_path: Path) -> None:
    added = environment(PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    write_distribution(tmp_path)
    assert preloaded("run", added) is not None
    plan = f"agents: [{{name: solved, builtin: reference}}]\ntasks: [{{name: {NAME}, environment: {NAME}}}]\n"
    (tmp_path / "plan.yaml").write_text(plan)
    exits(0, "run", "plan.yaml", "--limit", "1", "-q", cwd=tmp_path, PYTHONPATH=added["PYTHONPATH"])
    (tmp_path / "click.py").touch()
    assert preloaded("run", added) is None
    (tmp_path / "click.py").rename(tmp_path / "sitecustomize.py")
    assert preloaded("run", added) is None
    (tmp_path / "sitecustomize.py").unlink()
    assert preloaded("run", added) is not None
    (tmp_path / "proctor-0.0.1.dist-info").mkdir()
    assert preloaded("run", added) is None


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL])
def test_a_forked_command_is_signalled_and_waited_for_as_a_child(tmp_path: Path, end: signal.Signals) -> None:
    os.mkfifo(tmp_path / "plan.yaml")
    ends = []
    for variables in (STARTED, {}):
        process = begin("run", "plan.yaml", cwd=tmp_path, **variables)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        with (tmp_path / "plan.yaml").open("w"):  # it has begun, and reads
            assert process.poll() is None
            os.kill(process.pid, end)
        ends.append((process.communicate()[0], process.returncode))  # a read that began after the signal ends by now
        assert not Path(f"/proc/{process.pid}").exists()
    assert ends[0] == ends[1]


def test_a_forked_command_that_does_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "plan.yaml")
    monkeypatch.setattr("tests.e2e.proctor.slowly", lambda _: 0.1)
    with pytest.raises(subprocess.TimeoutExpired):
        proctor("run", "plan.yaml", cwd=tmp_path)
    assert working_in(tmp_path) == []
    monkeypatch.undo()
    assert proctor("ls", cwd=tmp_path).returncode == 0


def test_the_servers_of_a_forked_run_are_forked_and_none_outlives_it(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    client = begin("run", "plan.yaml", "--set", "epochs=100", "-q", cwd=tmp_path)
    until(lambda: len(forked_servers()) == 2)
    client.kill()
    until(lambda: not forked_servers())
    assert client.wait() == -signal.SIGKILL
    assert proctor("run", "plan.yaml", "--limit", "1", "-q", cwd=tmp_path).returncode == 0


def test_a_fork_and_the_servers_of_its_run_are_found_by_their_mark(tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN)
    with marked() as mark:
        client = begin("run", "plan.yaml", "--set", "epochs=100", "-q", cwd=tmp_path)
        assert isinstance(client, Forked)
        until(lambda: len(processes(mark)) == 3)
        client.kill()
        client.communicate()


def forked_servers() -> list[str]:
    """Those of all runs, by way of the processes between."""
    forkers = [_forks(turn).process.pid for turn in (0, 1)]
    return [server for forker in forkers for between in children(forker) for server in children(between)]


def children(process: int | str) -> list[str]:
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()
