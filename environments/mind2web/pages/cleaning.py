"""Cleans raw pages the way Mind2Web does (arXiv 2306.06070); agents see prunings of cleaned pages."""

from collections.abc import Set

from lxml import etree

from environments.mind2web.pages.markup import ATTRIBUTES
from environments.mind2web.pages.page import ID, TEXT

_KEPT = frozenset(ATTRIBUTES) - {"class"}
_MEANINGLESS = {("role", "presentation"), ("role", "none"), ("role", "link"), ("type", "hidden")}


def clean(root: etree._Element, candidates: Set[str]) -> etree._Element:
    """Removes meaningless attributes and elements from a raw page, in place. Returns the same root.

    Kept attributes: those that rendering reads, and icon names in an svg's class. Kept elements: candidates (given by
    id), and elements with text, several children, or an attribute besides their id.
    """
    for node in reversed(list(root.iter(etree.Element))):
        _clean_attributes(node)
        parent = node.getparent()
        if node.tag == TEXT:
            node.text = " ".join((node.text or "").split())
            if not node.text and parent is not None:
                parent.remove(node)
        elif parent is not None and node.get(ID, "") not in candidates and _is_meaningless(node):
            for child in node:
                node.addprevious(child)
            parent.remove(node)
    return root


def _clean_attributes(node: etree._Element) -> None:
    attributes, tag = node.attrib, str(node.tag)
    for name, value in attributes.items():
        kept = _cleaned(tag, str(name), str(value))
        if not kept:
            del attributes[name]
        elif kept != value:
            attributes[name] = kept


def _cleaned(tag: str, name: str, value: str) -> str:
    """The cleaned value of an attribute; empty if the attribute is to be removed."""
    if name == ID:
        return value
    if name == "class" and tag == "svg":
        return " ".join(word for word in value.split() if "icon" in word)
    if name not in _KEPT or (name, value) in _MEANINGLESS:
        return ""
    return " ".join(value.split())


def _is_meaningless(node: etree._Element) -> bool:
    return len(node.attrib) == 1 and len(node) <= 1 and all(child.tag != TEXT for child in node)
