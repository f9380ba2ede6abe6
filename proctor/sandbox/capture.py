"""Captures the beginning of a command's output, up to the mark that ends it in the stream. Pure."""

import re


class Capture:
    """The first `cap` bytes before a mark `<mark>:<status>;`, in memory that does not grow with the stream."""

    def __init__(self, mark: bytes | None, cap: int) -> None:
        self._pattern = None if mark is None else re.compile(rb"\n?" + re.escape(mark) + rb":(\d{1,10});\n")
        self._margin = 0 if mark is None else len(mark) + 14
        self._cap = cap
        self._kept = bytearray()
        self._tail = b""
        self.truncated = False
        self.status: int | None = None
        """The status in the mark; None before the mark."""
        self.rest = b""
        """The bytes after the mark."""

    def feed(self, chunk: bytes) -> bool:
        """Add the next bytes; True once the mark was found."""
        data = self._tail + chunk
        found = self._pattern.search(data) if self._pattern else None
        if found:
            self._keep(data[: found.start()])
            self._tail, self.rest, self.status = b"", data[found.end() :], int(found[1])
            return True
        split = max(0, len(data) - self._margin)
        self._keep(data[:split])
        self._tail = data[split:]
        return False

    def output(self) -> bytes:
        """The captured bytes, also before the mark."""
        return bytes(self._kept + self._tail)[: self._cap]

    def _keep(self, data: bytes) -> None:
        room = self._cap - len(self._kept)
        self.truncated = self.truncated or len(data) > room
        self._kept += data[:room]
