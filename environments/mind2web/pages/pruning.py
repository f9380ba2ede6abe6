"""The part of a page around some candidates (Mind2Web, arXiv 2306.06070, section 4.1)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice

from lxml import etree

from environments.mind2web.pages.page import ID, TEXT

DEPTH = 6
"""Levels of descendants that are kept below a candidate."""
DESCENDANTS = 50
"""Descendants that are kept of a candidate, text nodes among them."""
SIBLINGS = 3
"""Siblings that are kept on each side of a candidate."""


@dataclass
class Words:
    """A text node."""

    text: str
    tail: str


@dataclass
class Part:
    """An element that is kept; `lead` is the text before its first child, `tail` that after its end."""

    node: etree._Element
    candidate: str | None
    """Its id, where it is a candidate."""
    lead: str
    tail: str
    children: list["Part | Words"] = field(default_factory=list)


def prune(root: etree._Element, candidates: Mapping[str, etree._Element]) -> Part:
    """What is kept of a page, as a tree of its own; the page stays as it is.

    Elements without attributes, without text and with at most one child give way to that child, unless they are a
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
    """Whether an element says nothing, so that its only child, or nothing, can stand in its place."""
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
    """In document order, down to a depth."""
    for child in node.iterchildren(etree.Element):
        yield child
        if depth > 1:
            yield from _descendants(child, depth - 1)


def _siblings(node: etree._Element) -> Iterator[etree._Element]:
    for preceding in (True, False):
        others = (each for each in node.itersiblings(etree.Element, preceding=preceding) if each.tag != TEXT)
        yield from islice(others, SIBLINGS)
