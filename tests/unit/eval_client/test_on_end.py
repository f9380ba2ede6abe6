"""A command that is run when a run ends is bounded in time, and reads no shell's syntax."""

import os
import time
from pathlib import Path

from eval_client.on_end import run_on_end
from tests.pace import slowly

SLOW = """\
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open("pids", "w").write(f"{child.pid}")
time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_a_command_that_takes_too_long_is_killed_with_its_children(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    words = ["sh", "-c", f"cd {tmp_path}; exec python slow.py"]
    failed = run_on_end(words, {}, longest_s=slowly(3))
    assert failed is not None
    assert "sh: killed, as it took longer than" in failed
    child = int((tmp_path / "pids").read_text())
    give_up = time.monotonic() + slowly(10)
    while is_alive(child):
        assert time.monotonic() < give_up
        time.sleep(0.05)


def test_words_are_arguments_and_facts_are_variables(tmp_path: Path) -> None:
    code = 'import os, sys; open(sys.argv[1], "w").write(os.environ["FACT"] + sys.argv[2])'
    assert run_on_end(["python", "-c", code, str(tmp_path / "out"), "$HOME; ls"], {"FACT": "f "}) is None
    assert (tmp_path / "out").read_text() == "f $HOME; ls"
    assert "FACT" not in os.environ


def test_a_command_that_fails_is_told_with_its_exit_code() -> None:
    assert run_on_end(["false"], {}) == "false: exit code 1"
    assert run_on_end(["/"], {}) == "/: Permission denied"
