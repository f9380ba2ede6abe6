"""Reads lines from standard input without blocking the event loop."""

import asyncio
import os


class TypedLines:
    """The lines of a terminal, a pipe or a file. After a cancelled read nothing waits for input."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read = b""
        self._ended = False

    async def next(self) -> str | None:
        """The next line without its end; None at the end of the input."""
        while b"\n" not in self._read and not self._ended:
            await self._until_readable()
            more = os.read(self._descriptor, 1 << 16)
            self._read += more
            self._ended = not more
        if not self._read:
            self._ended = False  # a terminal goes on after Ctrl-D
            return None
        line, _, self._read = self._read.partition(b"\n")
        return line.rstrip(b"\r").decode(errors="replace")

    async def _until_readable(self) -> None:
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        try:
            loop.add_reader(self._descriptor, readable.set)
        except PermissionError:  # a file: reading it never waits
            return
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._descriptor)
