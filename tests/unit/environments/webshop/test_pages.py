"""Pages, prompts and scores, beside what the acceptance list says of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.webshop import policies, prompt, reply
from environments.webshop.catalogue.product import Goal, Product
from environments.webshop.prompt import opening
from environments.webshop.scoring import (
    reward,
    similarity,
)
from environments.webshop.shop import pages
from environments.webshop.shop.pages import Button, Choice, Page

SHARED = Page(
    ("size", Choice("size", "blue"), Choice("size", "xl"), "color", Choice("color", "blue"), Button("Buy Now"))
)


def some_product(**fields: object) -> Product:
    told = dict.fromkeys(("description", "category", "query", "product_category", "image"), "")
    some = {"asin": "A1", "title": "t", "price_tag": "$1.0", "price": 1.0}
    return Product.model_validate(
        {**told, **some, **dict.fromkeys(("bullets", "attributes", "nouns"), ()), "options": {}, **fields}
    )


def some_goal(**fields: object) -> Goal:
    told = dict.fromkeys(("category", "query", "name", "product_category"), "")
    some = {"asin": "A1", "instruction": "i", "attributes": ("table",), "options": (), "price_upper": 1.0, "nouns": ()}
    return Goal.model_validate({**told, **some, **fields})


def test_white_space_makes_a_segment_only_without_a_line_break() -> None:
    assert Page(("a ", "", "  ", " \n ", " b\n")).text() == "a [SEP]  [SEP] b"


def test_an_empty_feature_leaves_a_segment_and_an_empty_description_none() -> None:
    product = some_product(bullets=("", "x"))
    head = "Instruction: [SEP] i [SEP] Back to Search [SEP] < Prev"
    assert pages.sub_page("i", product, "Features").text() == f"{head} [SEP]  [SEP] x"
    assert pages.sub_page("i", product, "Description").text() == head
    assert pages.sub_page("i", product, "Reviews").text() == head


def test_of_a_value_that_two_options_share_the_last_counts() -> None:
    assert list(SHARED.clickables()) == ["buy now", "blue", "xl"]
    assert SHARED.clickables()["blue"] == Choice("color", "blue")


def test_strict_names_the_options_of_shared_values() -> None:
    clickables = SHARED.clickables(qualify_shared=True)
    assert list(clickables) == ["buy now", "size: blue", "xl", "color: blue"]
    assert clickables["size: blue"] == Choice("size", "blue")


@pytest.mark.parametrize("name", [pages.BACK, pages.PREVIOUS, *pages.SUB_PAGES, pages.BUY])
def test_a_value_named_as_a_button_is_the_button_and_strict_keeps_both(name: str) -> None:
    value = name.lower()
    page = pages.item_page("i", some_product(options={"kind": ("plain", value), "size": (value,)}))
    assert page.clickables()[value] == Button(name)
    assert list(page.clickables()).count(value) == 1
    strict = page.clickables(qualify_shared=True)
    assert strict[value] == Button(name)
    assert strict["plain"] == Choice("kind", "plain")
    assert [strict[f"{option}: {value}"] for option in ("kind", "size")] == [
        Choice("kind", value),
        Choice("size", value),
    ]


def test_a_value_named_search_can_be_clicked_in_strict_alone() -> None:
    page = pages.item_page("i", some_product(options={"kind": ("search",)}))
    assert "search" in page.clickables()
    assert "kind: search" in page.clickables(qualify_shared=True)


@pytest.mark.parametrize("title", ["plain", "with [brackets] in it", "[", ""])
def test_the_reference_searches_titles_that_hold_brackets(title: str) -> None:
    seen = prompt.observation(pages.search_page("i"), ["search"], "compat")
    message = opening()[0].model_copy(update={"content": seen})
    move = reply.read(policies.gold(some_goal(name=title))("main", (*opening(), message)).content)
    assert move is not None
    assert move.name == "search"


@given(st.text("ab c-é"), st.text("ab c-é"))
def test_similarity_is_symmetric_and_full_for_a_part(one: str, other: str) -> None:
    assert similarity(one, other) == similarity(other, one)
    assert similarity(one, f"{one} {other}") in (100, 0)


@pytest.mark.parametrize(("limit", "paid"), [(20.0, 1.0), (19.99, 0.0), (0.0, 0.0), (-5.0, 0.0)])
def test_the_price_counts_up_to_its_limit(limit: float, paid: float) -> None:
    assert reward(some_goal(price_upper=limit), some_product(price=20.0), {}, "compat").r_price == paid
