"""Products of the shop, and goals of the samples."""

import random
from collections.abc import Mapping

from proctor.types import Value

PRICE_STEPS = tuple(range(10, 1000, 10))
"""Possible price limits, in dollars."""
NO_LIMIT = 1_000_000.0


class Product(Value):
    """One product, with the fields for pages and rewards."""

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    price_tag: str
    price: float
    """In dollars; for a price range drawn once, when the catalogue is made."""
    category: str
    query: str
    """The product's type in the shop, lower case."""
    product_category: str
    """The path of categories, joined by `›`."""
    options: Mapping[str, tuple[str, ...]]
    """Values by option name, all lower case."""
    attributes: tuple[str, ...]
    nouns: tuple[str, ...]
    """Nouns of the title, lower case, with repeats."""
    image: str

    def text(self) -> str:
        """The text for the search index: title, description, first bullet and options, lower case."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join((self.title, self.description, self.bullets[0] if self.bullets else "", options)).lower()


class Goal(Value):
    """The goal of one sample, made from one product, whose asin it holds."""

    asin: str
    instruction: str
    """The instruction, with the price limit if there is one."""
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    price_upper: float
    """In dollars; NO_LIMIT if there is no limit."""
    category: str
    query: str
    name: str
    product_category: str
    nouns: tuple[str, ...]
    """Nouns of the product's title."""


def price_between(low: float, high: float, asin: str, position: int, seed: int) -> float:
    """The fixed price, in dollars, of a product with a price range."""
    return random.Random(f"{seed} {asin} {position}").uniform(low, high)


def price_limit(price: float, asin: str, position: int, seed: int) -> float | None:
    """The larger of two random ones of the next four PRICE_STEPS above a price; None if fewer than two are left.

    `position` is the goal's position before the goals are shuffled.
    """
    above = [step for step in PRICE_STEPS if step > price][:4]
    if len(above) < 2:
        return None
    return float(max(random.Random(f"{seed} {asin} {position} limit").sample(above, 2)))
