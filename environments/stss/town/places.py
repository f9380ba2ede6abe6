"""From what people call a place to its address."""

import difflib
import re
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from environments.stss.town.world import TownMap

NICKNAMES: Mapping[str, str] = {
    "Hobbs Coffee": "Hobbs Cafe",
    "Willow Market and Pharmacy": "The Willows Market and Pharmacy",
    "Willows Market": "The Willows Market and Pharmacy",
    "the market": "The Willows Market and Pharmacy",
    "the pharmacy": "The Willows Market and Pharmacy",
    "the dorm": "Dorm for Oak Hill College",
    "the college": "Oak Hill College",
}
"""Names in use for places of the published map that none of its own names gives."""
CLOSE = 0.87
"""Similarity, from 0 to 1, from which a misspelt name is taken for the right one."""


class Mention(NamedTuple):
    """A place named in a text."""

    start: int
    end: int
    address: str


class Places:
    """The names of a map's places."""

    def __init__(self, world: TownMap) -> None:
        self._world = world

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """From a name in small letters to an address; of several with one name the first stays."""
        world, names = self._world, dict[str, str]()
        for address in (*world.sectors, *world.arenas, *world.objects):
            names[address.lower()] = address
        for sector in world.sectors:
            names.setdefault(re.sub(r"^the ", "", sector.lower()), sector)
            names.setdefault(sector.lower().split()[-1], sector)
        arenas = [address.rpartition(":")[2].lower() for address in world.arenas]
        for address, arena in zip(world.arenas, arenas, strict=True):
            if arenas.count(arena) == 1:
                names.setdefault(arena, address)
        for nickname, sector in NICKNAMES.items():
            if sector in world:
                names.setdefault(nickname.lower(), sector)
        return {name: address for name, address in names.items() if name not in _VAGUE}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest = sorted(self._names, key=len, reverse=True)
        return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)", re.IGNORECASE)

    def find(self, text: str) -> str | None:
        """The address that a name stands for, forgiving case, the world's name and small slips; None for no place."""
        name = " ".join(text.replace("’", "'").strip().strip(".").lower().split())
        name = name.removeprefix(f"{self._world.name.lower()}:")
        if name in self._names:
            return self._names[name]
        bare = name.removeprefix("the ")
        if bare in self._names:
            return self._names[bare]
        close = difflib.get_close_matches(name, self._names, n=1, cutoff=CLOSE)
        return self._names[close[0]] if close else None

    def mentions(self, text: str) -> list[Mention]:
        """The places named in a text, in order."""
        plain = text.replace("’", "'")
        return [Mention(*match.span(), self._names[match[0].lower()]) for match in self._pattern.finditer(plain)]


_VAGUE = frozenset({"house", "apartment", "space", "bathroom", "store", "room", "college:", "garden"})
"""Last words of a name that name no place."""
