"""Reads lines from standard input without blocking the event loop."""

import asyncio
import contextlib
import os
from collections.abc import Iterator


class TypedLines:
    """The lines of a terminal, a pipe or a file. After a cancelled read nothing waits for input."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read = b""
        self._ended = False

    async def next(self) -> str | None:
        """The next line without its end; None at the end of the input."""
        while b"\n" not in self._read and not self._ended:
            more = await self._more()
            self._read += more
            self._ended = not more
        if not self._read:
            self._ended = False  # a terminal goes on after Ctrl-D
            return None
        line, _, self._read = self._read.partition(b"\n")
        return line.rstrip(b"\r").decode(errors="replace")

    async def _more(self) -> bytes:
        """What can be read next; empty at the end of the input."""
        with _never_blocking(self._descriptor) as descriptor:
            while True:
                await _until_readable(descriptor)
                with contextlib.suppress(BlockingIOError):
                    return os.read(descriptor, 1 << 16)


@contextlib.contextmanager
def _never_blocking(descriptor: int) -> Iterator[int]:
    """A descriptor of the same input: Ctrl-C throws away what a terminal had to read, and a read of it would wait.

    A terminal is opened anew, since whether reads wait is shared by all processes that have it as standard input.
    """
    try:
        opened = os.open(os.ttyname(descriptor), os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:  # no terminal, or one that is not to be found in this file system
        yield descriptor
        return
    try:
        yield opened
    finally:
        os.close(opened)


async def _until_readable(descriptor: int) -> None:
    loop, readable = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(descriptor, readable.set)
    except PermissionError:  # a file: reading it never waits
        return
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)
