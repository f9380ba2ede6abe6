"""The performer's replies: one JSON object each, by the code of the request (spec table T1 to R)."""

import contextlib
import json
from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, model_validator

from environments.stss.town.clock import DATES, DAY, END, read_time, time_text
from environments.stss.town.files import first_problem
from environments.stss.town.places import Places
from environments.stss.town.schedule import Commitment, DayPlan, Row, overlaps
from proctor.json_objects import MAX_CHARS, objects
from proctor.types import Value

TEXT_CHARS = 200
"""Of every text but an utterance that are kept."""
MAX_ROWS = 14
MAX_NOTES = 12
UTTERANCE_WORDS = 80
UTTERANCE_CHARS = 800
"""For languages without blanks between words."""
HOME = "home"
SILENCE = "..."
EARLIEST, LATEST = 5 * 60, 23 * 60
"""Commitments lie between these times of day."""


class FormatError(ValueError):
    """A reply that is no JSON object of the kind asked for."""


class ActionError(ValueError):
    """A reply that can be read and asks for what is not allowed."""


_BLANKS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), " ")
"""Control characters, which no database and no page need hold."""


def _plain(text: str) -> str:
    """A text on one line, without control characters and halves of surrogate pairs."""
    return " ".join(text.encode(errors="replace").decode().translate(_BLANKS).split())


def _short(text: str) -> str:
    return text[:TEXT_CHARS].rstrip()


def _filled(text: str) -> str:
    if not text:
        raise ValueError("must not be blank")
    return text


Speech = Annotated[str, AfterValidator(_plain)]
"""What is said, cut elsewhere."""
Text = Annotated[Speech, AfterValidator(_short)]
Line = Annotated[Text, AfterValidator(_filled)]


class PerformerReply(Value):
    """What every kind of reply has in common: fields nobody asked for are ignored, and null stands for a default."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _null_is_the_default(cls, fields: object) -> object:
        if not isinstance(fields, dict):
            return fields
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: value for name, value in fields.items() if value is not None or name not in optional}


class FirstPlan(PerformerReply):
    """T1."""

    plan: tuple[Line, ...] = Field(min_length=3, max_length=5)


class Reminder(PerformerReply):
    """T2."""

    schedule_reminder: Text
    checklist: tuple[Line, ...] = Field(max_length=4)


class PlannedRow(PerformerReply):
    """A row of a day plan, unchecked."""

    start: Text
    end: Text
    activity: Line
    place: Line
    object: Text | None = None


class Day(PerformerReply):
    """D."""

    wake: Text
    bed: Text
    schedule: tuple[PlannedRow, ...] = Field(min_length=4, max_length=MAX_ROWS)


class Encounter(PerformerReply):
    """E."""

    talk: bool
    utterance: Speech = ""


class Utterance(PerformerReply):
    """U."""

    utterance: Speech
    end: bool = False


class Promise(PerformerReply):
    """A commitment, unchecked; times may carry a date."""

    activity: Line
    place: Line
    start: Text
    end: Text


class Note(PerformerReply):
    """N."""

    note: Text = ""
    commitment: Promise | None = None
    reschedule: Annotated[tuple[PlannedRow, ...], Field(max_length=MAX_ROWS)] | None = None


class Review(PerformerReply):
    """R."""

    notes: tuple[Line, ...] = Field(default=(), max_length=MAX_NOTES)


Kind = TypeVar("Kind", bound=PerformerReply)


def read(reply: str, kind: type[Kind]) -> Kind:
    """The first balanced object of a reply that fits the kind asked for. Raises FormatError, about the first of all.

    A later object, or one within another, must have a field of the kind: where all fields have defaults, any would fit.
    """
    found = objects(reply)
    try:
        first = next(found)
    except StopIteration:
        raise FormatError("there is no JSON object in the reply") from None
    try:
        return _fitted(first, kind)
    except FormatError:
        for text in found:
            with contextlib.suppress(FormatError):
                later = _fitted(text, kind)
                if later.model_fields_set:
                    return later
        raise


def _fitted(text: str | None, kind: type[Kind]) -> Kind:
    """What an object says; line breaks and tabs may stand in its strings. Raises FormatError."""
    if text is None:
        raise FormatError(f"the first {{ is not closed within {MAX_CHARS} characters")
    try:
        return kind.model_validate(json.loads(text, strict=False))
    except ValidationError as error:
        raise FormatError("{}: {}".format(*first_problem(error))) from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}") from error


def spoken(text: str) -> str:
    """An utterance within the limits: at most 80 words and 800 characters, `...` where it is blank."""
    words = _plain(text).split()
    return " ".join(words[:UTTERANCE_WORDS])[:UTTERANCE_CHARS].strip() or SILENCE


def rows_of(planned: tuple[PlannedRow, ...], day: int, places: Places, home: str) -> tuple[Row, ...]:
    """The rows of a day with addresses. Raises ActionError for places, times and overlaps that can't be."""
    rows: list[Row] = []
    for row in planned:
        start, end = day * DAY + _time(row.start), day * DAY + _time(row.end)
        if end <= start:
            raise ActionError(f"{row.start}-{row.end}: a row must end after it starts")
        if rows and start < rows[-1].end:
            raise ActionError(f"{row.start}: rows must be in order and must not overlap; the last ends {_end(rows)}")
        rows.append(Row(start, end, row.activity, _address(row, places, home)))
    return tuple(rows)


def _end(rows: list[Row]) -> str:
    return time_text(rows[-1].end)


def day_of(reply: Day, day: int, places: Places, home: str) -> DayPlan:
    """The day plan of a D reply. Raises ActionError."""
    wake, bed = _time(reply.wake), _time(reply.bed)
    if wake < 4 * 60 or (4 * 60 <= bed <= wake):
        raise ActionError(f"wake {reply.wake}, bed {reply.bed}: wake at 04:00 or later, and go to bed after that")
    first = day * DAY
    late = DAY if bed < wake else 0
    return DayPlan(first + wake, first + bed + late, rows_of(reply.schedule, day, places, home))


def commitment_of(promise: Promise, now: int, taken: Sequence[Commitment], places: Places, home: str) -> Commitment:
    """The commitment of an N reply. Raises ActionError where it is past, at night, or clashes with an earlier one."""
    start, end = _moment(promise.start), _moment(promise.end)
    if end <= start:
        raise ActionError(f"{promise.start}-{promise.end}: a commitment must end after it starts")
    if start <= now:
        raise ActionError(f"{promise.start}: that time is over")
    if start >= END or not EARLIEST <= start % DAY < LATEST:
        raise ActionError(f"{promise.start}: commitments begin from 05:00 to 22:40")
    for other in taken:
        if overlaps(start, end, other.start, other.end):
            raise ActionError(f"you are committed then: {other.line()}")
    row = PlannedRow(start="", end="", activity=promise.activity, place=promise.place)
    address = _address(row, places, home)
    return Commitment(activity=promise.activity, address=address, start=start, end=end)


def _address(row: PlannedRow, places: Places, home: str) -> str:
    if row.place.lower() == HOME:
        return home
    address = places.find(row.place)
    if address is None:
        raise ActionError(f"{row.place!r} is no place you know; take one from the list, or `home`")
    longer = f"{address}:{row.object}" if row.object and address.count(":") == 1 else ""
    return places.find(longer) or address if longer else address


def _time(text: str) -> int:
    try:
        return read_time(text)
    except ValueError as error:
        raise ActionError(str(error)) from error


def _moment(text: str) -> int:
    """A time with its date; without one it is of day 2, which the goals are about."""
    for day, date in enumerate(DATES):
        if text.strip().startswith(date):
            return day * DAY + _time(text.strip()[len(date) :].replace("T", " "))
    return DAY + _time(text)
