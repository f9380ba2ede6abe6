"""Finds the addresses of places from their names in texts."""

import difflib
import itertools
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
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
"""Sector of the published map by another common name."""
CLOSE = 0.87
"""Minimum similarity, from 0 to 1, for a misspelt name to match."""


class Mention(NamedTuple):
    """A place named in a text."""

    start: int
    end: int
    address: str


class Places:
    """The names of a map's places."""

    def __init__(self, world: TownMap, homes: Mapping[str, str] | None = None) -> None:
        """`homes`: the address of everybody's home, by full name."""
        self._world = world
        self.homes: Mapping[str, str] = homes or {}

    @property
    def sectors(self) -> Sequence[str]:
        """The sectors of the map."""
        return self._world.sectors

    @cached_property
    def _names(self) -> Mapping[str, str]:
        """Address by name in lower case; the first address of several with the same name."""
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
        for person, home in self.homes.items():
            for owner, thing in itertools.product((person, person.split()[0]), ("house", "home", "place", "apartment")):
                names.setdefault(f"{owner.lower()}'s {thing}", home.partition(":")[0])
        for nickname, sector in NICKNAMES.items():
            if sector in world:
                names.setdefault(nickname.lower(), sector)
        return {name: address for name, address in names.items() if name not in _VAGUE}

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest: defaultdict[str, list[str]] = defaultdict(list)
        for name in sorted(self._names, key=len, reverse=True):
            longest[name[0]].append(re.escape(name[1:]))
        by_first = (f"{re.escape(first)}(?:{'|'.join(rests)})" for first, rests in longest.items())
        return re.compile(rf"(?<!\w)(?:{'|'.join(by_first)})(?!\w)", re.IGNORECASE)

    def named(self, text: str) -> str | None:
        """The address of a name; case and the world's name do not matter. None if there is none."""
        name = self._plain(text)
        return self._names.get(name) or self._names.get(name.removeprefix("the "))

    def find(self, text: str) -> str | None:
        """As `named`; small misspellings do not matter either."""
        if (address := self.named(text)) is not None:
            return address
        close = difflib.get_close_matches(self._plain(text), self._names, n=1, cutoff=CLOSE)
        return self._names[close[0]] if close else None

    def _plain(self, text: str) -> str:
        name = " ".join(text.replace("’", "'").strip().strip(".").lower().split())
        return name.removeprefix(f"{self._world.name.lower()}:")

    def mentions(self, text: str) -> list[Mention]:
        """The places named in a text, in order."""
        plain = text.replace("’", "'")
        return [Mention(*match.span(), self._names[match[0].lower()]) for match in self._pattern.finditer(plain)]


_VAGUE = frozenset({"house", "apartment", "space", "bathroom", "store", "room", "college:", "garden"})
"""Last words of names that do not identify a place."""
