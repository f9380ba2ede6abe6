"""What the shell runs around a command."""

import subprocess

from proctor.sandbox.shell import _line

TOKEN = "0123456789abcdef" * 2


def test_nothing_runs_after_the_mark_and_the_next_command_sees_the_status_of_the_last() -> None:
    lines = [b"exec 254>&1\n", _line("(exit 7)", TOKEN), _line("echo $?; set -x; false", TOKEN)]
    done = subprocess.run(["/bin/bash", "--norc"], input=b"".join(lines), capture_output=True, check=False)
    marks = [f"\n{TOKEN}:{status};\n" for status in (7, 1)]
    assert done.stdout.decode() == f"{marks[0]}7\n++ false\n{marks[1]}"
    assert done.stderr == b"+ __status=1\n"
