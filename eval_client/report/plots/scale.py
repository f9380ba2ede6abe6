"""Pure: axes: from values to coordinates, with round ticks."""

import math
from collections.abc import Iterable
from typing import NamedTuple

from eval_client.report.plots.svg import Frame, line, words

WIDE_SPAN = 20
"""Values that span over more than this factor get a logarithmic axis."""


class Scale(NamedTuple):
    """A linear or logarithmic axis from `low` to `high`, drawn from coordinate `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """The coordinate of a value; what lies outside the axis is drawn at its end."""
        held = min(max(value, self.low), self.high)
        low, high, at = (math.log(each) if self.logarithmic else each for each in (self.low, self.high, held))
        share = (at - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values on the axis."""
        if self.logarithmic:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            every = max(1, (last - first) // 6)
            powers = [10.0**power for power in range(first, last + 1, every)]
            return [power for power in powers if self.low <= power * 1.0001 and power <= self.high * 1.0001]
        step = _round_step((self.high - self.low) / 5)
        first = math.ceil(self.low / step - 1e-9)
        return [place * step for place in range(first, math.floor(self.high / step + 1e-9) + 1)]


def linear(values: Iterable[float], start: float, end: float) -> Scale:
    """A linear axis with round ends that holds the values and 0."""
    held = [*values, 0.0]
    low, high = min(held), max(held)
    step = _round_step((high - low) / 5 or 0.2)
    return Scale(
        math.floor(low / step + 1e-9) * step, max(math.ceil(high / step - 1e-9) * step, low + step), start, end
    )


def spanning(values: Iterable[float], start: float, end: float) -> Scale:
    """An axis of amounts: logarithmic where those above 0 span over a factor of 20 and none is 0, else from 0."""
    held = list(values)
    if held and min(held) > 0 and max(held) > WIDE_SPAN * min(held):
        low, high = (10.0 ** math.floor(math.log10(min(held))), 10.0 ** math.ceil(math.log10(max(held))))
        return Scale(low, high, start, end, logarithmic=True)
    return linear(held, start, end)


def amount(value: float) -> str:
    """A number on an axis: 0.25, 1,500, 2.5M."""
    if abs(value) >= 1e6:
        return f"{value / 1e6:.4g}M"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{round(value, 10) + 0.0:.3g}"


def horizontal_axis(scale: Scale, frame: Frame, title: str) -> str:
    """Ticks, a grid and a title below the area."""
    parts = []
    for tick in scale.ticks():
        x = scale.at(tick)
        parts += [
            line(x, frame.top, x, frame.bottom, "grid"),
            words(x, frame.bottom + 15, amount(tick), anchor="middle", kind="tick"),
        ]
    parts.append(words((frame.left + frame.right) / 2, frame.bottom + 31, title, anchor="middle", kind="axis"))
    return "".join(parts)


def vertical_axis(scale: Scale, frame: Frame, title: str) -> str:
    """Ticks and a grid left of the area, with the title above them."""
    parts = [words(2, frame.top - 20, title, kind="axis")]
    for tick in scale.ticks():
        y = scale.at(tick)
        parts += [
            line(frame.left, y, frame.right, y, "grid"),
            words(frame.left - 6, y + 4, amount(tick), anchor="end", kind="tick"),
        ]
    return "".join(parts)


def _round_step(step: float) -> float:
    """The next of 1, 2, 5, 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= step * (1 - 1e-9))
