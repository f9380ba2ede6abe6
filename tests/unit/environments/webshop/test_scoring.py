"""What similarity, colours, options and attributes come to, beside the published vectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from environments.webshop.catalogue.product import Goal, Product
from environments.webshop.scoring import (
    reward,
    similarity,
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


@given(st.text("ab c-é"), st.text("ab c-é"))
def test_similarity_is_symmetric_and_full_for_a_part(one: str, other: str) -> None:
    assert similarity(one, other) == similarity(other, one)
    assert similarity(one, f"{one} {other}") in (100, 0)


@pytest.mark.parametrize(("limit", "paid"), [(20.0, 1.0), (19.99, 0.0), (0.0, 0.0), (-5.0, 0.0)])
def test_the_price_counts_up_to_its_limit(limit: float, paid: float) -> None:
    goal = GOAL.model_copy(update={"price_upper": limit})
    assert reward(goal, PRODUCT, {}, "compat").r_price == paid
