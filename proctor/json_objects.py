"""The JSON objects among the words of a model's reply."""

import re
from collections.abc import Iterator

MAX_CHARS = 50_000
"""Of a reply, from its first brace, that are searched."""
MAX_TRIED = 10
"""Braces that may begin an object."""


def objects(reply: str) -> Iterator[str | None]:
    """What begins at each of the first braces, up to where that is closed; None where it is not, within MAX_CHARS.

    An object within another comes after it.
    """
    limit = reply.find("{") + MAX_CHARS
    for brace, _ in zip(re.finditer("{", reply[:limit]), range(MAX_TRIED), strict=False):
        yield _balanced(reply[brace.start() : limit])


def _balanced(text: str) -> str | None:
    """The text up to where the brace that it begins with is closed, strings left aside."""
    depth, quoted, escaped = 0, False, False
    for position, character in enumerate(text):
        if quoted:
            quoted, escaped = escaped or character != '"', not escaped and character == "\\"
        elif character == '"':
            quoted = True
        elif character in "{}":
            depth += 1 if character == "{" else -1
            if depth == 0:
                return text[: position + 1]
    return None
