"""Who comes to perceive whom."""

from collections.abc import Iterator, Mapping, Sequence

from environments.stss.days.person import Person
from environments.stss.town.world import TownMap

Pair = tuple[str, str]
"""Names of two people, in alphabetical order."""


class Contacts:
    """The pairs who had their chance to talk; they get another once they have lost sight of each other."""

    def __init__(self, world: TownMap) -> None:
        self._world = world
        self._had: set[Pair] = set()

    def clear(self) -> None:
        """Forget all of them: a new day begins."""
        self._had.clear()

    def add(self, one: Person, other: Person) -> None:
        """Note that a pair has its chance now."""
        self._had.add(_pair(one, other))

    def new(self, moved: Sequence[Person], people: Mapping[str, Person], first: str) -> Iterator[tuple[Person, Person]]:
        """The pairs that perceive each other, of whom one has just moved, without those who had their chance.

        Pairs with the person named `first` come first. Outside of arenas nobody perceives anybody.
        """
        crowds: dict[tuple[str, str], list[Person]] = {person.place: [] for person in moved if person.place[1]}
        if not (crowds or self._had):
            return
        for person in people.values():
            if person.place in crowds:
                crowds[person.place].append(person)
        near = {_pair(one, other) for one in moved for other in crowds.get(one.place, ()) if one is not other}
        names = {person.name for person in moved}
        self._had = {pair for pair in self._had if pair in near or not names & set(pair)}
        for pair in sorted(near, key=lambda pair: (first not in pair, pair)):
            one, other = people[pair[0]], people[pair[1]]
            if not self._world.sees(one.tile, other.tile):
                self._had.discard(pair)
            elif pair not in self._had:
                yield one, other


def _pair(one: Person, other: Person) -> Pair:
    return min(one.name, other.name), max(one.name, other.name)
