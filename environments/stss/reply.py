"""Parses the replies of performer and driver: a JSON object each, with a form for each kind of request."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Annotated, ClassVar, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from environments.stss import spellings
from environments.stss.town.files import first_problem
from environments.stss.town.schedule import DAY, END, Commitment, DayPlan, Row, day_of, overlaps, time_text
from environments.stss.town.world import Places
from proctor.json_objects import MAX_CHARS
from proctor.types import Value

TEXT_CHARS = 200
"""Limit of characters kept of every text but an utterance."""
MAX_ROWS = 14
MAX_NOTES = 12
UTTERANCE_WORDS = 80
UTTERANCE_CHARS = 800
"""Limit for languages without blanks between words."""
HOUR, ERRAND = 60, 20
"""Minutes of a commitment without an end, and of a leg of an errand."""
SILENCE = "..."
NIGHT = 6 * 60
"""Minutes after midnight until which a day's bedtime may be."""
EVENING, MORNING = 18 * 60, 12 * 60
"""A row from one to the other, in minutes since midnight, ends at midnight at the earliest."""
EARLIEST, LATEST = 5 * 60, 23 * 60
"""Commitments must start between these times of day, in minutes since midnight."""


class FormatError(ValueError):
    """A reply without a JSON object of the requested form."""


class ActionError(ValueError):
    """A readable reply that asks for something not allowed."""


class CannotBeKept(ActionError):
    """A readable commitment that is past, at night, or overlaps another one."""


_BLANKS = dict.fromkeys((*range(0x20), *range(0x7F, 0xA0)), " ")
"""Control characters, replaced so that they reach no database or page."""


def _plain(text: str) -> str:
    """A text on one line, without control characters and lone surrogates."""
    return " ".join(text.encode(errors="replace").decode().translate(_BLANKS).split())


def _filled(text: str) -> str:
    if not text:
        raise ValueError("must not be blank")
    return text


def _joined(value: JsonValue) -> JsonValue:
    """A list of texts as one text."""
    texts = [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
    return ", ".join(texts) if texts == value else value


Speech = Annotated[str, BeforeValidator(_joined), AfterValidator(_plain)]
"""An utterance of any length; `limited` cuts it."""
Text = Annotated[Speech, AfterValidator(lambda text: text[:TEXT_CHARS].rstrip())]
Line = Annotated[Text, AfterValidator(_filled)]
Listed = BeforeValidator(spellings.listed)


class PerformerReply(Value):
    """Base of all forms of replies: unknown fields are ignored, and null means the default of an optional field.

    Numbers are texts where texts are wanted.
    """

    model_config = ConfigDict(extra="ignore", coerce_numbers_to_str=True)
    bare: ClassVar[str] = ""
    """The field that a list, or a commitment, without a name stands for."""

    @classmethod
    def fields(cls, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Fields under their own names; a start and an end may be put in others."""
        named = spellings.renamed(given, frozenset(cls.model_fields))
        return spellings.timed(named) if "start" in cls.model_fields else named

    @model_validator(mode="before")
    @classmethod
    def _as_written(cls, fields: object) -> object:
        if not isinstance(fields, dict):
            return fields
        optional = {name for name, field in cls.model_fields.items() if not field.is_required()}
        return {name: value for name, value in cls.fields(fields).items() if value is not None or name not in optional}


class FirstPlan(PerformerReply):
    """The reply to request T1: the first plan."""

    bare = "plan"

    plan: Annotated[tuple[Line, ...], Field(min_length=3, max_length=5), Listed]


class Reminder(PerformerReply):
    """The reply to request T2: reminder and checklist."""

    schedule_reminder: Text
    checklist: Annotated[tuple[Line, ...], Field(max_length=4), Listed]


class PlannedRow(PerformerReply):
    """A row of a day's plan, not yet checked."""

    start: Text
    end: Text
    activity: Line
    place: Line | None
    object: Text | None = None


class Day(PerformerReply):
    """The reply to request D: the plan of a day."""

    wake: Text
    bed: Text
    schedule: Annotated[tuple[PlannedRow, ...], Field(min_length=4, max_length=MAX_ROWS), Listed]


class RoughDay(PerformerReply):
    """A plan of a day of which only a part may be readable."""

    wake: Text | None = None
    bed: Text | None = None
    schedule: Annotated[tuple[JsonValue, ...], Listed] = ()


class Encounter(PerformerReply):
    """The reply to request E: whether to talk, and the first utterance."""

    talk: bool
    utterance: Speech = ""

    @classmethod
    def fields(cls, given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        """Fields under their own names; who says something talks, and who says nothing does not."""
        named = super().fields(given)
        return {"talk": bool(named["utterance"])} | named if "utterance" in named else named


class Utterance(PerformerReply):
    """The reply to request U: an utterance, and whether the talk ends with it."""

    utterance: Speech
    end: bool = False


class Promise(PerformerReply):
    """A commitment, not yet checked; its times may include a date. No place is home, no end an hour."""

    activity: Line
    place: Line | None
    start: Text
    end: Text | None = None

    @model_validator(mode="before")
    @classmethod
    def _is_agreed(cls, given: object) -> object:
        if isinstance(given, dict) and not spellings.agreed(given):
            raise ValueError(f"is it agreed to? Say true or false in {', '.join(spellings.AGREED)}")
        return given


def promises(value: JsonValue) -> list[JsonValue]:
    """The commitments in a value: without empty ones, those not agreed to, and the lists that some lie in."""
    entries = [] if spellings.verdict(value) is False else spellings.listed(value)
    while len(entries) == 1 and isinstance(entries[0], list):
        entries = entries[0]
    legs = (leg for entry in entries if not spellings.nothing(entry) for leg in _legs(entry))
    return [leg for leg in legs if not isinstance(leg, dict) or spellings.agreed(leg) is not False]


def _legs(entry: JsonValue) -> Sequence[JsonValue]:
    """The legs of an errand without times of its own; else the entry."""
    if isinstance(entry, dict) and "start" not in Promise.fields(entry):
        for legs in entry.values():
            if isinstance(legs, list) and legs and all(isinstance(leg, dict) for leg in legs):
                return legs
    return [entry]


def _one(value: JsonValue) -> JsonValue:
    """The only commitment in a value, or None."""
    made = promises(value)
    if len(made) > 1:
        raise ValueError("at most one commitment")
    return made[0] if made else None


class Note(PerformerReply):
    """The reply to request N: note, commitment and changed schedule. A schedule without rows changes nothing."""

    bare = "commitment"

    note: Text = ""
    commitment: Annotated[Promise | None, BeforeValidator(_one)] = None
    reschedule: Annotated[
        Annotated[tuple[PlannedRow, ...], Field(max_length=MAX_ROWS)] | None,
        BeforeValidator(lambda value: spellings.listed(value) or None),
    ] = None


class Review(PerformerReply):
    """The reply to request R: notes."""

    bare = "notes"

    notes: Annotated[tuple[Line, ...], Field(max_length=MAX_NOTES), Listed] = ()


Kind = TypeVar("Kind", bound=PerformerReply)


def read(reply: str, kind: type[Kind], *, last: bool = False) -> Kind:
    """The first JSON value in a reply that fits the form, or the last one. Raises FormatError about the first one.

    Models that drive people write drafts before their answer, so of theirs the last one counts, of those that set the
    form's list if some do. Lists count where no object fits; several commitments that stand alone are a list.
    """
    fits, lists, alone = list[Kind](), list[Kind](), list[JsonValue]()
    problem: FormatError | None = None
    for value in spellings.values(spellings.without_fence(reply)):
        if value == {}:
            continue
        try:
            fit = fitted(value, kind)
        except FormatError as error:
            problem = problem or error
            continue
        if isinstance(value, list):
            lists.append(fit)
        elif kind.bare and _is_promise(value) and not _names(value, kind):
            alone += [value] if value not in alone else []
        else:
            fits.append(fit)
    fits = [fit for fit in fits if last and kind.bare in fit.model_fields_set] or fits
    fits = fits or ([fitted(alone, kind)] if alone else lists)
    if not fits:
        raise problem or FormatError("there is no JSON object with a field in it")
    return fits[-1 if last else 0]


def _names(value: JsonValue, kind: type[PerformerReply]) -> bool:
    """Whether it is an object with a field of the form."""
    return isinstance(value, dict) and bool(kind.fields(value).keys() & kind.model_fields.keys())


def _is_promise(value: JsonValue) -> bool:
    """Whether it is an object with an activity and a time or place."""
    named = Promise.fields(value).keys() & Promise.model_fields.keys() if isinstance(value, dict) else set()
    return "activity" in named and len(named) > 1


def _unwrapped(value: JsonValue, kind: type[PerformerReply], layers: int = 5) -> JsonValue:
    """What keys that are no fields of the form, or a list, are put around; a list itself only under a single key."""
    inner: JsonValue = None
    if isinstance(value, list):
        inner = value[0] if len(value) == 1 and (not kind.bare or _names(value[0], kind)) else None
    elif isinstance(value, dict) and not (kind.bare and _is_promise(value)):
        texts = (next(spellings.values(part), part) if isinstance(part, str) else part for part in value.values())
        parts = [part for part in texts if part and isinstance(part, dict | list)]
        if len(parts) == 1 and (isinstance(parts[0], dict) or len(value) == 1):
            inner = parts[0] if _names(parts[0], kind) or not _names(value, kind) else None
        if {spellings.bare(name) for name in (*kind.model_fields, "error")} & set(map(spellings.bare, value)):
            inner = None
    return _unwrapped(inner, kind, layers - 1) if inner is not None and layers else value


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


def fitted(value: JsonValue, kind: type[Kind]) -> Kind:
    """A value as a form, with at most one key or list around it. Raises FormatError, also where it sets no field.

    A list, or one commitment, stands for a form's list.
    """
    try:
        value = _unwrapped(value, kind)
        if isinstance(value, list) and kind.bare:
            value = {kind.bare: value}
        if not isinstance(value, dict):
            raise FormatError("no JSON object")
        named = kind.fields(value)
        lost = [name for name, part in named.items() if any(map(_is_promise, spellings.listed(part)))]
        if kind.bare and kind.bare not in named and _is_promise(value):
            value = value | {kind.bare: [value]}
        elif value and (not _names(value, kind) or (kind.bare and kind.bare not in named and lost)):
            raise FormatError(f"{', '.join(lost or value)}: its fields are {', '.join(kind.model_fields)}"[:TEXT_CHARS])
        return kind.model_validate(value)
    except RecursionError as error:
        raise FormatError("it is nested too deeply") from error
    except ValidationError as error:
        where, what = first_problem(error)
        raise FormatError(f"{where}: {what}" if error.errors()[0]["loc"] else what) from error


def limited(text: str) -> str:
    """An utterance cut to 80 words and 800 characters; `...` if it is blank."""
    words = _plain(text).split()
    return " ".join(words[:UTTERANCE_WORDS])[:UTTERANCE_CHARS].strip() or SILENCE


def rows_of(planned: tuple[PlannedRow, ...], day: int, places: Places, home: str) -> tuple[Row, ...]:
    """The rows of a day with addresses. Raises ActionError for unknown places, wrong times and overlaps."""
    rows: list[Row] = []
    for row in planned:
        start, end = day * DAY + _time(row.start, day), day * DAY + (_time(row.end, day) or DAY)
        if end % DAY <= MORNING and start % DAY >= EVENING:
            end = max(end, (day + 1) * DAY)
        if end <= start:
            raise ActionError(f"{row.start}-{row.end}: a row must end after it starts")
        if rows and start < rows[-1].end:
            end_text = time_text(rows[-1].end)
            raise ActionError(f"{row.start}: rows must be in order and must not overlap; the last ends {end_text}")
        rows.append(Row(start, end, row.activity, _address(row.place, row.object, places, home)))
    return tuple(rows)


def day_plan_of(reply: Day, day: int, places: Places, home: str) -> DayPlan:
    """The checked plan of a day. Raises ActionError."""
    wake, bed = _time(reply.wake, day), _time(reply.bed, day)
    if wake < 4 * 60 or (4 * 60 <= bed <= wake):
        raise ActionError(f"wake {reply.wake}, bed {reply.bed}: wake at 04:00 or later, and go to bed after that")
    first = day * DAY
    late = DAY if bed < wake else 0
    return DayPlan(first + wake, first + bed + late, rows_of(reply.schedule, day, places, home))


def readable_day(reply: RoughDay, day: int, places: Places, home: str) -> DayPlan:
    """What can be read of a day's plan, without rows that overlap an earlier one. Raises ActionError if nothing."""
    rows = list[Row]()
    for each in reply.schedule:
        with suppress(ValueError):
            (row,) = rows_of((fitted(each, PlannedRow),), day, places, home)
            rows += [row] if not any(overlaps(row.start, row.end, one.start, one.end) for one in rows) else []
    for wake, bed in ((reply.wake, reply.bed), (None, None)):
        with suppress(ActionError):
            if rows or wake or bed:
                times = Day.model_construct(wake=wake or "07:00", bed=bed or "23:00", schedule=())
                return day_plan_of(times, day, places, home)._replace(rows=tuple(sorted(rows)))
    raise ActionError("no row of the schedule can be read")


def day_at_home(day: int) -> DayPlan:
    """A day without a plan."""
    return DayPlan(day * DAY + 7 * 60, day * DAY + 23 * 60, ())


def commitment_of(
    promise: Promise, now: int, existing: Sequence[Commitment], places: Places, home: str, *, length: int = HOUR
) -> Commitment:
    """The checked commitment; without an end it is `length` minutes long.

    Raises ActionError for an unknown place or time, and CannotBeKept if it is past, at night, or overlaps an existing
    one.
    """
    start, end = _span(promise, now, length)
    address = _address(promise.place, None, places, home)
    if end <= start:
        raise ActionError(f"{promise.start}-{promise.end}: a commitment must end after it starts")
    if start <= now:
        raise CannotBeKept(f"{promise.start}: that time is over")
    if start >= END or not EARLIEST <= start % DAY < LATEST:
        raise CannotBeKept(f"{promise.start}: commitments begin from 05:00 to 22:40 of the two days")
    for other in existing:
        if overlaps(start, end, other.start, other.end):
            raise CannotBeKept(f"you are committed then: {other.line()}")
    return Commitment(activity=promise.activity, address=address, start=start, end=end)


def _span(promise: Promise, now: int, length: int) -> tuple[int, int]:
    """Start and end; without a date a start is on day 2, the day of the goals, and an end on the day of its start."""
    try:
        start = spellings.moment(promise.start, day_of(now), 1)
        if promise.end is None or spellings.nothing(promise.end):
            return start, start + length
        if promise.end.startswith("+"):
            return start, start + spellings.length(promise.end[1:])
        end = spellings.moment(promise.end, day_of(now), day_of(start))
    except ValueError as error:
        raise ActionError(str(error)) from error
    return start, end + DAY if end == day_of(start) * DAY else end


def _address(place: str | None, thing: str | None, places: Places, home: str) -> str:
    """The address of a place, or of an object in it where there is one of that name."""
    if place is None or spellings.at_home(place):
        return home
    found = filter(None, map(places.find, spellings.place_names(place)))
    address = next(found, None)
    if address is None:
        raise ActionError(f"{place!r} is no place you know; take one from the list, or `home`")
    longer = f"{address}:{thing}" if thing and address.count(":") == 1 else ""
    return places.find(longer) or address if longer else address


def _time(text: str, day: int) -> int:
    """Minutes since the midnight of a day; the night after it ends at 06:00."""
    try:
        minute = spellings.moment(text, day, day) - day * DAY
    except ValueError as error:
        raise ActionError(str(error)) from error
    if not 0 <= minute < DAY + NIGHT:
        raise ActionError(f"{text!r} is not on the day that is planned")
    return minute
