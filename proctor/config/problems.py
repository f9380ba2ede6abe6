"""What is wrong with a field, in the words of somebody who writes YAML, and where it stands."""

import datetime
import difflib
import json
import reprlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from proctor.config.patterns import WORDS
from proctor.observability.redaction import HIDDEN, looks_secret, redacted

Location = tuple[int | str, ...]
Model = TypeVar("Model", bound=BaseModel)
SECRET_FIELDS = ("api_key_env", "token_env", "api_key", "apikey", "key", "token", "secret", "password")
"""Fields whose values are hidden in messages: a key may be pasted there by mistake."""
NO_KEYS = "a key never stands in a file: put it into a variable, and name the variable in"
REQUEST_FIELDS = ("temperature", "top_p", "max_tokens", "seed", "stop", "presence_penalty", "frequency_penalty")
"""Fields of requests that people look for beside `sampling`."""
MAX_NAMES = 24
"""Known names that a message lists."""
_NUMBERS = {"int_type": "must be a whole number", "float_type": "must be a number"}
_TYPES: Mapping[str, str] = {
    **_NUMBERS,
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "int_parsing_size": "must be a whole number of at most 19 digits",
    "float_parsing": "must be a number",
    "finite_number": "must be a finite number",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be a text",
    "path_type": "must be the path of a file",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "dict_type": "must hold named fields",
    "model_type": "must hold named fields",
    "model_attributes_type": "must hold named fields",
    "string_too_short": "must not be empty",
}
_IN_YAML = {
    "must be a list": "begin each item with `- ` on a line of its own",
    "must hold named fields": "write each as `name: value` on a line of its own",
    "must be a text": "put quotes around it",
}
"""What to do about a value in YAML."""
_LIMITS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("must be more than", "gt"),
    "greater_than_equal": ("must be at least", "ge"),
    "less_than": ("must be less than", "lt"),
    "less_than_equal": ("must be at most", "le"),
}
NOTHING = object()
"""Where there is no value."""
_CHOICES = ("literal_error", "enum")


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


def validated(data: Mapping[str, object], model: type[Model]) -> tuple[Model | None, list[FieldProblem]]:
    """The model of some data; None with a problem for each mistake where there is any."""
    misread = _misread_booleans(data, model)
    try:
        value = model.model_validate(data)
    except ValidationError as error:
        return None, _problems_of(error, data, model) + misread
    return (None, misread) if misread else (value, [])


def _problems_of(error: ValidationError, data: object, model: type[BaseModel]) -> list[FieldProblem]:
    """A problem for each mistake that a model found."""
    found = [_Found(place, _location(data, each), each) for place, each in enumerate(error.errors())]
    chosen = [each for each in found if not any(_follows(each, other) for other in found)]
    return [FieldProblem(each.location, _explained(each, model)) for each in chosen]


def _misread_booleans(data: Mapping[str, object], model: type[BaseModel]) -> list[FieldProblem]:
    """A problem for each `true` or `yes` where a number belongs, which pydantic takes for 1."""
    try:
        model.model_validate_json(json.dumps(data, default=str), strict=True)
    except ValidationError as error:
        return [
            FieldProblem(_location(data, each), f"{_NUMBERS[each['type']]} ({_given(each['input'], in_yaml=True)})")
            for each in error.errors()
            if each["type"] in _NUMBERS and isinstance(each["input"], bool)
        ]
    return []


def first_problem(error: ValidationError, whole: str = "the file") -> str:
    """`field: what is wrong` of the first mistake; `whole` is what to call all of the data."""
    return next(every_problem(error, whole))


def every_problem(error: ValidationError, whole: str = "the file") -> Iterator[str]:
    """As `first_problem`, for each mistake."""
    for place, each in enumerate(error.errors()):
        yield f"{'.'.join(map(str, each['loc'])) or whole}: {_explained(_Found(place, each['loc'], each), None)}"


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known word that was probably meant."""
    lower = {each.lower(): each for each in known}
    plain = word.lower().replace("-", "_")
    close = difflib.get_close_matches(plain, lower, 1, 0.7)
    parts = [each for each in lower if len(plain) > 2 and (each in plain or plain in each)]
    return lower[(close or parts)[0]] if close or parts else None


def shown(value: object) -> str:
    """A value in short, without what may be a key."""
    return reprlib.repr(_without_keys(value))[:60]


def refuse_duplicates(field: str, names: Sequence[str]) -> None:
    """Raises FieldError where two items of a list have the same name."""
    for place, name in enumerate(names):
        if name in names[:place]:
            raise FieldError((field, place, "name"), f"the name {name!r} stands twice; give each its own name")


def value_at(data: object, part: int | str) -> object:
    """The field or item of this name or position; NOTHING where there is none."""
    if isinstance(data, Mapping):
        return data.get(part, NOTHING)
    if isinstance(data, list | tuple) and isinstance(part, int) and part < len(data):
        found: object = data[part]
        return found
    return NOTHING


class _Found(NamedTuple):
    place: int
    """Its place among all."""
    location: Location
    details: ErrorDetails

    @property
    def kind(self) -> str:
        return self.details["type"]


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
        return nearest(str(other.location[-1]), [str(each.location[-1])]) is not None
    if len(other.location) > len(each.location):
        return other.location[: len(each.location)] == each.location
    return each.location == other.location and (_rank(each), each.place) > (_rank(other), other.place)


def _rank(each: _Found) -> int:
    """Of several problems of one field, which a union causes, the lowest is told."""
    return (
        0 if each.kind in _CHOICES else 1 if each.kind == "value_error" else 3 if each.kind.startswith("model") else 2
    )


def _explained(found: _Found, model: type[BaseModel] | None) -> str:
    details, kind, location = found.details, found.kind, found.location
    value, name = details["input"], str(location[-1]) if location else ""
    context: Mapping[str, Any] = details.get("ctx", {})
    if kind == "extra_forbidden":
        return (
            _unknown(name, location, model)
            if model is not None
            else "unknown field; remove it, or correct its spelling"
        )
    if kind == "missing":
        return "is missing; add this field"
    if kind == "value_error":
        return str(context["error"])
    given = (
        " (its value is not shown)"
        if name in SECRET_FIELDS and value is not None
        else f" ({_given(value, in_yaml=model is not None)})"
    )
    if kind == "json_invalid":
        return f"not JSON: {context['error']}"
    if kind in _CHOICES:
        choices = [str(each) for each in _choices(model, location)] if model is not None else []
        close = nearest(str(value), choices)
        meant = f"; did you mean {close}?" if close else ""
        return f"must be {_listed(choices) if choices else context['expected']}{given}{meant}"
    required = _required(kind, context)
    if model is None:
        return f"{required} ({given})"
    fix = "write a value after the colon, or leave the field out" if value is None else _IN_YAML.get(required)
    return f"{required} ({given}){f'; {fix}' if fix else ''}"


def _required(kind: str, context: Mapping[str, Any]) -> str:
    """What a value must be, in words."""
    if kind in _LIMITS:
        words, limit = _LIMITS[kind]
        return f"{words} {context[limit]}"
    if kind == "string_pattern_mismatch":
        return WORDS.get(context["pattern"], "is not written as it must be")
    if kind in ("too_short", "too_long"):
        at, limit = ("at least", "min_length") if kind == "too_short" else ("at most", "max_length")
        return f"must hold {at} {context[limit]} item{'s' * (context[limit] != 1)}"
    if kind == "string_too_long":
        return f"must have at most {context['max_length']} characters"
    if kind in _CHOICES:
        return f"must be {context['expected']}"
    return _TYPES.get(kind, "is not valid")


def _unknown(name: str, location: Location, model: type[BaseModel]) -> str:
    """What to say of a field that there is not."""
    known = sorted(known_fields(model, location[:-1]))
    meant = nearest(name, known)
    if name in SECRET_FIELDS and meant is not None:
        return f"unknown field; {NO_KEYS} `{meant}`"
    if meant is not None:
        return f"unknown field; did you mean {meant}?"
    if name in REQUEST_FIELDS and "sampling" in known:
        return f"unknown field; fields of requests go into `sampling: {{{name}: ...}}`"
    homes = [] if name in SECRET_FIELDS else list(dict.fromkeys(_homes(model, name, (), frozenset())))
    elsewhere = f"it is a field of {' and '.join(homes[:2])}; " if homes else ""
    return f"unknown field; {elsewhere}fields here are {', '.join(known[:MAX_NAMES]) or 'none'}"


def known_fields(model: type[BaseModel], location: Sequence[int | str]) -> set[str]:
    """The fields of whatever models may stand at a location."""
    return {name for each in _models_at(model, location) for name in each.model_fields}


def _models_at(model: type[BaseModel], location: Sequence[int | str]) -> set[type[BaseModel]]:
    models = {model}
    for part in location:
        named = [each.model_fields[part].annotation for each in models if part in each.model_fields]
        if named:
            models = {inner for annotation in named for inner in _models(annotation)}
    return models


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    """The models among the types that an annotation is made of."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)


def _choices(model: type[BaseModel], location: Location) -> Iterator[object]:
    """The values that may stand where only some may."""
    for each in _models_at(model, location[:-1]):
        if location[-1] in each.model_fields:
            yield from _literals(each.model_fields[str(location[-1])].annotation)


def _literals(annotation: object) -> Iterator[object]:
    for part in get_args(annotation):
        if isinstance(part, str | int):
            yield part
        else:
            yield from _literals(part)


def _homes(model: type[BaseModel], name: str, path: tuple[str, ...], seen: frozenset[type]) -> Iterator[str]:
    """The paths of models within a model that have a field of this name."""
    for field, info in model.model_fields.items():
        for inner in set(_models(info.annotation)) - seen:
            if name in inner.model_fields:
                yield ".".join((*path, field))
            yield from _homes(inner, name, (*path, field), seen | {inner})


def _listed(names: Sequence[str]) -> str:
    *first, last = names[:MAX_NAMES]
    return f"{', '.join(first)} or {last}" if first else last


def _given(value: object, *, in_yaml: bool) -> str:
    """A value as its writer would know it again."""
    match value:
        case None:
            return "it is empty" if in_yaml else "got null"
        case bool():
            return f"got {str(value).lower()}{': YAML reads yes, no, on and off as true or false' * in_yaml}"
        case datetime.date():
            return f"got {value}, which YAML reads as a date"
        case list() | tuple():
            return "got a list"
        case dict():
            return f"got fields: {shown(value)}"
        case str():
            return f"got the text {shown(value)}"
    return f"got {shown(value)}"


def _without_keys(value: object) -> object:
    if isinstance(value, str):
        return HIDDEN if looks_secret(value) else redacted(value)
    if isinstance(value, dict):
        return {key: HIDDEN if key in SECRET_FIELDS else _without_keys(each) for key, each in value.items()}
    return list(map(_without_keys, value)) if isinstance(value, list) else value
