"""Finds the JSON objects in the text of a model's reply."""

import re
from collections.abc import Iterator

from pydantic_core import from_json

MAX_CHARS = 50_000
"""Characters of a reply that are searched, from its first brace on."""
MAX_TRIED = 10
"""Opening braces that are tried as the beginning of an object."""


def objects(reply: str) -> Iterator[str | None]:
    """The text from each of the first opening braces to its closing one; None where MAX_CHARS hold no closing one.

    An object nested in another comes after it. The texts need not be valid JSON.
    """
    limit = reply.find("{") + MAX_CHARS
    for brace, _ in zip(re.finditer("{", reply[:limit]), range(MAX_TRIED), strict=False):
        yield _balanced(reply[brace.start() : limit])


def _balanced(text: str) -> str | None:
    """The text up to the brace that closes its first character; braces in strings don't count."""
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


def is_object(text: str) -> bool:
    """True where the whole text is a JSON object."""
    try:
        return isinstance(from_json(text), dict)
    except ValueError:
        return False
