"""Numbers of comparisons as text."""

import re

from eval_client.core.statistics.samples import Interval
from proctor.tables.table import MISSING


def plain(value: float) -> str:
    """Three decimals: .361, 1.000."""
    return _short(f"{round(value, 3) + 0.0:.3f}")


def signed(value: float) -> str:
    """A difference with three decimals and its sign: +.097, -1.000."""
    return _short(f"{round(value, 3) + 0.0:+.3f}")


def interval_text(interval: Interval) -> str:
    """Both ends of an interval of differences."""
    return f"{signed(interval[0])} .. {signed(interval[1])}"


def range_text(ends: Interval | None) -> str:
    """Both ends of an interval of differences, with the zeros before the points; a dash for none."""
    return MISSING if ends is None else f"{ends[0]:+.3f} .. {ends[1]:+.3f}"


def level_text(alpha: float) -> str:
    """What an interval of this level is called: 95 % interval."""
    return f"{100 * (1 - alpha):g} % interval"


def p_text(p: float) -> str:
    """A p-value with four decimals, or <.0001."""
    return "<.0001" if p < 0.0001 else _short(f"{p:.4f}")


def _short(number: str) -> str:
    """Without the zero before the point."""
    return re.sub(r"^([+-]?)0\.", r"\1.", number)
