"""Finds where the values of a large JSON text begin and end, without decoding or storing them."""

import json
import re
from collections.abc import Iterator
from mmap import mmap

_QUOTED = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRING = re.compile(_QUOTED, re.DOTALL)
_PLAIN = rb'(?:[^"{}\[\]]++|' + _QUOTED + rb")*+"
_BRACKET = re.compile(_PLAIN + rb"([{}\[\]])", re.DOTALL)
_FLAT = re.compile(rb"(?:" + _PLAIN + rb"(?:\{" + _PLAIN + rb"\}|\[" + _PLAIN + rb"\]))*+", re.DOTALL)
"""Objects and lists without others in them, and what stands before each."""
_SCALAR = re.compile(rb"[^\s,\]}]++")
_SPACE = re.compile(rb"[ \t\r\n]*+")


class JsonReader:
    """A reader at the byte offset `at` of a JSON text. A loop over `items` or `members` must read or skip each value.

    Raises ValueError with the byte offset if the text is not JSON; of skipped values only the brackets are checked.
    """

    def __init__(self, text: bytes | mmap) -> None:
        self._text = text
        self.at = 0
        self._space()

    def items(self) -> Iterator[int]:
        """Yields the offset of each item of the list that begins at `at`."""
        self._take(b"[")
        more = not self._taken(b"]")
        while more:
            yield self.at
            more = self._more(b"]")

    def members(self) -> Iterator[str]:
        """Yields the name of each member of the object that begins at `at`, and moves `at` to the member's value."""
        self._take(b"{")
        more = not self._taken(b"}")
        while more:
            start = self.at
            self._match(_STRING)
            name = json.loads(self._text[start : self.at])
            self._space()
            self._take(b":")
            yield name
            more = self._more(b"}")

    def skip(self) -> tuple[int, int]:
        """Moves past the value that begins at `at`. Returns its start and end."""
        start = self.at
        first = self._text[start : start + 1]
        if first == b'"':
            self._match(_STRING)
        elif first in (b"{", b"["):
            self._skip_nested()
        else:
            self._match(_SCALAR)
        return start, self.at

    def text(self, start: int, end: int) -> bytes:
        """The bytes from `start` to before `end`."""
        return self._text[start:end]

    def end(self) -> None:
        """Raises ValueError if more than blanks follows."""
        self._space()
        if self.at != len(self._text):
            raise ValueError(f"byte {self.at}: more follows the end of the value")

    def _skip_nested(self) -> None:
        depth = 0
        while True:
            bracket = self._match(_BRACKET)[1]
            depth += 1 if bracket in b"{[" else -1
            if not depth:
                return
            self._match(_FLAT)

    def _more(self, close: bytes) -> bool:
        self._space()
        if self._taken(close):
            return False
        self._take(b",")
        return True

    def _taken(self, character: bytes) -> bool:
        if self._text[self.at : self.at + 1] != character:
            return False
        self.at += 1
        return True

    def _take(self, character: bytes) -> None:
        if not self._taken(character):
            raise ValueError(f"byte {self.at}: not JSON as expected; {character.decode()!r} should be here")
        self._space()

    def _space(self) -> None:
        self._match(_SPACE)

    def _match(self, pattern: re.Pattern[bytes]) -> re.Match[bytes]:
        match = pattern.match(self._text, self.at)
        if match is None:
            raise ValueError(f"byte {self.at}: not JSON; the text may be cut off")
        self.at = match.end()
        return match
