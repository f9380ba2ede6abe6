"""Runs `proctor` on a terminal of its own."""

import codecs
import os
import pty
import select
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


class Terminal:
    """Our end of a terminal: what a program prints there, read text by text."""

    def __init__(self, end: int) -> None:
        self._end = end
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._unread = ""

    def type(self, keys: bytes) -> None:
        """Type."""
        os.write(self._end, keys)

    def until(self, text: str) -> str:
        """What is printed up to a text and with it; what follows is left for the next time. The text must come."""
        give_up = time.monotonic() + slowly(60)
        while text not in self._unread:
            left_s = max(0.0, give_up - time.monotonic())
            assert select.select([self._end], [], [], left_s)[0], f"no {text!r} in: {self._unread}"
            try:
                self._unread += self._decoder.decode(os.read(self._end, 1 << 16))
            except OSError:
                raise AssertionError(f"the program has ended; no {text!r} in: {self._unread}") from None
        before, _, self._unread = self._unread.partition(text)
        return before + text

    def rest(self) -> str:
        """What is printed up to the end of the program."""
        while True:
            try:
                self._unread += self._decoder.decode(os.read(self._end, 1 << 16))
            except OSError:
                return self._unread


@contextmanager
def on_a_terminal(*arguments: str, cwd: Path, **extra: str) -> Iterator[tuple[subprocess.Popen[bytes], Terminal]]:
    """`proctor ...` with a terminal of its own, whose Ctrl-C is a signal."""
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
        yield process, Terminal(ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
