"""The problems of fields in users' files: what is wrong and where it stands, one for each mistake."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from proctor.config.model_fields import Location, known_fields
from proctor.config.wording import NUMBERS, SECRET_FIELDS, explained, given_words, nearest

Model = TypeVar("Model", bound=BaseModel)
NOTHING = object()
"""Where there is no value."""


class FieldError(ValueError):
    """A value does not fit the others; raised by validators. `location` is that of the field within the validated."""

    def __init__(self, location: Location, text: str) -> None:
        super().__init__(text)
        self.location = location


class FieldProblem(NamedTuple):
    """A wrong field."""

    location: Location
    """Fields by name; items of lists by position or by their field `name`."""
    text: str
    """What is wrong, and the fix."""

    def __str__(self) -> str:
        return ": ".join(part for part in (".".join(map(str, self.location)), self.text) if part)


class _Found(NamedTuple):
    place: int
    """Its place among all."""
    location: Location
    details: ErrorDetails

    @property
    def kind(self) -> str:
        return self.details["type"]


def validated(data: Mapping[str, object], model: type[Model]) -> tuple[Model | None, list[FieldProblem]]:
    """The model of some data; None with a problem for each mistake where there is any."""
    misread = _misread_booleans(data, model)
    try:
        value = model.model_validate(data)
    except ValidationError as error:
        found = [_Found(place, _location(data, each), each) for place, each in enumerate(error.errors())]
        chosen = [each for each in found if not any(_follows(each, other) for other in found)]
        return None, [_problem(each, data, model) for each in chosen] + misread
    return (None, misread) if misread else (value, [])


def refuse_duplicates(field: str, names: Sequence[str]) -> None:
    """Raises FieldError where two items of a list have the same name."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise FieldError((field, place, "name"), f"the name {name!r} stands twice; give each its own name")


def split_field(text: str, fields: Collection[str]) -> tuple[Location, str]:
    """The field that a validator's message begins with, as in `world: unknown`, and the rest of the message."""
    name, colon, rest = text.partition(": ")
    return ((name,), rest) if colon and name in fields else ((), text)


def value_at(data: object, part: int | str) -> object:
    """The field or item of this name or position; NOTHING where there is none."""
    if isinstance(data, Mapping):
        return data.get(part, NOTHING)
    if isinstance(data, list | tuple) and isinstance(part, int) and part < len(data):
        found: object = data[part]
        return found
    return NOTHING


def _problem(found: _Found, data: object, model: type[BaseModel]) -> FieldProblem:
    text, location = explained(found.details, found.location, model), found.location
    if found.kind != "value_error":
        return FieldProblem(location, text)
    inner, text = split_field(text, known_fields(model, location))
    value: object = data
    for part in (*location, *inner):
        value = value_at(value, part)
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    told = not plain or str(value) in text or str((*location, *inner)[-1:][0]) in SECRET_FIELDS
    return FieldProblem((*location, *inner), text if told else f"{text} ({given_words(value, in_yaml=True)})")


def _misread_booleans(data: Mapping[str, object], model: type[BaseModel]) -> list[FieldProblem]:
    """A problem for each `true` or `yes` where a number belongs, which pydantic takes for 1."""
    try:
        model.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        return [
            FieldProblem(_location(data, each), f"{NUMBERS[each['type']]} ({given_words(each['input'], in_yaml=True)})")
            for each in error.errors()
            if each["type"] in NUMBERS and isinstance(each["input"], bool)
        ]
    return []


def _location(data: object, details: ErrorDetails) -> Location:
    """Where an error is in the data: pydantic's own location without the names of types that it tried."""
    location: list[int | str] = []
    value, last = data, len(details["loc"]) - 1
    for place, part in enumerate(details["loc"]):
        found = value_at(value, part)
        if found is not NOTHING or (place == last and details["type"] == "missing"):
            location.append(part)
            value = found
    inner = details.get("ctx", {}).get("error")
    return (*location, *inner.location) if isinstance(inner, FieldError) else tuple(location)


def _follows(each: _Found, other: _Found) -> bool:
    """Whether a problem is only what follows from another one, or is the same told worse."""
    if each is other:
        return False
    if each.kind == "missing" and other.kind == "extra_forbidden" and each.location[:-1] == other.location[:-1]:
        missing, held = str(each.location[-1]), other.details["input"]
        is_deeper = isinstance(held, dict) and missing in held
        return is_deeper or nearest(str(other.location[-1]), [missing]) is not None
    if len(other.location) > len(each.location):
        return other.location[: len(each.location)] == each.location
    return each.location == other.location and (_rank(each), each.place) > (_rank(other), other.place)


def _rank(each: _Found) -> int:
    """Of several problems of one field, which a union causes, the lowest is told."""
    kinds = ("literal", "enum", "value_error", "missing", "extra")
    ranks = [rank for rank, kind in enumerate(kinds) if each.kind.startswith(kind)]
    return ranks[0] if ranks else len(kinds) + each.kind.startswith("model")
