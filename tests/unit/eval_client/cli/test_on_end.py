"""A command that is run when a run ends is bounded in time, and reads no shell's syntax."""

import os
import subprocess
from pathlib import Path

import pytest

from eval_client.cli.ending import run_on_end
from tests.pace import until

SLOW = """\
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("new", "w").write(f"{child.pid}")
os.rename("new", "pid")
time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_a_command_that_takes_too_long_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    words = ["sh", "-c", f"cd {tmp_path}; exec python slow.py"]
    pid, wait = tmp_path / "pid", subprocess.Popen.wait

    def wait_for_child(process: "subprocess.Popen[bytes]", timeout: float | None = None) -> int:
        until(pid.exists)
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", wait_for_child)
    failed = run_on_end(words, {}, longest_s=0.05)
    assert failed is not None
    assert "sh: killed, as it took longer than 0.05 s" in failed
    child = int(pid.read_text())
    until(lambda: not is_alive(child))


def test_words_are_arguments_and_facts_are_variables(tmp_path: Path) -> None:
    code = 'import os, sys; open(sys.argv[1], "w").write(os.environ["FACT"] + sys.argv[2])'
    assert run_on_end(["python", "-c", code, str(tmp_path / "out"), "$HOME; ls"], {"FACT": "f "}) is None
    assert (tmp_path / "out").read_text() == "f $HOME; ls"
    assert "FACT" not in os.environ


def test_the_token_of_the_servers_of_the_run_is_not_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROCTOR_LOCAL_TOKEN", "secret")
    assert run_on_end(["sh", "-c", f"env > {tmp_path}/out"], {"FACT": "f"}) is None
    told = (tmp_path / "out").read_text()
    assert "FACT=f" in told
    assert "PROCTOR_LOCAL_TOKEN" not in told


def test_a_command_that_fails_is_told_with_its_exit_code() -> None:
    assert run_on_end(["false"], {}) == "false: exit code 1"
    assert run_on_end(["/"], {}) == "/: Permission denied"
