"""Furnishes a room at random: receptacles at their places, objects in them, and the facts that describe it."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from tools.datagen.alfworld.rooms import FIXTURES, LAMP, OBJECTS, RECEPTACLES, ROOMS, Room

SHARED_PLACE = 0.2
"""The share of receptacles that have the place of the one before."""
IN_TWO = 0.1
"""The share of objects in two receptacles of one place at once, where two fit; some of ALFWorld's objects are."""
AGENT = "agent1"


@dataclass(frozen=True)
class Thing:
    """A receptacle or an object."""

    identifier: str
    type: str
    place: str
    """The location it is at."""


@dataclass
class House:
    """One room with its contents."""

    start: str
    """The location where the agent begins; it is empty."""
    receptacles: list[Thing] = field(default_factory=list)
    objects: list[Thing] = field(default_factory=list)
    """Those that can be carried, and lamps."""
    fixtures: list[Thing] = field(default_factory=list)
    inside: list[tuple[Thing, Thing]] = field(default_factory=list)
    """Which object is in which receptacle."""

    def receptacle_of(self, item: Thing) -> Thing:
        """The receptacle that an object is in, the first of them where there are two."""
        return next(receptacle for each, receptacle in self.inside if each is item)


def furnish(room: Room, chance: random.Random, lamp: bool) -> House:
    """A room of a kind, with a lamp on one of its tables where one is wanted."""
    coordinates = _coordinates(chance)
    house = House(next(coordinates)[1])
    for kind, (least, most) in ROOMS[room].receptacles.items():
        for number in range(chance.randint(least, most)):
            _add_receptacle(house, kind, number, coordinates, chance)
    for kind in FIXTURES[: chance.randint(2, len(FIXTURES))]:
        position, place = next(coordinates)
        house.fixtures.append(Thing(f"{kind}_bar_{position}", kind, place))
    for kind in ROOMS[room].objects:
        for _ in range(chance.choice((1, 1, 2, 2, 3))):
            _add_object(house, kind, OBJECTS[kind].kind, coordinates, chance)
    if lamp:
        _add_object(house, LAMP, "lamp", coordinates, chance)
    return house


def _add_receptacle(
    house: House, kind: str, number: int, coordinates: Iterator[tuple[str, str]], chance: random.Random
) -> None:
    position, place = next(coordinates)
    burners = kind == "StoveBurner" and number > 0
    if burners or (house.receptacles and chance.random() < SHARED_PLACE):
        place = house.receptacles[-1].place
    identifier = f"Sink_bar_{position}_bar_SinkBasin" if kind == "SinkBasin" else f"{kind}_bar_{position}"
    house.receptacles.append(Thing(identifier, kind, place))


def _add_object(
    house: House, type_: str, kind: str, coordinates: Iterator[tuple[str, str]], chance: random.Random
) -> None:
    fitting = [each for each in house.receptacles if kind in RECEPTACLES[each.type].holds]
    if not fitting:
        return
    receptacle = chance.choice(fitting)
    item = Thing(f"{type_}_bar_{next(coordinates)[0]}", type_, receptacle.place)
    house.objects.append(item)
    house.inside.append((item, receptacle))
    beside = [each for each in fitting if each.place == receptacle.place and each is not receptacle]
    if beside and chance.random() < IN_TWO:
        house.inside.append((item, chance.choice(beside)))


def _coordinates(chance: random.Random) -> Iterator[tuple[str, str]]:
    """Positions and locations, written as in identifiers; none comes twice."""
    used = set[tuple[int, int]]()
    while True:
        x, z = chance.randint(-900, 900), chance.randint(-900, 900)
        if (x // 25, z // 25) in used:
            continue
        used.add((x // 25, z // 25))
        position = "_bar_".join((_metres(x), _metres(chance.randint(5, 220)), _metres(z)))
        turn, tilt = chance.randrange(4), chance.choice((-30, 0, 15, 30, 45, 60))
        yield position, "loc_bar_" + "_bar_".join(_steps(each) for each in (x // 25, z // 25, turn, tilt))


def _metres(centimetres: int) -> str:
    sign = "plus" if centimetres >= 0 else "minus"
    return f"_{sign}_{abs(centimetres) // 100:02}_dot_{abs(centimetres) % 100:02}"


def _steps(value: int) -> str:
    return f"_minus_{-value}" if value < 0 else str(value)


def facts(house: House) -> Iterator[tuple[str, ...]]:
    """All facts of a house at the start."""
    yield "atLocation", AGENT, house.start
    for receptacle in house.receptacles:
        yield "receptacleType", receptacle.identifier, f"{receptacle.type}Type"
        yield "receptacleAtLocation", receptacle.identifier, receptacle.place
        if RECEPTACLES[receptacle.type].openable:
            yield "openable", receptacle.identifier
    for item in (*house.objects, *house.fixtures):
        yield "objectType", item.identifier, f"{item.type}Type"
        yield "objectAtLocation", item.identifier, item.place
    for item in house.objects:
        if item.type == LAMP:
            yield "toggleable", item.identifier
            continue
        yield "pickupable", item.identifier
        for each in OBJECTS[item.type].properties:
            yield each, item.identifier
    for item, receptacle in house.inside:
        yield "inReceptacle", item.identifier, receptacle.identifier
        if receptacle.type == "Fridge" and "coolable" in OBJECTS[item.type].properties:
            yield "isCool", item.identifier
    for receptacle_type in sorted({each.type for each in house.receptacles}):
        for type_ in sorted({each.type for each in house.objects if each.type != LAMP}):
            if OBJECTS[type_].kind in RECEPTACLES[receptacle_type].holds:
                yield "canContain", f"{receptacle_type}Type", f"{type_}Type"
