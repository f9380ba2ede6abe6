"""The reward of a purchase (Yao et al., WebShop, arXiv 2207.01206, section 4.2, with the published code's rules)."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal

from rapidfuzz import fuzz

from environments.webshop.catalogue.product import Goal, Product
from proctor.types import Value

Profile = Literal["compat", "strict"]
NO_NOUNS = 0.2
"""The title score if the goal's title has no noun."""
MATCH = 85
"""Texts with a higher similarity count as the same."""
_COLOURS = """
         alabaster apricot aqua ash asphalt azure banana beige black blue blush bordeaux bronze brown burgundy camel
    camo     caramel champagne charcoal cheetah chestnut chocolate christmas coffee cognac copper coral cranberry
    cream crystal     dark denim eggplant elephant espresso fuchsia gold granite grape graphite grass gray green
    grey heather indigo ivory     ivy khaki lavender lemon leopard light lilac lime magenta maroon mauve merlot
    midnight mint mocha multicolor     mushroom mustard natural navy nude olive orange peach pewter pink plum purple
    rainbow red rose royal rust sand sapphire     seashell silver skull slate steel stone stonewash sunflower tan
    taupe teal tiger turquoise violet walnut wheat white     wine yellow"""
COLOURS: tuple[str, ...] = tuple(_COLOURS.split())
"""102 words in alphabetical order, WebShop's table; the first that matches counts."""
_WHOLE = {colour: re.compile(rf"\b{colour}\b") for colour in COLOURS}
_OTHER = re.compile(r"\W", re.ASCII)


class Reward(Value):
    """A reward and its parts. `r_option` is None if the goal has no options."""

    reward: float
    r_type: float
    r_att: float
    r_option: float | None
    r_price: float
    w_att: float
    w_option: float
    w_price: float
    attribute_matches: int
    option_matches: int
    query_match: bool
    category_match: bool
    title_score: float


def reward(goal: Goal, product: Product, chosen: Mapping[str, str], profile: Profile) -> Reward:
    """The reward, from 0 to 1, of buying a product with the chosen values of its options."""
    query_match = goal.query == product.query
    category_match = same_category(goal.product_category, product.product_category)
    title = title_score(goal.nouns, product.nouns)
    attributes = attribute_matches(goal.attributes, product, profile)
    options = option_matches(goal.options, list(chosen.values()), profile)
    price = float(goal.price_upper > 0 and product.price <= goal.price_upper)
    parts = len(goal.attributes) + len(goal.options) + 1
    kind = type_factor(title, query_match, category_match)
    return Reward(
        reward=kind * (attributes + options + price) / parts,
        r_type=kind,
        r_att=attributes / len(goal.attributes),
        r_option=options / len(goal.options) if goal.options else None,
        r_price=price,
        w_att=len(goal.attributes) / parts,
        w_option=len(goal.options) / parts,
        w_price=1 / parts,
        attribute_matches=attributes,
        option_matches=options,
        query_match=query_match,
        category_match=category_match,
        title_score=title,
    )


def type_factor(title: float, query_match: bool, category_match: bool) -> float:
    """The factor for the kind of product: 0, 0.1, 0.5 or 1. A title score below 0.1 outweighs the other matches."""
    if title == 0:
        return 0.0
    if title < 0.1:
        return 0.1
    return 1.0 if query_match or category_match or title > 0.2 else 0.5


def title_score(goal: Sequence[str], bought: Collection[str]) -> float:
    """The number of different nouns that two titles share, divided by the number of nouns in the goal's title."""
    return len(set(goal) & set(bought)) / len(goal) if goal else NO_NOUNS


def same_category(one: str, other: str) -> bool:
    """Whether two paths of categories have two steps in common."""
    left, right = ({step.strip() for step in path.split("›")} for path in (one, other))
    return len(left & right) >= 2


def attribute_matches(wanted: Sequence[str], product: Product, profile: Profile) -> int:
    """The number of wanted attributes that a product has, among its attributes or in its texts."""
    texts = [text.lower() for text in (product.title, " ".join(product.bullets), product.description)]

    def matches(attribute: str) -> bool:
        if any(alike(own, attribute) for own in product.attributes):
            return True
        sought = attribute.lower() if profile == "strict" else attribute
        return any(sought in text for text in texts)

    return sum(map(matches, wanted))


def option_matches(wanted: Sequence[str], chosen: Sequence[str], profile: Profile) -> int:
    """The number of wanted option values that were chosen; in `strict` a chosen value counts for one wanted value."""
    strict = profile == "strict"
    left, right = ([plain_colour(value, whole_words=strict) for value in values] for values in (wanted, chosen))
    if strict:
        return _pairs(len(left), len(right), lambda one, other: alike(right[other], left[one]))
    return sum(any(alike(value, option) for value in right) for option in left)


def _pairs(left: int, right: int, fits: Callable[[int, int], bool]) -> int:
    """The size of a maximum matching between the two sides (Kuhn's algorithm)."""
    partner: dict[int, int] = {}

    def placed(one: int, seen: set[int]) -> bool:
        for other in range(right):
            if other not in seen and fits(one, other):
                seen.add(other)
                if other not in partner or placed(partner[other], seen):
                    partner[other] = one
                    return True
        return False

    return sum(placed(one, set()) for one in range(left))


def similarity(one: str, other: str) -> int:
    """The token-set ratio of the ASCII words of two texts, as thefuzz computes it: from 0 to 100, half to even.

    It is 0 if a text holds no ASCII word, and 100 if all words of one text are in the other.
    """
    return round(fuzz.token_set_ratio(_words(one), _words(other)))


def alike(one: str, other: str) -> bool:
    """Whether two texts count as the same."""
    return similarity(one, other) > MATCH


def _words(text: str) -> str:
    return _OTHER.sub(" ", text.encode("ascii", "ignore").decode()).lower()


def plain_colour(value: str, *, whole_words: bool) -> str:
    """The first colour of the table in a value, as a whole word or (as published) as part of one; else the value."""
    for colour in COLOURS:
        if _WHOLE[colour].search(value) if whole_words else colour in value:
            return colour
    return value
