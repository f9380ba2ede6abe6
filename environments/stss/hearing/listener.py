"""Reads labelled utterances with the rules of the characters."""

from functools import cache

from environments.stss.characters.slots import read
from environments.stss.dataset import SHIPPED, Data
from environments.stss.hearing.labelled import Labelled, Slots
from environments.stss.town.clock import day_of
from environments.stss.town.places import Places


@cache
def _places() -> Places:
    return Data(SHIPPED).town.places


def listen(said: Labelled) -> Slots:
    """What the characters of the shipped town hear."""
    slots = read(said.text, _places(), day_of(said.now))
    return {
        "activity": slots.activity,
        "place": slots.place and slots.place.partition(":")[0],
        "day": slots.day,
        "start": slots.start,
        "end": slots.end,
        "people": None,
        "negated": None,
    }
