"""A recorded page as a tree: XML with a `backend_node_id` on every node and all text in `<text>` nodes."""

from collections.abc import Iterable

from lxml import etree

ID = "backend_node_id"
TEXT = "text"


def parse(markup: str) -> etree._Element:
    """The root of a page. Raises ValueError if the page is not well-formed.

    Nothing is fetched and no entity is expanded; libxml2's limits on depth and size apply.
    """
    parser = etree.XMLParser(
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(markup.encode(), parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(f"the page is not well-formed: {error}") from error


def nodes_by_id(root: etree._Element, ids: Iterable[str]) -> dict[str, etree._Element]:
    """The first element in document order for each id; ids without an element are left out."""
    wanted = set(ids)
    found: dict[str, etree._Element] = {}
    for node in root.iter(etree.Element):
        name = node.get(ID)
        if name in wanted and name not in found and node.tag != TEXT:
            found[name] = node
    return found
