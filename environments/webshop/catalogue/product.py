"""Products and goals: what the shop sells, and what a sample asks for."""

import random
from collections.abc import Mapping

from proctor.types import Value

PRICE_STEPS = tuple(range(10, 1000, 10))
"""Dollars; price limits are taken from these."""
NO_LIMIT = 1_000_000.0


class Product(Value):
    """One product, as a page shows it and a reward looks at it."""

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    price_tag: str
    price: float
    """Dollars; for a range drawn once, when the catalogue was made."""
    category: str
    query: str
    """The shop's leaf type, lower case."""
    product_category: str
    """The path of categories, separated by `›`."""
    options: Mapping[str, tuple[str, ...]]
    """From an option's name to its values, all lower case."""
    attributes: tuple[str, ...]
    nouns: tuple[str, ...]
    """Of the title, lower case, repeats kept."""
    image: str

    def text(self) -> str:
        """What it is found by: title, description, first bullet and options, lower case."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        return " ".join((self.title, self.description, self.bullets[0] if self.bullets else "", options)).lower()


class Goal(Value):
    """What one sample asks for. It is made from one product, which it names."""

    asin: str
    instruction: str
    """With the price limit, where there is one."""
    attributes: tuple[str, ...]
    options: tuple[str, ...]
    price_upper: float
    """Dollars."""
    category: str
    query: str
    name: str
    product_category: str
    nouns: tuple[str, ...]
    """Of the product's title."""


def price_between(low: float, high: float, asin: str, position: int, seed: int) -> float:
    """The price, in dollars, that a range gets for good."""
    return random.Random(f"{seed} {asin} {position}").uniform(low, high)


def price_limit(price: float, asin: str, position: int, seed: int) -> float | None:
    """The larger of two of the next four multiples of ten above a price; None where fewer than two are left.

    `position` is the goal's among all, before they are shuffled.
    """
    above = [step for step in PRICE_STEPS if step > price][:4]
    if len(above) < 2:
        return None
    return float(max(random.Random(f"{seed} {asin} {position} limit").sample(above, 2)))
