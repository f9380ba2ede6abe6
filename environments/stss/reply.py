"""Parses the performer's replies: one JSON object each, with a form for each kind of request."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from environments.stss.town.clock import DATES, DAY, END, read_time, time_text
from environments.stss.town.files import first_problem
from environments.stss.town.places import Places
from environments.stss.town.schedule import Commitment, DayPlan, Row, overlaps
from proctor.json_objects import MAX_CHARS, objects
from proctor.types import Value

TEXT_CHARS = 200
"""Limit of characters kept of every text but an utterance."""
MAX_ROWS = 14
MAX_NOTES = 12
UTTERANCE_WORDS = 80
UTTERANCE_CHARS = 800
"""Limit for languages without blanks between words."""
HOME = "home"
SILENCE = "..."
EARLIEST, LATEST = 5 * 60, 23 * 60
"""Commitments must start between these times of day, in minutes since midnight."""


class FormatError(ValueError):
    """A reply without a JSON object of the requested form."""


class ActionError(ValueError):
    """A readable reply that asks for something not allowed."""


_BLANKS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), " ")
"""Control characters, replaced so that they reach no database or page."""


def _plain(text: str) -> str:
    """A text on one line, without control characters and lone surrogates."""
    return " ".join(text.encode(errors="replace").decode().translate(_BLANKS).split())


def _short(text: str) -> str:
    return text[:TEXT_CHARS].rstrip()


def _filled(text: str) -> str:
    if not text:
        raise ValueError("must not be blank")
    return text


Speech = Annotated[str, AfterValidator(_plain)]
"""An utterance of any length; `limited` cuts it."""
Text = Annotated[Speech, AfterValidator(_short)]
Line = Annotated[Text, AfterValidator(_filled)]


class PerformerReply(Value):
    """Base of all forms of replies: unknown fields are ignored, and null means the default of an optional field."""

    model_config = ConfigDict(extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _null_is_the_default(cls, fields: object) -> object:
        if not isinstance(fields, dict):
            return fields
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: value for name, value in fields.items() if value is not None or name not in optional}


class FirstPlan(PerformerReply):
    """The reply to request T1: the first plan."""

    plan: tuple[Line, ...] = Field(min_length=3, max_length=5)


class Reminder(PerformerReply):
    """The reply to request T2: reminder and checklist."""

    schedule_reminder: Text
    checklist: tuple[Line, ...] = Field(max_length=4)


class PlannedRow(PerformerReply):
    """A row of a day's plan, not yet checked."""

    start: Text
    end: Text
    activity: Line
    place: Line
    object: Text | None = None


class Day(PerformerReply):
    """The reply to request D: the plan of a day."""

    wake: Text
    bed: Text
    schedule: tuple[PlannedRow, ...] = Field(min_length=4, max_length=MAX_ROWS)


class Encounter(PerformerReply):
    """The reply to request E: whether to talk, and the first utterance."""

    talk: bool
    utterance: Speech = ""


class Utterance(PerformerReply):
    """The reply to request U: an utterance, and whether the talk ends with it."""

    utterance: Speech
    end: bool = False


class Promise(PerformerReply):
    """A commitment, not yet checked; its times may include a date."""

    activity: Line
    place: Line
    start: Text
    end: Text


class Note(PerformerReply):
    """The reply to request N: note, commitment and changed schedule."""

    note: Text = ""
    commitment: Promise | None = None
    reschedule: Annotated[tuple[PlannedRow, ...], Field(max_length=MAX_ROWS)] | None = None


class Review(PerformerReply):
    """The reply to request R: notes."""

    notes: tuple[Line, ...] = Field(default=(), max_length=MAX_NOTES)


Kind = TypeVar("Kind", bound=PerformerReply)


def read(reply: str, kind: type[Kind]) -> Kind:
    """The first balanced JSON object in a reply that fits the form. Raises FormatError about the first object.

    A later or nested object must set a field of the form, since without required fields every object would fit.
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
    if text is None:
        raise FormatError(f"the first {{ is not closed within {MAX_CHARS} characters")
    return fitted(fields_of(text), kind)


def fields_of(text: str) -> dict[str, JsonValue]:
    """Parses an object; its strings may contain line breaks and tabs. Raises FormatError."""
    if len(text) > MAX_CHARS:
        raise FormatError(f"it has more than {MAX_CHARS} characters")
    try:
        fields = json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise FormatError("no JSON object")
    return fields


def fitted(fields: Mapping[str, JsonValue], kind: type[Kind]) -> Kind:
    """Fields as a form. Raises FormatError."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise FormatError("{}: {}".format(*first_problem(error))) from error


def limited(text: str) -> str:
    """An utterance cut to 80 words and 800 characters; `...` if it is blank."""
    words = _plain(text).split()
    return " ".join(words[:UTTERANCE_WORDS])[:UTTERANCE_CHARS].strip() or SILENCE


def rows_of(planned: tuple[PlannedRow, ...], day: int, places: Places, home: str) -> tuple[Row, ...]:
    """The rows of a day with addresses. Raises ActionError for unknown places, wrong times and overlaps."""
    rows: list[Row] = []
    for row in planned:
        start, end = day * DAY + _time(row.start), day * DAY + _time(row.end)
        if end <= start:
            raise ActionError(f"{row.start}-{row.end}: a row must end after it starts")
        if rows and start < rows[-1].end:
            end_text = time_text(rows[-1].end)
            raise ActionError(f"{row.start}: rows must be in order and must not overlap; the last ends {end_text}")
        rows.append(Row(start, end, row.activity, _address(row.place, row.object, places, home)))
    return tuple(rows)


def day_plan_of(reply: Day, day: int, places: Places, home: str) -> DayPlan:
    """The checked plan of a day. Raises ActionError."""
    wake, bed = _time(reply.wake), _time(reply.bed)
    if wake < 4 * 60 or (4 * 60 <= bed <= wake):
        raise ActionError(f"wake {reply.wake}, bed {reply.bed}: wake at 04:00 or later, and go to bed after that")
    first = day * DAY
    late = DAY if bed < wake else 0
    return DayPlan(first + wake, first + bed + late, rows_of(reply.schedule, day, places, home))


def commitment_of(promise: Promise, now: int, existing: Sequence[Commitment], places: Places, home: str) -> Commitment:
    """The checked commitment. Raises ActionError if it is past, at night, or overlaps an existing one."""
    start, end = _moment(promise.start), _moment(promise.end)
    if end <= start:
        raise ActionError(f"{promise.start}-{promise.end}: a commitment must end after it starts")
    if start <= now:
        raise ActionError(f"{promise.start}: that time is over")
    if start >= END or not EARLIEST <= start % DAY < LATEST:
        raise ActionError(f"{promise.start}: commitments begin from 05:00 to 22:40")
    for other in existing:
        if overlaps(start, end, other.start, other.end):
            raise ActionError(f"you are committed then: {other.line()}")
    address = _address(promise.place, None, places, home)
    return Commitment(activity=promise.activity, address=address, start=start, end=end)


def _address(place: str, thing: str | None, places: Places, home: str) -> str:
    """The address of a place, or of an object in it where there is one of that name."""
    if place.lower() == HOME:
        return home
    address = places.find(place)
    if address is None:
        raise ActionError(f"{place!r} is no place you know; take one from the list, or `home`")
    longer = f"{address}:{thing}" if thing and address.count(":") == 1 else ""
    return places.find(longer) or address if longer else address


def _time(text: str) -> int:
    try:
        return read_time(text)
    except ValueError as error:
        raise ActionError(str(error)) from error


def _moment(text: str) -> int:
    """The minute of a time with a date; without a date it is on day 2, the day of the goals."""
    for day, date in enumerate(DATES):
        if text.strip().startswith(date):
            return day * DAY + _time(text.strip()[len(date) :].replace("T", " "))
    return DAY + _time(text)
