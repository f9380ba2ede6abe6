"""Pages: what is kept around candidates, how it is written, and what is cleaned away."""

from typing import Literal

from lxml import etree

from environments.mind2web import bm25
from environments.mind2web.pages import page
from environments.mind2web.pages.cleaning import clean
from environments.mind2web.pages.markup import ANGLE, ROUND, Brackets, Rendered, attribute_words, render
from environments.mind2web.pages.pruning import prune


def shown(markup: str, *candidates: str, brackets: Brackets = ANGLE) -> Rendered:
    """A page in which every element is given its place as an id: e1, e2 ... in document order."""
    root = page.parse(markup)
    for place, node in enumerate(root.iter(), 1):
        node.set(page.ID, f"e{place}")
    return render(prune(root, page.nodes_by_id(root, candidates)), brackets)


def told(markup: str, candidate: str, brackets: Literal["<", "("] = "<") -> tuple[str, list[str]]:
    """The text of a page and the labels of its choices, for tables."""
    rendered = shown(markup, candidate, brackets={"<": ANGLE, "(": ROUND}[brackets])
    return rendered.text, [choice.label for choice in rendered.choices]


def test_three_siblings_on_each_side_stay_and_the_path_to_the_root() -> None:
    items = "".join(f'<li title="{number}"/>' for number in range(9))
    told = shown(f'<html><ul name="list">{items}</ul><p title="far"/></html>', "e7")
    items = "<li 1 /><li 2 /><li 3 /><li id=0 4 /><li 5 /><li 6 /><li 7 />"
    assert told.text == f"<html><ul list>{items}</ul></html>"
    assert told.choices == (("e7", "<li id=0 4 />"),)


def test_descendants_stay_six_levels_deep_and_fifty_in_all() -> None:
    deep = "<html>" + "".join(f'<div title="d{level}">' for level in range(9)) + "</div>" * 9 + "</html>"
    assert shown(deep, "e2").text.count("<div") == 7
    wide = "<html><ul>" + '<li title="x"/>' * 80 + "</ul></html>"
    assert shown(wide, "e2").text.count("<li") == 50
    with_texts = "<html><ul>" + '<li title="x"><text>y</text></li>' * 80 + "</ul></html>"
    assert shown(with_texts, "e2").text.count("<li") == 25


def test_texts_keep_twenty_words_and_labels_ten() -> None:
    told = shown(f"<html><p><text>{' '.join(map(str, range(30)))}</text></p></html>", "e2")
    assert told.text.endswith(" 18 19</p></html>")
    assert told.choices[0].label == "<p id=0>0 1 2 3 4 5 6 7 8"


def words_of(attributes: str) -> str:
    return attribute_words(page.parse(f"<a {attributes}/>"))


def test_of_attributes_twenty_words_are_kept() -> None:
    names = ("role", "type", "alt", "label", "title")
    attributes = (f'{name}="a{at} b{at} c{at} d{at} e{at}"' for at, name in enumerate(names))
    assert len(words_of(" ".join(attributes)).split()) == 20


def test_text_nodes_are_no_candidates_and_may_be_empty() -> None:
    root = page.parse('<html><text backend_node_id="1"/><p backend_node_id="2"><text backend_node_id="3"/></p></html>')
    assert list(page.nodes_by_id(root, ["1", "2", "3", "9"])) == ["2"]
    assert render(prune(root, page.nodes_by_id(root, ["2"]))).text == "<html><p id=0></p></html>"


def test_an_id_that_stands_twice_is_its_first_element() -> None:
    root = page.parse('<html><a backend_node_id="1" title="x"/><a backend_node_id="1" title="y"/></html>')
    assert page.nodes_by_id(root, ["1"])["1"].get("title") == "x"


def test_the_page_stays_as_it_is_whatever_is_asked_of_it() -> None:
    root = page.parse('<html backend_node_id="0"><a backend_node_id="1" class="b"><text>x</text></a></html>')
    before = etree.tostring(root)
    prune(root, page.nodes_by_id(root, ["1"]))
    assert etree.tostring(root) == before


def test_cleaning() -> None:
    raw = (
        '<html backend_node_id="1" lang="en"><svg backend_node_id="2" class="big icon-x"/>'
        '<div backend_node_id="3" class="icon-no"><p backend_node_id="4"><text backend_node_id="5"> a \n b </text></p>'
        '</div><a backend_node_id="6" role="link"/><input backend_node_id="7" type="hidden" title=" x  y "/>'
        '<b backend_node_id="8"><text backend_node_id="9">  </text></b></html>'
    )
    cleaned = etree.tostring(clean(page.parse(raw), {"6"}), encoding="unicode")
    assert cleaned == (
        '<html backend_node_id="1"><svg backend_node_id="2" class="icon-x"/>'
        '<p backend_node_id="4"><text backend_node_id="5">a b</text></p>'
        '<a backend_node_id="6"/><input backend_node_id="7" title="x y"/></html>'
    )


def test_words_rank_candidates_and_ties_go_by_document_order() -> None:
    root = page.parse(
        '<html><a backend_node_id="1" title="news"/><ul><text>Coats</text><li backend_node_id="2"/></ul>'
        '<button backend_node_id="3"><span><text>Buy the coats</text></span></button><a backend_node_id="4"/></html>'
    )
    candidates = page.nodes_by_id(root, ["4", "3", "2", "1"])
    assert bm25.ranking(candidates, "Buy one", ["[link]  coats -> CLICK"]) == {"3": 0, "2": 1, "1": 2, "4": 3}
    assert bm25.ranking(candidates, "coats", []) == {"2": 0, "3": 1, "1": 2, "4": 3}
