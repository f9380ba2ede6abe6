"""What commands say and refuse, where no test of a whole process is needed."""

import subprocess
import sys
from collections.abc import Coroutine, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from eval_client.cli import demo
from eval_client.cli import play as playing
from eval_client.cli.main import proctor
from eval_client.core.progress import RunResult
from eval_client.plan.plan import Plan
from eval_client.run.request import RunRequest
from eval_client.store.connection import connect
from eval_client.store.store import Store
from proctor import event_loop, registry
from tests.support import ROOT
from tests.toy_environment import installed

ON_WINDOWS = """
import sys
for name in ("fcntl", "grp", "pwd", "resource", "termios"):
    sys.modules[name] = None  # not there on Windows
from eval_client.cli.main import main
sys.platform = "win32"
main()
"""


def test_windows_is_refused_with_one_line() -> None:
    ended = subprocess.run([sys.executable, "-c", ON_WINDOWS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "Error: Proctor runs on Linux and macOS; on Windows, use it in WSL (Windows Subsystem for Linux)\n"
    )


def test_ctrl_c_while_the_report_waits_for_the_store_is_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(main: Coroutine[None, None, RunResult]) -> RunResult:
        main.close()
        return RunResult(None, {})

    def show_result(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(event_loop, "run", run)
    monkeypatch.setattr(playing, "show_result", show_result)
    plan = Plan.model_validate({"agents": [{"name": "reference"}], "tasks": [{"name": "t", "environment": "db"}]})
    order = RunRequest(plan, "plan.yaml", Store(connect("sqlite://"), "r"), tmp_path / "r", resume=False)
    with pytest.raises(SystemExit) as left:
        playing.play(order, quiet=True)
    assert left.value.code == 130
    assert "resume" in capsys.readouterr().err


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "installed").mkdir()
    with installed(tmp_path / "installed"):
        yield


def test_check_says_what_is_left_out_and_ends_well() -> None:
    done = CliRunner().invoke(proctor, ["check", "toy-solved"])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert "ok       the reference scores 1" in lines
    assert "left out the naive policy ends with a score: the environment has no naive policy" in lines
    assert "left out the random policy ends with a score: the environment has no random policy" in lines


def test_the_demo_plays_each_environment_with_the_policies_that_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[RunRequest] = []
    monkeypatch.setattr(demo, "play", lambda order, **options: played.append(order))
    monkeypatch.setattr(registry, "names", lambda: ["toy-bare", "toy-letters", "toy-solved"])
    done = CliRunner().invoke(proctor, ["demo"])
    assert done.exit_code == 0, done.output
    assert played[0].plan.pairs() == (
        ("reference", "toy-letters"),
        ("reference", "toy-solved"),
        ("naive", "toy-letters"),
        ("random", "toy-letters"),
    )
    assert "demo: toy-bare is left out: it has no policy for a built-in agent to play by" in done.output
    assert "demo: toy-solved plays 3 samples of its own; it has no naive and no random policy" in done.output
