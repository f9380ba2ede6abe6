"""What every plot has to hold, whatever it shows."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator

from eval_client.report.plots.svg import Plot

SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
WIDEST_CHARACTER = 7.2


def checked(plot: Plot) -> list[str]:
    """The titles of the marks of a plot: well-formed XML, no NaN, every mark titled, nothing outside the picture."""
    assert not re.search(r"\b(nan|inf)\b", plot.svg)
    root = ET.fromstring(plot.svg)
    width, height = (float(size) for size in root.attrib["viewBox"].split()[2:])
    for shape in drawn(root):
        for x, y in corners(shape):
            assert -0.5 <= x <= width + 0.5, ET.tostring(shape)
            assert -0.5 <= y <= height + 0.5, ET.tostring(shape)
    assert all(len(row.cells) == len(plot.table.columns) for row in plot.table.rows)
    return [title_of(mark) for mark in root.iter() if mark.get("class") == "mark"]


def title_of(mark: ET.Element) -> str:
    """The title of a mark; it has to be its first child."""
    assert mark[0].tag == f"{SVG}title"
    assert mark[0].text
    return mark[0].text


def drawn(root: ET.Element) -> Iterator[ET.Element]:
    """All elements that are drawn themselves."""
    for child in root:
        if "text-anchor" in root.attrib:
            child.attrib.setdefault("text-anchor", root.attrib["text-anchor"])
        if child.tag != f"{SVG}defs":
            yield child
            yield from drawn(child)


def corners(shape: ET.Element) -> list[tuple[float, float]]:
    """The outermost points of a shape; of a text, the ends of its line."""

    def at(name: str) -> float:
        return float(shape.attrib[name])

    match shape.tag.removeprefix(SVG):
        case "rect":
            assert at("width") > 0
            assert at("height") > 0
            return [(at("x"), at("y")), (at("x") + at("width"), at("y") + at("height"))]
        case "line":
            return [(at("x1"), at("y1")), (at("x2"), at("y2"))]
        case "circle":
            return [(at("cx") - at("r"), at("cy") - at("r")), (at("cx") + at("r"), at("cy") + at("r"))]
        case "polyline" | "polygon":
            found = [float(each) for each in NUMBER.findall(shape.attrib["points"])]
            return list(zip(found[::2], found[1::2], strict=True))
        case "text":
            room = WIDEST_CHARACTER * len(shape.text or "")
            before = {"middle": room / 2, "end": room}.get(shape.get("text-anchor", ""), 0)
            return [(at("x") - before, at("y") - 10), (at("x") - before + room, at("y") + 3)]
    return []
