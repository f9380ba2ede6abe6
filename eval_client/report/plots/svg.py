"""Pure: SVG text. Every text is escaped; colours are `currentColor` and classes of `plots.css`."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from rich.cells import cell_len, set_cell_size

from proctor.observability.redaction import visible
from proctor.tables.table import ResultTable

FONT_PX = 12

CHARACTER_PX = 7.2
"""The width of a wide digit or a usual letter at this size; a text is given this room for each cell."""

WIDE_SPAN = 20
"""Values that span over more than this factor get a logarithmic axis."""

STYLESHEET = Path(__file__).with_name("plots.css")
"""The rules that colour plots. They use custom properties and have a fallback for each."""


class Plot(NamedTuple):
    """A drawn plot."""

    title: str
    svg: str
    table: ResultTable
    """The same figures; its notes say how to read them."""


Address = Callable[..., str]
"""(agent, task, further conditions by name) -> where a mark leads to: a pair's trials; empty for nowhere."""


def nowhere(*_pair: str, **_selected: str) -> str:
    """A mark that is no link."""
    return ""


class Frame(NamedTuple):
    """The size of a picture, and the area between its axes."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    """`left` to `bottom` are coordinates, not margins."""


def shown(text: str) -> str:
    """A text with what XML can't hold, and what would control a terminal or the direction of text, as escapes."""
    whole = visible(text).encode("utf-8", "backslashreplace").decode()
    return whole.replace("\ufffe", r"\ufffe").replace("\uffff", r"\uffff")


def number(value: float) -> str:
    """A coordinate with at most one decimal."""
    return f"{round(value, 1) + 0.0:g}" if abs(value) < 1e5 else f"{value:.0f}"


def element(name: str, attributes: dict[str, str | float], *children: str) -> str:
    """An element; children are SVG text."""
    texts = (
        f" {key.replace('_', '-')}={quoteattr(value if isinstance(value, str) else number(value))}"
        for key, value in attributes.items()
        if value != ""
    )
    start = f"<{name}{''.join(texts)}"
    return f"{start}>{''.join(children)}</{name}>" if children else f"{start}/>"


def words(x: float, y: float, content: str, *, anchor: str = "", kind: str = "") -> str:
    """A line of text; `anchor` is `middle` or `end`."""
    return element("text", {"x": x, "y": y, "text_anchor": anchor, "class": kind}, escape(shown(content)))


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return element("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2, "class": kind, "stroke": "currentColor"})


def rect(x: float, y: float, width: float, height: float, kind: str = "", *, fill: str = "") -> str:
    return element("rect", {"x": x, "y": y, "width": width, "height": height, "class": kind, "fill": fill})


def circle(x: float, y: float, radius: float, kind: str) -> str:
    return element("circle", {"cx": x, "cy": y, "r": radius, "class": kind})


def area(points: Iterable[tuple[float, float]], kind: str, opacity: float) -> str:
    steps = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return element("polygon", {"points": steps, "class": kind, "fill_opacity": f"{opacity:.2f}"})


def path(points: Iterable[tuple[float, float]], kind: str) -> str:
    """Straight lines through points."""
    steps = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    return element("polyline", {"points": steps, "class": kind, "fill": "none", "stroke": "currentColor"})


def mark(title: str, *shapes: str, href: str = "") -> str:
    """What stands for a figure of the table: shapes with a title, and a link where there is an address."""
    content = f"<title>{escape(shown(title))}</title>{''.join(shapes)}"
    if href:
        return element("a", {"class": "mark", "href": href}, content)
    return f'<g class="mark">{content}</g>'


def drawing(frame: Frame, label: str, kind: str, parts: Iterable[str]) -> str:
    """The whole picture, with a name for screen readers; they go into it where its marks are links."""
    body = "".join(parts)
    size = f"{number(frame.width)} {number(frame.height)}"
    return element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": f"plot {kind}",
            "viewBox": f"0 0 {size}",
            "width": frame.width,
            "height": frame.height,
            "font_size": f"{FONT_PX}",
            "fill": "currentColor",
            "role": "group" if '<a class="mark"' in body else "img",
            "aria_label": shown(label),
        },
        body,
    )


def text_width(content: str) -> float:
    """The room that a text is given."""
    return CHARACTER_PX * cell_len(shown(content))


def shortened(content: str, width: float) -> str:
    """The text, cut with an ellipsis where it has not the room."""
    whole = shown(content)
    if text_width(whole) <= width:
        return whole
    return set_cell_size(whole, max(1, int(width / CHARACTER_PX) - 1)).rstrip() + "…"


def label_width(labels: Iterable[str], least: float, most: float) -> float:
    """The room for the longest of some labels, within limits."""
    return min(most, max([least, *map(text_width, labels)]))


def row_label(left: float, y: float, content: str) -> str:
    """The name of a row, left of an area that begins at `left`."""
    return words(left - 10, y, shortened(content, left - 12), anchor="end")


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
