"""Makes the goals of a catalogue from people's instructions for its products, in the published order."""

import random
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from environments.webshop.catalogue.product import NO_LIMIT, Goal, Product, price_limit
from environments.webshop.catalogue.published import members
from environments.webshop.catalogue.records import text
from environments.webshop.catalogue.store import find

SHUFFLE_SEED = 233


def goals_of(connection: sqlite3.Connection, path: Path, seed: int, problems: Counter[str]) -> list[Goal]:
    """All goals, shuffled as published, so that in the full catalogue their positions are the published indices.

    Raises ValueError with file and entry.
    """
    found = dict(_by_position(connection, path, problems))
    goals = [goal for position in sorted(found) for goal in found[position]]
    limited = [_limited(goal, product, at, seed) for at, (goal, product) in enumerate(goals)]
    random.Random(SHUFFLE_SEED).shuffle(limited)
    return limited


def _by_position(
    connection: sqlite3.Connection, path: Path, problems: Counter[str]
) -> Iterator[tuple[int, list[tuple[Mapping[str, object], Product]]]]:
    """Yields the position of each product in the catalogue that has instructions, with its usable instructions."""
    for asin, written in members(path):
        found = find(connection, "asin", asin.encode(errors="replace").decode())
        if found is None:
            problems["instructions for unknown products"] += 1
            continue
        listed = written if isinstance(written, list) else [None]
        entries = [
            entry for entry in listed if isinstance(entry, Mapping) and isinstance(entry.get("instruction"), str)
        ]
        usable = [entry for entry in entries if _texts(entry.get("instruction_attributes"))]
        problems["instructions unreadable"] += len(listed) - len(entries)
        problems["instructions without attributes"] += len(entries) - len(usable)
        yield found[0], [(entry, found[1]) for entry in usable]


def _limited(written: Mapping[str, object], product: Product, position: int, seed: int) -> Goal:
    limit = price_limit(product.price, product.asin, position, seed)
    price = "" if limit is None else f", and price lower than {limit:.2f} dollars"
    return Goal(
        asin=product.asin,
        instruction=text(written.get("instruction")).strip(".") + price,
        attributes=_texts(written.get("instruction_attributes")),
        options=_texts(written.get("instruction_options")),
        price_upper=NO_LIMIT if limit is None else limit,
        category=product.category,
        query=product.query,
        name=product.title,
        product_category=product.product_category,
        nouns=product.nouns,
    )


def _texts(written: object) -> tuple[str, ...]:
    """The texts of a list or of an object's values; empty for other values."""
    values = list(written.values()) if isinstance(written, Mapping) else written
    return tuple(map(text, values)) if isinstance(values, list) else ()
