"""Parses the Python literals in replies, up to a length; nothing is ever evaluated."""

import ast
import warnings

MAX_LENGTH = 16_384
"""In characters. Python's parser limits the depth itself; a far longer text may overflow the stack of some versions."""


class NotALiteral(ValueError):
    """The text is no Python literal, or is too long or too deep."""


def parse(text: str) -> object:
    """The value of a Python literal; `"a", "b"` without brackets is a tuple, as in Python. Raises NotALiteral."""
    if len(text) > MAX_LENGTH:
        raise NotALiteral("too long")
    try:
        with warnings.catch_warnings(action="ignore"):
            value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
        raise NotALiteral(str(error)) from error
    return value
