"""Elements of an invented page, and the raw page as XML in Mind2Web's form."""

import random
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

INTERACTIVE = frozenset(("a", "button", "input", "select", "textarea"))
CLICKABLE_ROLES = frozenset(("option", "menuitem", "gridcell", "tab"))


@dataclass(frozen=True)
class Element:
    """An element; each text among its children becomes a node of its own."""

    tag: str
    attributes: dict[str, str]
    children: tuple["Element | str", ...]
    key: str = ""
    """Name by which a move finds the element; empty for most."""

    @property
    def interactive(self) -> bool:
        """Whether a person could act on it."""
        return self.tag in INTERACTIVE or self.attributes.get("role") in CLICKABLE_ROLES


def el(tag: str, *children: "Element | str | None", key: str = "", **attributes: str | None) -> Element:
    """An element. Children and attributes that are None are left out; so are underscores at the end of a name."""
    given = {name.rstrip("_"): value for name, value in attributes.items() if value is not None}
    return Element(tag, given, tuple(child for child in children if child is not None), key)


class Node:
    """An element of a page with its id."""

    def __init__(self, element: Element, id: str, parent: "Node | None") -> None:
        self.element = element
        self.id = id
        self.parent = parent
        self.children: list[Node | tuple[str, str]] = []
        """Elements, and texts as (id, text)."""

    def walk(self) -> list["Node"]:
        """This node and its descendants in document order."""
        found = [self]
        for child in self.children:
            if isinstance(child, Node):
                found += child.walk()
        return found


class Numbering:
    """Node ids for the pages of one task: a node at the same path has the same id on every page."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._ids: dict[str, str] = {}
        self._last = 100

    def number(self, element: Element, parent: Node | None = None, path: str = "") -> Node:
        """The element and its descendants as nodes with ids."""
        path += f"/{element.tag}:{element.key}"
        node = Node(element, self._id(path), parent)
        for place, child in enumerate(element.children):
            if isinstance(child, str):
                node.children.append((self._id(f"{path}/{place}"), child))
            else:
                node.children.append(self.number(child, node, f"{path}/{place}"))
        return node

    def _id(self, path: str) -> str:
        if path not in self._ids:
            self._last += self._dice.randint(1, 4)
            self._ids[path] = str(self._last)
        return self._ids[path]


def raw_page(root: Node) -> str:
    """The page as XML before cleaning, with invented bounding boxes."""
    lines = list[str]()
    _write(root, 0, lines)
    return "\n".join(lines)


def _write(node: Node, depth: int, lines: list[str]) -> None:
    """Appends the lines of an element and its descendants."""
    element, indent = node.element, "  " * depth
    written = f' backend_node_id="{node.id}" bounding_box_rect="{8 * depth},{node.id},{640 - 8 * depth},24"'
    written += ' is_clickable="true"' if element.interactive else ""
    written += "".join([f" {name}={quoteattr(value)}" for name, value in element.attributes.items()])
    if not node.children:
        lines.append(f"{indent}<{element.tag}{written}/>")
        return
    lines.append(f"{indent}<{element.tag}{written}>")
    for child in node.children:
        if isinstance(child, Node):
            _write(child, depth + 1, lines)
        else:
            lines.append(f'{indent}  <text backend_node_id="{child[0]}">{escape(child[1])}</text>')
    lines.append(f"{indent}</{element.tag}>")
