"""From a cell of key lines to key points."""

import re

_MARK = re.compile(r"^(?:\d+\.(?!\d)|-(?!\d))")
"""A leading number with its dot, or a dash; `1.5 metres` and `-5 degrees` begin with a figure."""


def key_points(cell: str) -> tuple[str, ...]:
    """The key points of a cell, one a line: stripped, without blank lines, leading numbers and dashes."""
    return tuple(point for line in lines(cell) if (point := _MARK.sub("", line.strip(), count=1).strip()))


def lines(cell: str) -> list[str]:
    """All lines of a cell, blank ones too: what the published code counts."""
    return cell.split("\n")
