"""The furniture of our own games: rooms, receptacles and what fits in them, objects and their properties.

The types are ALFWorld's (arXiv 2010.03768), as far as its games mention them.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

Room = Literal["kitchen", "living room", "bedroom", "bathroom"]
Property = Literal["cleanable", "heatable", "coolable", "sliceable", "isReceptacleObject"]


class ReceptacleType(NamedTuple):
    """One type of receptacle."""

    holds: frozenset[str]
    """The kinds of objects it can hold."""
    openable: bool = False


class ObjectType(NamedTuple):
    """One type of object that can be carried."""

    kind: str
    """Decides which receptacles it fits in."""
    properties: tuple[Property, ...] = ()


def _receptacle(kinds: str, openable: bool = False) -> ReceptacleType:
    return ReceptacleType(frozenset(kinds.split()), openable)


def _object(kind: str, letters: str = "") -> ObjectType:
    properties: Mapping[str, Property] = {
        "c": "cleanable",
        "h": "heatable",
        "k": "coolable",
        "s": "sliceable",
        "r": "isReceptacleObject",
    }
    return ObjectType(kind, tuple(properties[letter] for letter in letters))


RECEPTACLES: Mapping[str, ReceptacleType] = {
    "ArmChair": _receptacle("soft device reading small box"),
    "Bed": _receptacle("soft device reading sport"),
    "Cabinet": _receptacle("dish mug pan shaker soap cloth paper decor", openable=True),
    "CoffeeMachine": _receptacle("mug"),
    "CoffeeTable": _receptacle("device reading small decor dish mug box"),
    "CounterTop": _receptacle("food dish mug pan cutlery shaker soap cloth paper small decor reading device"),
    "Desk": _receptacle("device reading small decor dish mug box lamp"),
    "DiningTable": _receptacle("food dish mug pan cutlery shaker reading decor"),
    "Drawer": _receptacle("cutlery small device reading soap cloth shaker", openable=True),
    "Dresser": _receptacle("device reading small decor dish mug box lamp"),
    "Fridge": _receptacle("food dish mug pan", openable=True),
    "GarbageCan": _receptacle("food paper reading soap cloth small"),
    "HandTowelHolder": _receptacle("handtowel"),
    "LaundryHamper": _receptacle("cloth", openable=True),
    "Microwave": _receptacle("food dish mug", openable=True),
    "Ottoman": _receptacle("soft device reading box"),
    "Safe": _receptacle("small decor", openable=True),
    "Shelf": _receptacle("dish mug decor device reading small soap paper box shaker"),
    "SideTable": _receptacle("device reading small decor dish mug box lamp"),
    "SinkBasin": _receptacle("food dish mug pan cutlery soap cloth"),
    "Sofa": _receptacle("soft device reading small box"),
    "StoveBurner": _receptacle("pan"),
    "Toilet": _receptacle("soap cloth paper decor"),
    "ToiletPaperHanger": _receptacle("paper"),
    "TowelHolder": _receptacle("towel"),
    "TVStand": _receptacle("device reading small decor box"),
}

OBJECTS: Mapping[str, ObjectType] = {
    "AlarmClock": _object("device"),
    "Apple": _object("food", "chks"),
    "BaseballBat": _object("sport"),
    "Book": _object("reading"),
    "Bowl": _object("dish", "ckr"),
    "Box": _object("box", "r"),
    "Bread": _object("food", "hks"),
    "ButterKnife": _object("cutlery", "c"),
    "Candle": _object("decor"),
    "CD": _object("small"),
    "CellPhone": _object("device"),
    "Cloth": _object("cloth", "c"),
    "CreditCard": _object("small"),
    "Cup": _object("dish", "chkr"),
    "DishSponge": _object("soap", "c"),
    "Egg": _object("food", "chk"),
    "Fork": _object("cutlery", "c"),
    "HandTowel": _object("handtowel"),
    "KeyChain": _object("small"),
    "Knife": _object("cutlery", "c"),
    "Ladle": _object("cutlery", "c"),
    "Laptop": _object("device"),
    "Lettuce": _object("food", "cks"),
    "Mug": _object("mug", "chkr"),
    "Newspaper": _object("reading"),
    "Pan": _object("pan", "ckr"),
    "Pen": _object("small"),
    "Pencil": _object("small"),
    "PepperShaker": _object("shaker"),
    "Pillow": _object("soft"),
    "Plate": _object("dish", "chkr"),
    "Pot": _object("pan", "ckr"),
    "Potato": _object("food", "chks"),
    "RemoteControl": _object("device"),
    "SaltShaker": _object("shaker"),
    "SoapBar": _object("soap", "c"),
    "SoapBottle": _object("soap"),
    "Spatula": _object("cutlery", "c"),
    "Spoon": _object("cutlery", "c"),
    "SprayBottle": _object("soap"),
    "Statue": _object("decor"),
    "TennisRacket": _object("sport"),
    "TissueBox": _object("decor"),
    "ToiletPaper": _object("paper"),
    "Tomato": _object("food", "chks"),
    "Towel": _object("towel"),
    "Vase": _object("decor"),
    "Watch": _object("small"),
}
LAMP = "DeskLamp"
FIXTURES = ("LightSwitch", "Window", "Mirror", "Painting", "Chair", "Blinds")
"""Objects that can't be carried and are in no receptacle."""


class RoomTemplate(NamedTuple):
    """The contents of a kind of room."""

    receptacles: Mapping[str, tuple[int, int]]
    """The least and the most of each type; 8 to 25 in all."""
    objects: tuple[str, ...]


ROOMS: Mapping[Room, RoomTemplate] = {
    "kitchen": RoomTemplate(
        {
            "Cabinet": (3, 6),
            "Drawer": (2, 4),
            "CounterTop": (1, 3),
            "DiningTable": (0, 1),
            "Shelf": (0, 2),
            "Fridge": (1, 1),
            "Microwave": (1, 1),
            "SinkBasin": (1, 1),
            "StoveBurner": (2, 4),
            "CoffeeMachine": (1, 1),
            "GarbageCan": (1, 1),
        },
        (
            *("Apple", "Bowl", "Bread", "ButterKnife", "Cup", "DishSponge", "Egg", "Fork", "Knife", "Ladle", "Lettuce"),
            *("Mug", "Pan", "PepperShaker", "Plate", "Pot", "Potato", "SaltShaker", "SoapBottle", "Spatula", "Spoon"),
            "Tomato",
        ),
    ),
    "living room": RoomTemplate(
        {
            "Sofa": (1, 2),
            "ArmChair": (1, 2),
            "CoffeeTable": (1, 1),
            "SideTable": (1, 3),
            "Drawer": (2, 6),
            "Shelf": (1, 4),
            "GarbageCan": (1, 1),
            "TVStand": (0, 1),
            "Dresser": (0, 1),
            "Ottoman": (0, 1),
        },
        (
            *("Book", "Box", "CellPhone", "CreditCard", "KeyChain", "Laptop", "Newspaper", "Pillow", "RemoteControl"),
            *("Statue", "TissueBox", "Vase", "Watch"),
        ),
    ),
    "bedroom": RoomTemplate(
        {
            "Bed": (1, 1),
            "Desk": (1, 2),
            "Drawer": (3, 8),
            "Shelf": (1, 5),
            "SideTable": (1, 2),
            "GarbageCan": (1, 1),
            "Dresser": (0, 1),
            "Safe": (0, 1),
            "LaundryHamper": (0, 1),
            "ArmChair": (0, 1),
        },
        (
            *("AlarmClock", "BaseballBat", "Book", "Bowl", "CD", "CellPhone", "Cloth", "CreditCard", "KeyChain"),
            *("Laptop", "Mug", "Pen", "Pencil", "Pillow", "TennisRacket"),
        ),
    ),
    "bathroom": RoomTemplate(
        {
            "Cabinet": (2, 5),
            "CounterTop": (1, 1),
            "SinkBasin": (1, 2),
            "Toilet": (1, 1),
            "TowelHolder": (1, 1),
            "HandTowelHolder": (1, 2),
            "ToiletPaperHanger": (1, 1),
            "GarbageCan": (1, 1),
            "Shelf": (0, 3),
            "Drawer": (0, 3),
        },
        (
            *("Candle", "Cloth", "DishSponge", "HandTowel", "SoapBar", "SoapBottle", "SprayBottle", "ToiletPaper"),
            "Towel",
        ),
    ),
}
