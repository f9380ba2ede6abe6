"""Splits the cell of a puzzle file into key points."""

import re

_MARK = re.compile(r"^(?:\d+\.(?!\d)|-(?!\d))")
"""A leading number with its dot, or a dash; not the beginning of `1.5 metres` or `-5 degrees`."""


def key_points(cell: str) -> tuple[str, ...]:
    """The key points of a cell, one for each line that is not blank, stripped, without leading number or dash."""
    return tuple(point for line in lines(cell) if (point := _MARK.sub("", line.strip(), count=1).strip()))


def lines(cell: str) -> list[str]:
    """All lines of a cell, with blank ones, as the published code counts them."""
    return cell.split("\n")
