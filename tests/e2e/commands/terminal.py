"""Runs `proctor` on a terminal of its own."""

import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.proctor import COMMAND, environment
from tests.pace import slowly

ON_A_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)
"""Makes standard input the terminal whose Ctrl-C is a signal, and becomes the command that follows."""


@contextmanager
def on_a_terminal(*arguments: str, cwd: Path, **extra: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """`proctor ...` with a terminal of its own, whose Ctrl-C is a signal; the terminal's other end."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", ON_A_TERMINAL, *COMMAND, *arguments],
        cwd=cwd,
        env=environment(**extra),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    try:
        yield process, ours
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def read_until(terminal: int, text: str) -> str:
    """All that is printed up to a text, and at most until the terminal is closed."""
    read, give_up = "", time.monotonic() + slowly(60)
    while text not in read and time.monotonic() < give_up:
        try:
            read += os.read(terminal, 1 << 16).decode()
        except OSError:  # the program has ended
            break
    assert text in read, read
    return read
