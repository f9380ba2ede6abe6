"""The part of a page around some candidates (Mind2Web, arXiv 2306.06070, section 4.1)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from lxml import etree

from environments.mind2web.pages.page import ID, TEXT

DEPTH = 6
"""Levels of descendants kept below a candidate."""
DESCENDANTS = 50
"""Number of descendants kept below a candidate, including text nodes."""
SIBLINGS = 3
"""Number of siblings kept on each side of a candidate."""


@dataclass
class Words:
    """A text node."""

    text: str
    tail: str


@dataclass
class Part:
    """A kept element; `lead` is the text before its first child, `tail` the text after its end."""

    node: etree._Element
    candidate: str | None
    """The element's id if it is a candidate, else None."""
    lead: str
    tail: str
    children: list["Part | Words"] = field(default_factory=list)


def prune(root: etree._Element, candidates: Mapping[str, etree._Element]) -> Part:
    """The kept part of a page as a new tree; the page is not changed.

    An element without attributes, without text and with at most one child is replaced by that child, unless it is a
    candidate or the root.
    """
    return _kept(root, "", _ids_to_keep(candidates), candidates)


def _kept(node: etree._Element, tail: str, keep: set[str], candidates: Mapping[str, etree._Element]) -> Part:
    name = node.get(ID, "")
    part = Part(node, name if name in candidates else None, node.text or "", tail)
    for child in node.iterchildren(etree.Element):
        if child.tag == TEXT:
            part.children.append(Words(child.text or "", child.tail or ""))
        elif child.get(ID, "") in keep:
            kept = _kept(child, child.tail or "", keep, candidates)
            part.children += kept.children if _idle(kept) else [kept]
    return part


def _idle(part: Part) -> bool:
    """Whether an element is replaced by its only child, or removed if it has none."""
    return (
        part.candidate is None
        and len(part.children) <= 1
        and not any(isinstance(child, Words) for child in part.children)
        and all(name == ID for name in part.node.attrib)
    )


def _ids_to_keep(candidates: Mapping[str, etree._Element]) -> set[str]:
    keep = set(candidates)
    for node in candidates.values():
        keep.update(each.get(ID, "") for each in node.iterancestors())
        keep.update(each.get(ID, "") for each in islice(_descendants(node, DEPTH), DESCENDANTS))
        keep.update(each.get(ID, "") for each in _siblings(node))
    return keep


def _descendants(node: etree._Element, depth: int) -> Iterator[etree._Element]:
    """Yields descendants in document order, down to a depth."""
    for child in node.iterchildren(etree.Element):
        yield child
        if depth > 1:
            yield from _descendants(child, depth - 1)


def _siblings(node: etree._Element) -> Iterator[etree._Element]:
    for preceding in (True, False):
        others = (each for each in node.itersiblings(etree.Element, preceding=preceding) if each.tag != TEXT)
        yield from islice(others, SIBLINGS)
