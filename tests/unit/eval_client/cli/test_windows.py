"""On Windows the command says in one line that it does not run there."""

import subprocess
import sys

from tests.support import ROOT

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
