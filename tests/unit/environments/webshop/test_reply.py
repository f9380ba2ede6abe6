"""Replies are read in `compat` as by AgentBench v0.2's expression, and in `strict` never worse."""

import json
import random
import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.webshop import policies, prompt, reply
from environments.webshop.catalogue.product import Goal, Product
from environments.webshop.functions import TOOLSET
from environments.webshop.prompt import opening
from environments.webshop.reply import ShopMove
from environments.webshop.scoring import (
    Profile,
    reward,
    similarity,
)
from environments.webshop.shop import pages
from environments.webshop.shop.pages import Button, Choice, Page
from tests.support import SHARED_DATA

PUBLISHED = re.compile(r"[Aa]ction: *\n* *((?:search|click)\[.+?\])")
ANY_MARK = re.compile(r"(?i)action[*_]{0,3}:")
SPLIT = re.compile(r"(.+)\[(.+)\]")
MARKS = ("Action:", "action:", "ACTION:", "**Action:**", "Action :", "Action:Action:", "Reaction:", "ction:")
BLANKS = ("", "", " ", "  ", "\n", "\n\n", "\n\n\n", " \n", "\n ", " \n\n ", "\n \n", "\t", "\r\n", "\r", "\u00a0", "`")
NAMES = ("search[", "click[", "search[", "click[", "Search[", "click [", "buy[", "search", "click[[", "search[]")
VALUES = (
    *("desk", "buy now", "7 [US] oz", "a]b", "]", "[", "", " ", "\n", "x\ny", "İ", "桌子", "😀", "a\rb", "\u2028"),
    "]]",
)
ENDS = ("]", "]", "]", "]", "", " ]", "]]", "].", "\n]", "\n", "] ", "]\n")
REPLIES = 20_000


def made(seed: int) -> str:
    """A reply of one to three actions, each of them right, or wrong in some places."""
    dice = random.Random(seed)
    pieces: list[Sequence[str]] = [MARKS, BLANKS, NAMES, VALUES, ENDS]
    if dice.random() < 0.5:
        pieces = [pieces[0][:2], pieces[1][:10], pieces[2][:2], *pieces[3:]]
    actions = ("".join(map(dice.choice, pieces)) for _ in range(dice.randint(1, 3)))
    return dice.choice(("", "Thought:\nhm\n\n")) + dice.choice(("", "\n", " ")).join(actions)


def published(text: str) -> tuple[str, str] | None:
    """Name and argument as the published code takes them from a reply."""
    found = PUBLISHED.search(text)
    split = found and SPLIT.match(found[1])
    return (split[1], split[2].lower()) if split else None


def test_compat_reads_what_the_published_expression_reads() -> None:
    replies = [made(seed) for seed in range(REPLIES)]
    taken = [move and move[:2] for move in map(reply.read, replies)]
    wanted = [published(text) for text in replies]
    assert [text for text, move, right in zip(replies, taken, wanted, strict=True) if move != right] == []
    assert 0.3 < sum(map(bool, wanted)) / REPLIES < 0.9, "replies of both kinds"


def test_strict_reads_an_action_wherever_compat_does() -> None:
    for text in map(made, range(REPLIES)):
        if (move := reply.read(text)) is not None:
            strict = reply.read(text, "strict")
            assert strict is not None, text
            assert strict == move or len(ANY_MARK.findall(text)) > 1, text


@pytest.mark.shared
def test_published_replies() -> None:
    lines = (SHARED_DATA / "webshop" / "published_replies.jsonl").read_text(encoding="utf-8").splitlines()
    for row in map(json.loads, lines):
        assert reply.read(row["reply"], "compat") == reply.read(row["reply"], "strict")
        assert list(reply.read(row["reply"]) or ())[:2] == row["published"]


@pytest.mark.thorough
@pytest.mark.parametrize("profile", ["compat", "strict"])
@pytest.mark.parametrize(
    "text",
    [
        "Action:" + " " * 5_000_000 + "x",
        "Action:" + "\n" * 5_000_000 + "x",
        "Action:" + " \n" * 2_500_000 + "x",
        "Action: search[" * 300_000,
        "Action:\nsearch[" * 300_000,
        "Action: click[]\n" * 300_000,
        "Action: click[" * 2_000 + "x" * 5_000_000,
    ],
    ids=["blanks", "lines", "both", "never closed", "lines never closed", "empty", "long"],
)
def test_no_reply_takes_long_to_read(text: str, profile: Profile) -> None:
    """What looks back and forth would take hours: the test would not end."""
    assert reply.read(text, profile) is None


def test_a_reply_of_a_long_search_is_read_whole() -> None:
    assert reply.read(f"Action: search[{'X' * 5_000_000}]") == ("search", "x" * 5_000_000, "")


@pytest.mark.parametrize(
    ("name", "arguments", "move"),
    [
        ("search_action", {"keywords": "Blue [dry] Jeans"}, ShopMove("search", "blue [dry] jeans")),
        ("click_action", {"value": "7 [US] oz"}, ShopMove("click", "7 [us] oz")),
    ],
)
def test_a_call_is_the_move_of_its_whole_text(name: str, arguments: dict[str, str], move: ShopMove) -> None:
    function = TOOLSET.find(name, strict=True)
    assert function is not None
    assert function.read(function.checked(json.dumps(arguments), strict=True)) == move
    assert [each.name for each in TOOLSET.functions if each.write(move) is not None] == [name]
    assert function.write(move) == {key: value.lower() for key, value in arguments.items()}
    assert function.write(None) is None


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
