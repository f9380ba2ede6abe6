"""Keeps the beginning of a stream and finds the mark that ends a command's part of it. Pure."""

import re


class Capture:
    """The first `cap` bytes up to a mark `<mark>:<status>;`, in memory that does not grow with the stream."""

    def __init__(self, mark: bytes | None, cap: int) -> None:
        self._pattern = None if mark is None else re.compile(rb"\n?" + re.escape(mark) + rb":(\d{1,10});\n")
        self._margin = 0 if mark is None else len(mark) + 14
        self._cap = cap
        self._kept = bytearray()
        self._tail = b""
        self.truncated = False
        self.status: int | None = None
        """The number in the mark, once it was seen."""
        self.rest = b""
        """What came behind the mark."""

    def feed(self, chunk: bytes) -> bool:
        """Take the next bytes; True once the mark was seen."""
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
        """What was captured, also when the mark has not come."""
        return bytes(self._kept + self._tail)[: self._cap]

    def _keep(self, data: bytes) -> None:
        room = self._cap - len(self._kept)
        self.truncated = self.truncated or len(data) > room
        self._kept += data[:room]
