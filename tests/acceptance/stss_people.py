"""Scripted people of the town at a model's endpoint: they agree to what they are asked, in all spellings of JSON."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import NamedTuple

from environments.stss.characters.routine import day_plan
from environments.stss.dataset import SocialTask, Town, home_of
from environments.stss.invitation import ONLINE, Leg, changed, read
from environments.stss.town.schedule import DATES, DAY, agenda, stamp, time_text

LENGTH = 60
"""Minutes of what has no end."""
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")


class Agreed(NamedTuple):
    """One thing agreed to, in the words that the people use."""

    activity: str
    place: str
    start: int
    end: int


def _fields(each: Agreed) -> dict[str, object]:
    return {"activity": each.activity, "place": each.place, "start": stamp(each.start), "end": stamp(each.end)}


def _half(minute: int) -> str:
    hour, minutes = divmod(minute % DAY, 60)
    return f"{(hour - 1) % 12 + 1}:{minutes:02d} {'AM' if hour < 12 else 'PM'}"


def _form(agreed: Sequence[Agreed]) -> object:
    return {"topic": "plans", "invited_to": agreed[0].activity, "commitments": [_fields(each) for each in agreed]}


def _one(agreed: Sequence[Agreed]) -> object:
    return {"commitment": _fields(agreed[0])} if len(agreed) == 1 else _form(agreed)


def _times(agreed: Sequence[Agreed]) -> object:
    weekdays = ("Monday", "Tuesday")
    named = [
        {"what": each.activity, "where": each.place, "date": weekdays[each.start // DAY]}
        | {"startTime": _half(each.start), "endTime": _half(each.end)}
        for each in agreed
    ]
    return {"agreements": named}


def _ranges(agreed: Sequence[Agreed]) -> object:
    return [
        {
            "event": each.activity,
            "location": f"the {each.place}",
            "when": f"{stamp(each.start)} to {time_text(each.end)}",
        }
        for each in agreed
    ]


def _seconds(agreed: Sequence[Agreed]) -> object:
    iso = [
        _fields(each) | {name: f"{stamp(getattr(each, name)).replace(' ', 'T')}:00Z" for name in ("start", "end")}
        for each in agreed
    ]
    return {"response": {"commitments": iso}}


def _bare(agreed: Sequence[Agreed]) -> object:
    return [_fields(each) for each in agreed]


MEANINGS: tuple[Callable[[Sequence[Agreed]], object], ...] = (_form, _one, _times, _ranges, _seconds, _bare)
SPELLINGS: tuple[Callable[[object], str], ...] = (
    json.dumps,
    lambda value: f"```json\n{json.dumps(value, indent=2)}\n```",
    lambda value: f'<think>They asked me. {{"commitments": []}}</think>Here is my answer:\n{json.dumps(value)}',
    repr,
    lambda value: json.dumps({"answer": value}),
)


class People:
    """Answers a driver's requests for one task."""

    def __init__(self, town: Town, task: SocialTask, sociability: float = 0.6) -> None:
        self._town, self._task, self._sociability = town, task, sociability
        self._meaning, self._spelling = cycle(MEANINGS), cycle(SPELLINGS)
        self._unusable: Iterator[bool] = cycle([False, False, True])

    def __call__(self, asked: str, system_and_request: str) -> str:
        """The reply to the last message `asked` of a request; every third request is answered in vain first."""
        reminded = asked.startswith("Your answer can't be used")
        if not reminded and next(self._unusable):
            return '{"foo": 1}'
        value = self._answer(system_and_request)
        return json.dumps(value) if reminded else next(self._spelling)(value)

    def _answer(self, request: str) -> object:
        name = re.findall(r"The character is (.+?), \d+:", request)[-1]
        day = int("It is Tuesday" in request)
        if "Plan the day" in request:
            return self._plan(name, day)
        if "speak first" in request:
            return {"talk": "no"}
        if "agreed to do" in request:
            agreed = list(self._agreed(request, name, day))
            return next(self._meaning)(agreed) if agreed else {"commitments": "none"}
        if "remember of it" in request:
            return {"summary": "We talked about plans."}
        return {"utterance": "That sounds lovely, count me in.", "end": "false"}

    def _plan(self, name: str, day: int) -> object:
        """The plan of the rules, with what covers another row cut out of it."""
        persona = self._town.personas[name]
        plan = day_plan(self._town, persona, day, self._sociability, f"{self._task.env_name}:0")
        home = home_of(persona)
        blocks = [each for each in agenda(day, plan, 0, (), home) if each.kind == "act" and each.address != home]
        rows = [(each.start % DAY, (each.end - 1) % DAY + 1, each.activity, each.address) for each in blocks]
        free = (minute for minute in range(plan.wake % DAY, 21 * 60, 10))
        while len(rows) < 4:
            start = next(each for each in free if all(each + 10 <= row[0] or row[1] <= each for row in rows))
            rows.append((start, start + 10, "resting", "home"))
        named = [
            {"start": time_text(start), "end": time_text(end), "activity": activity, "place": place}
            for start, end, activity, place in sorted(rows)
        ]
        return {"wake": time_text(plan.wake), "bed": time_text(plan.bed), "schedule": named}

    def _agreed(self, request: str, name: str, day: int) -> Iterator[Agreed]:
        """What the partner asked for and named whole: in the form, or as a goal's sentence."""
        said = re.findall(rf"^{re.escape(self._task.performer)}: (.*)$", request, re.MULTILINE)
        legs: tuple[Leg, ...] = ()
        for text in said:
            found = read(text, self._town.places, day)
            legs = (
                changed(legs, found.legs or self._of_goal(text), whole=found.whole)
                if found.legs or self._of_goal(text)
                else legs
            )
        end = 0
        for leg in legs:
            start = end if leg.start is None and end else (leg.day or 0) * DAY + (leg.start or 0)
            if leg.activity is None or leg.place is None or (leg.start is None and not end):
                return
            end = start + (20 if len(legs) > 1 else LENGTH) if leg.end is None else (leg.day or 0) * DAY + leg.end
            place = "Zoom" if leg.place == ONLINE else leg.place
            yield Agreed(leg.activity, place, start, end)

    def _of_goal(self, text: str) -> tuple[Leg, ...]:
        when, places = _STAMP.search(text), self._town.places.mentions(text)
        online = self._task.category == "online"
        if " wants to " not in text or when is None or not (places or online):
            return ()
        day = DATES.index(when[0][:10])
        start = int(when[0][11:13]) * 60 + int(when[0][14:])
        what = text.partition(" wants to ")[2].partition(" at ")[0]
        return (Leg(what, ONLINE if online else places[-1], day, start),)
