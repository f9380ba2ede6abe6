"""Parses the Python literals in replies, up to a length; nothing is ever evaluated."""

import ast
import builtins
import contextlib
import re
import warnings

MAX_LENGTH = 16_384
"""In characters. Python's parser limits the depth itself; a far longer text may overflow the stack of some versions."""

_ENDS = 20
"""Brackets that are tried as the end of a list."""
_SKIPS_OR_BINDS = (ast.IfExp, ast.BoolOp, ast.Compare, ast.Lambda, ast.comprehension, ast.NamedExpr)
"""Expressions in which a name may be bound, or not be looked up."""


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


def leading_list(text: str) -> str | None:
    """The list that a text begins with, up to the bracket that ends it; to the first one where it has no literals."""
    ends = [found.end() for _, found in zip(range(_ENDS), re.finditer("]", text[:MAX_LENGTH]), strict=False)]
    for end in ends:
        with contextlib.suppress(NotALiteral):
            parse(text[:end])
            return text[:end]
    return text[: ends[0]] if ends else None


def fails_in_eval(text: str) -> bool:
    """Whether `eval` surely raises for a text that `parse` refuses: it is no expression, or it uses an unknown name."""
    if len(text) > MAX_LENGTH:
        return False
    try:
        with warnings.catch_warnings(action="ignore"):
            nodes = tuple(ast.walk(ast.parse(text, mode="eval")))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return True
    unknown = any(isinstance(node, ast.Name) and not hasattr(builtins, node.id) for node in nodes)
    return unknown and not any(isinstance(node, _SKIPS_OR_BINDS) for node in nodes)
