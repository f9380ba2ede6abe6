"""A character's routine: sleep, work and usual activities, from its persona and our table of routines."""

import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from environments.stss.dataset import Persona, Town, home_of
from environments.stss.town.schedule import DAY, DayPlan, Row, read_time
from environments.stss.town.world import Places

TABLE = Path(__file__).with_name("routines.json")
"""Usual days of the 25 published characters, written by us; `routine` in `characteristics.json` overrides them."""
DINNER = 45
"""Duration of a dinner at home, in minutes."""
_SLEEP = re.compile(r"to bed (?:around|at) (?P<bed>[\w:]+).*?(?:awakes?|wakes?) up (?:around|at) (?P<wake>[\w:]+)")
_DINNER = re.compile(r"dinner (?:around|at) (?P<dinner>\d[\w:]*)")
_HOURS = re.compile(r"(\d{1,2})(?::(\d{2}))?\s*(am|pm)", re.IGNORECASE)


class Habits(NamedTuple):
    """The same times every day, in minutes since midnight; `bed` is over 24:00 if it is after midnight."""

    wake: int
    bed: int
    dinner: int | None
    duty: tuple[int, int, str] | None
    """Work or classes: start, end, address."""


def chance(*parts: object) -> random.Random:
    """A random generator with a seed from `parts`; equal parts give equal draws in every process."""
    return random.Random(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest())


def habits(persona: Persona, places: Places) -> Habits:
    """Sleep and dinner from `lifestyle`; duty from `daily_plan_req` if that names a place and two times."""
    sleep, dinner = _SLEEP.search(persona.lifestyle), _DINNER.search(persona.lifestyle)
    wake, bed = (_hour(sleep["wake"]), _hour(sleep["bed"])) if sleep else (7 * 60, 23 * 60)
    meal = _hour(dinner["dinner"]) if dinner else None
    spots = places.mentions(persona.daily_plan_req)
    hours = [_hour(match[0]) for match in _HOURS.finditer(persona.daily_plan_req)]
    works = spots and len(hours) > 1 and hours[0] < hours[1]
    duty = (hours[0], hours[1], spots[0]) if works else None
    return Habits(wake, bed + DAY if bed < wake else bed, meal, duty)


def day_plan(town: Town, persona: Persona, day: int, sociability: float, seed: str) -> DayPlan:
    """The plan of a day: duty, dinner, and rows of the routine, each kept with the probability `sociability`."""
    own, first = habits(persona, town.places), day * DAY
    dice = chance(seed, persona.name, day, "day")
    wake, bed = first + own.wake, first + own.bed
    rows: list[Row] = []
    for start, end, activity, address in persona.routine or _table().get(persona.name, ()):
        if dice.random() < sociability and address in town.world:
            rows.append(Row(first + read_time(start), first + read_time(end), activity, address))
    if own.dinner is not None:
        rows.append(Row(first + own.dinner, first + own.dinner + DINNER, "having a meal", home_of(persona)))
    if own.duty is not None:
        rows.append(Row(first + own.duty[0], first + own.duty[1], "working", own.duty[2], fixed=True))
    awake = (row._replace(start=max(row.start, wake), end=min(row.end, bed)) for row in rows)
    return DayPlan(wake, bed, tuple(row for row in awake if row.start < row.end))


@cache
def _table() -> Mapping[str, Sequence[tuple[str, str, str, str]]]:
    return dict(json.loads(TABLE.read_text(encoding="utf-8")))


def _hour(text: str) -> int:
    """Minutes since midnight of a time such as `8am`, `17:30pm` or `midnight`; noon for any other text."""
    if text == "midnight":
        return DAY
    match = _HOURS.match(text)
    if match is None:
        return 12 * 60
    hour = int(match[1])
    afternoon = match[3].lower() == "pm" and hour < 12
    return (hour + 12 if afternoon else hour % 24) * 60 + int(match[2] or 0)
