"""The display names of a game's objects (as ALFWorld's name wrapper makes them, without shuffling)."""

from collections import Counter
from collections.abc import Iterable, Mapping

_SEPARATOR = "_bar_"


def names(identifiers: Iterable[str]) -> Mapping[str, str]:
    """The display names, such as `desk 2`, of all identifiers in a game's facts, numbered down to 1 in sorted order."""
    entities = sorted(set(identifiers))
    left = Counter(_base(entity) for entity in entities)
    found: dict[str, str] = {}
    for entity in entities:
        base = _base(entity)
        found[entity] = f"{base} {left[base]}" if _SEPARATOR in entity else entity
        left[base] -= 1
    return found


def _base(entity: str) -> str:
    return entity.partition(_SEPARATOR)[0] + ("basin" if "basin" in entity else "")
