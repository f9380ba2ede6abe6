"""Whether the goals of a catalogue are the published ones, of which 300 are known by their words."""

import re

from environments.webshop.catalogue.product import Goal
from environments.webshop.catalogue.store import CatalogueStore
from proctor.published import records_hash

KNOWN = range(200, 500)
"""The indices of the goals whose words are known."""
PUBLISHED = "9c2ea39e77b2e2caef3377b4eac88e6d9aaa5764d72e0ed1df86d8f41e409a95"
"""The hash of their words, in their order."""


def other_goals(store: CatalogueStore) -> str | None:
    """Why the goals are not the published ones; None where those at the known indices have the published words."""
    if records_hash(map(words, store.goals(KNOWN))) == PUBLISHED:
        return None
    first, end = KNOWN.start, KNOWN.stop
    return (
        f"the goals {first} to {end - 1} have other words than the published ones; index the published files unchanged"
    )


def words(goal: Goal) -> str:
    """An instruction without its price limit, in the form of the known texts: lower case, no quotes or apostrophes."""
    price = f", and price lower than {goal.price_upper:.2f} dollars"
    return re.sub("[\"']", "", goal.instruction.lower()).strip().removesuffix(price)
