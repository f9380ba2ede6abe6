"""The observation of a statement's result: a list of tuples as Python prints it, cut at 800 characters."""

from collections.abc import Callable, Iterable

LIMIT = 800
"""Characters of a result that are shown."""
MARKER = "[TRUNCATED]"
NO_ROWS = "[]"


def of_rows(rows: Iterable[tuple[object, ...]], mask: Callable[[str], str] = str) -> str:
    """The text of `str(list(rows))`, masked and cut; reads no more rows than the text needs."""
    text = "["
    separator = ""
    for row in rows:
        text += separator + mask(repr(row))
        separator = ", "
        if len(text) > LIMIT:
            return cut(text)
    return cut(text + "]")


def of_error(number: int, state: str, message: str) -> str:
    """The text of a failed statement, as the Python client libraries of MySQL print it."""
    return cut(f"{number} ({state}): {message}")


def cut(text: str) -> str:
    """The text, or its first 800 characters and the marker."""
    return text if len(text) <= LIMIT else text[:LIMIT] + MARKER
