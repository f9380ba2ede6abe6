"""What similarity, colours, options and attributes come to, beside the published vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.webshop.catalogue.product import Goal, Product
from environments.webshop.scoring import (
    attribute_matches,
    option_matches,
    reward,
    same_category,
    similarity,
    title_score,
)

PRODUCT = Product(
    asin="A1",
    title="Solid Wood Table",
    description="It has a Walnut finish",
    bullets=("first", "Second bullet"),
    price_tag="$20.0",
    price=20.0,
    category="garden",
    query="tables",
    product_category="Home › Furniture › Tables",
    options={},
    attributes=("easy clean",),
    nouns=("wood", "table"),
    image="",
)
GOAL = Goal(
    asin="A1",
    instruction="i want a table",
    attributes=("solid wood",),
    options=(),
    price_upper=30.0,
    category="garden",
    query="tables",
    name="Solid Wood Table",
    product_category="Home › Furniture › Tables",
    nouns=("wood", "table"),
)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("powder snow", "cool powder snow", 100),
        ("fuzzy was a bear", "fuzzy fuzzy was a bear", 100),
        ("red", "blue", 29),
        ("", "", 0),
        ("½", "é", 0),
        ("X-Large!", "x large", 100),
        ("7.2 ounce (pack of 12)", "7.2 ounce (pack of 6)", 94),
        ("long sleeve", "long sleeves", 96),
    ],
)
def test_similarity_is_the_token_set_ratio(one: str, other: str, expected: int) -> None:
    """Figures by rapidfuzz 3.14."""
    assert similarity(one, other) == expected


@given(st.text("ab c-é"), st.text("ab c-é"))
def test_similarity_is_symmetric_and_full_for_a_part(one: str, other: str) -> None:
    assert similarity(one, other) == similarity(other, one)
    assert similarity(one, f"{one} {other}") in (100, 0)


def test_attributes_are_found_in_every_text_and_in_any_case_in_strict() -> None:
    wanted = ("easy to clean", "solid wood", "first second", "walnut finish", "Walnut Finish", "marble")
    assert attribute_matches(wanted, PRODUCT, "compat") == 4
    assert attribute_matches(wanted, PRODUCT, "strict") == 5


def test_one_chosen_value_serves_several_options_but_for_strict() -> None:
    assert option_matches(("navy blue", "sky blue"), ["blue"], "compat") == 2
    assert option_matches(("navy blue", "sky blue"), ["blue"], "strict") == 1
    assert option_matches(("dark red", "bored"), ["bored", "darkest"], "compat") == 2
    assert option_matches(("large", "large pack"), ["large pack", "large"], "strict") == 2


def test_strict_finds_the_most_pairs_in_any_order() -> None:
    chosen = ["size large", "size"]
    for wanted in (("size", "size large"), ("size large", "size")):
        assert option_matches(wanted, chosen, "strict") == 2


def test_categories_match_by_two_common_steps() -> None:
    assert same_category("Home › Furniture › Beds", "Home › Furniture › Tables")
    assert not same_category("Home › Beds", "Home › Tables")
    assert not same_category("", "")


def test_a_goal_without_nouns_has_a_title_score_of_a_fifth() -> None:
    assert title_score((), ("table",)) == 0.2
    assert title_score(("a", "a", "b"), ("a",)) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("limit", "paid"), [(20.0, 1.0), (19.99, 0.0), (0.0, 0.0), (-5.0, 0.0)])
def test_the_price_counts_up_to_its_limit(limit: float, paid: float) -> None:
    goal = GOAL.model_copy(update={"price_upper": limit})
    assert reward(goal, PRODUCT, {}, "compat").r_price == paid


def test_the_goal_product_is_worth_1() -> None:
    found = reward(GOAL, PRODUCT, {}, "compat")
    assert (found.reward, found.r_type, found.r_att, found.r_option, found.r_price) == (1.0, 1.0, 1.0, None, 1.0)
    assert (found.w_att, found.w_option, found.w_price) == (0.5, 0.0, 0.5)
