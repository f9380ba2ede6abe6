"""Parses the replies of performer and driver: a JSON object each, with a form for each kind of request."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError, model_validator

from environments.stss import spellings
from proctor.json_objects import MAX_CHARS
from proctor.types import Value

TEXT_CHARS = 200
"""Limit of characters kept of every text but an utterance."""
MAX_ROWS = 14
MAX_NOTES = 12
UTTERANCE_WORDS = 80
UTTERANCE_CHARS = 800
"""Limit for languages without blanks between words."""
SILENCE = "..."


class FormatError(ValueError):
    """A reply without a JSON object of the requested form."""


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
        first = error.errors(include_input=False)[0]
        where, what = ".".join(map(str, first["loc"])), first["msg"].removeprefix("Value error, ")
        raise FormatError(f"{where}: {what}" if where else what) from error


def limited(text: str) -> str:
    """An utterance cut to 80 words and 800 characters; `...` if it is blank."""
    words = _plain(text).split()
    return " ".join(words[:UTTERANCE_WORDS])[:UTTERANCE_CHARS].strip() or SILENCE
