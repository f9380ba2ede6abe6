"""Pages: what is kept around candidates, how it is written, and what is cleaned away."""

import pytest
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


def test_elements_that_say_nothing_give_way_to_their_only_child() -> None:
    told = shown('<html><div><div><button title="go"/></div></div><p><b/></p></html>', "e4")
    assert told.text == "<html><button id=0 go /></html>"
    assert shown("<html><div><text>hi</text></div></html>", "e2").text == "<html><div id=0>hi</div></html>"
    two = shown('<html><div><i title="a"/><i title="b"/></div></html>', "e3")
    assert two.text == "<html><div><i id=0 a /><i b /></div></html>"


def test_an_element_left_without_its_children_keeps_a_blank() -> None:
    told = shown('<html>\n <a title="x">\n  <b title="y"/>\n </a>\n <i title="c"/>\n</html>', "e4")
    assert told.text == "<html> <a x> </a> <i id=0 c /> </html>"


def test_round_brackets() -> None:
    told = shown('<html><br data_x="1"/><b title="x"><text>t</text></b></html>', "e3", brackets=ROUND)
    assert told.text == "(html(br)(b id=0 xt))"
    assert told.choices[0].label == "(b id=0 xt)"


def test_texts_keep_twenty_words_and_labels_ten() -> None:
    told = shown(f"<html><p><text>{' '.join(map(str, range(30)))}</text></p></html>", "e2")
    assert told.text.endswith(" 18 19</p></html>")
    assert told.choices[0].label == "<p id=0>0 1 2 3 4 5 6 7 8"


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ('title="A b C d e f g"', "a b c d e"),
        ('title="short averyveryverylongword word"', "short word"),
        ('title="HTTP://x"', ""),
        ('role="none" type="hidden" alt="null" name="undefined" label="presentation"', ""),
        ('title="same" name="same" role="first"', "first same"),
        ('data_x="no" backend_node_id="4" href="no"', ""),
        ('placeholder="p" value="v" input_checked="true"', "v p true"),
        (
            " ".join(
                f'{name}="a{at} b{at} c{at} d{at} e{at}"'
                for at, name in enumerate(("role", "type", "alt", "label", "title"))
            ),
            None,
        ),
    ],
)
def test_attributes_become_words(attributes: str, words: str | None) -> None:
    told = attribute_words(page.parse(f"<a {attributes}/>"))
    assert told == words if words is not None else len(told.split()) == 20


def test_entities_and_quotes() -> None:
    told = shown(
        '<html><a title="a&lt;&quot;b&quot;"><text>say "hi" &amp;amp; &amp;nbsp;&lt;x&gt;</text></a></html>', "e2"
    )
    assert told.text == '<html><a id=0 a<"b">say hi &amp; <x></a></html>'


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
