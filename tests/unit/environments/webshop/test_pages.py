"""Pages, replies and prompts, beside what the acceptance list says of them."""

import ast
import json

import pytest

from environments.webshop import policies, prompt, reply
from environments.webshop.catalogue.product import Goal, Product
from environments.webshop.prompt import observation, opening, reply_text
from environments.webshop.shop import pages
from environments.webshop.shop.pages import Button, Choice, Page

SHARED = Page(
    ("size", Choice("size", "blue"), Choice("size", "xl"), "color", Choice("color", "blue"), Button("Buy Now"))
)


def test_white_space_makes_a_segment_only_without_a_line_break() -> None:
    assert Page(("a ", "", "  ", " \n ", " b\n")).text() == "a [SEP]  [SEP] b"


def test_an_empty_feature_leaves_a_segment_and_an_empty_description_none() -> None:
    product = Product(
        asin="A1",
        title="t",
        description="",
        bullets=("", "x"),
        price_tag="$1.0",
        price=1.0,
        category="",
        query="",
        product_category="",
        options={},
        attributes=(),
        nouns=(),
        image="",
    )
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


@pytest.mark.parametrize(
    ("line", "argument", "longer"),
    [
        ("click[a [b] c]", "b", "a [b] c"),
        ("click[7 [new] oz]", "new", "7 [new] oz"),
        ("click[x] then click[y]", "x", "x] then click[y"),
        ("click[X]", "x", "x"),
        ("search[a] and b]", "a", ""),
    ],
)
def test_a_reply_is_read_to_the_first_and_to_the_last_bracket(line: str, argument: str, longer: str) -> None:
    move = reply.read(f"Action: {line}\nmore ]")
    assert move is not None
    assert (move.argument, move.longer) == (argument, longer)


def test_an_observation_ends_in_a_literal_or_in_json() -> None:
    page = pages.search_page("find\nme")
    compat, strict = (observation(page, ["search", "it's"], profile) for profile in ("compat", "strict"))
    assert compat.startswith(
        "Observation:\nWebShop [SEP] Instruction: [SEP] find\nme [SEP] Search\n\nAvailable Actions:\n"
    )
    expected = {"has_search_bar": True, "clickables": ["search", "it's"]}
    assert ast.literal_eval(compat.rpartition("\n")[2]) == expected
    assert json.loads(strict.rpartition("\n")[2]) == expected


def test_the_opening_is_a_task_a_consent_and_four_rounds() -> None:
    messages = opening()
    assert [message.role for message in messages] == ["user", "assistant"] * 5
    moves = [reply.read(message.content) for message in messages if message.role == "assistant"]
    assert [move.name for move in moves if move] == ["search", "click", "click", "click"]
    assert sum("['...'" in message.content for message in messages) == 4


@pytest.mark.parametrize("title", ["plain", "with [brackets] in it", "[", ""])
def test_the_reference_searches_titles_that_hold_brackets(title: str) -> None:
    goal = Goal(
        asin="A1",
        instruction="i",
        attributes=("a",),
        options=(),
        price_upper=1.0,
        category="",
        query="",
        name=title,
        product_category="",
        nouns=(),
    )
    seen = prompt.observation(pages.search_page("i"), ["search"], "compat")
    message = opening()[0].model_copy(update={"content": seen})
    move = reply.read(policies.gold(goal)("main", (*opening(), message)).content)
    assert move is not None
    assert move.name == "search"


def test_what_is_said_can_be_read() -> None:
    assert reply.read(reply_text("why", "click[buy now]")) == ("click", "buy now", "buy now")


@pytest.mark.parametrize(
    "text",
    [
        "Action:" + " " * 5_000_000 + "x",
        "Action: search[" * 300_000,
        "Action: click[]" * 300_000,
        "Action: click[" * 2_000 + "x" * 5_000_000,
    ],
    ids=["blanks", "never closed", "empty", "long"],
)
def test_no_reply_takes_long_to_read(text: str) -> None:
    """What looks back and forth would take hours: the test would not end."""
    assert reply.read(text) is None


def test_a_reply_of_a_long_search_is_read_whole() -> None:
    assert reply.read(f"Action: search[{'X' * 5_000_000}]") == ("search", "x" * 5_000_000, "")
