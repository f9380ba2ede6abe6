"""What is wrong with a value, in the words of somebody who writes YAML or JSON."""

import datetime
import reprlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from proctor.config.model_fields import Location, choices, homes, known_fields, required_fields
from proctor.observability.redaction import HIDDEN, looks_secret, redacted

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
CONTROLLER = r"^(local|https?://[^/\s@]+(/\S*)?)$"
ENV_PROXY = "env"
"""In place of a proxy's URL: the one that the variables HTTPS_PROXY, HTTP_PROXY and NO_PROXY name."""
WORDS: Mapping[str, str] = {
    NAME: "must be 1 to 64 letters, digits, dots, dashes or underscores, and begin with a letter or digit",
    VARIABLE: "must be the NAME of an environment variable: letters, digits and underscores, no digit first",
    CONTROLLER: "must be `local`, or a URL such as http://127.0.0.1:8700",
}
"""pattern of a text in users' files -> what it asks for"""
SECRET_FIELDS = ("api_key_env", "token_env", "api_key", "apikey", "key", "token", "secret", "password")
"""Fields whose values are hidden in messages: a key may be pasted there by mistake."""
NO_KEYS = "a key never stands in a file: put it into a variable, and name the variable in"
REQUEST_FIELDS = ("temperature", "top_p", "max_tokens", "seed", "stop", "presence_penalty", "frequency_penalty")
"""Fields of requests that people look for beside `sampling`."""
MISSING = "is missing; add this field"
MAX_NAMES = 24
"""Known names that a message lists."""
NUMBERS = {"int_type": "must be a whole number", "float_type": "must be a number"}
_TYPES: Mapping[str, str] = {
    **NUMBERS,
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
CHOICES = ("literal_error", "enum")


def first_problem(error: ValidationError, whole: str = "the file") -> str:
    """`field: what is wrong` of the first mistake; `whole` is what to call all of the data."""
    return next(every_problem(error, whole))


def every_problem(error: ValidationError, whole: str = "the file") -> Iterator[str]:
    """As `first_problem`, for each mistake."""
    for each in error.errors():
        yield f"{'.'.join(map(str, each['loc'])) or whole}: {explained(each, each['loc'], None)}"


def nearest(word: str, known: Collection[str]) -> str | None:
    """The known word that was probably meant."""
    from difflib import get_close_matches  # costs what only a mistake needs

    lower = {each.lower(): each for each in known}
    plain = word.lower().replace("-", "_")
    close = get_close_matches(plain, lower, 1, 0.7)
    parts = [each for each in lower if len(plain) > 2 and (each in plain or plain in each)]
    return lower[(close or parts)[0]] if close or parts else None


def shown(value: object) -> str:
    """A value in short, without what may be a key."""
    return reprlib.repr(_without_keys(value))[:60]


def explained(details: ErrorDetails, location: Location, model: type[BaseModel] | None) -> str:
    """What is wrong, and the fix; without a model for data in JSON."""
    kind = details["type"]
    value, name = details["input"], str(location[-1]) if location else ""
    context: Mapping[str, Any] = details.get("ctx", {})
    in_yaml = model is not None
    if kind == "missing":
        return MISSING
    if kind == "value_error":
        return str(context["error"])
    if kind == "json_invalid":
        return f"not JSON: {context['error']}"
    if kind == "extra_forbidden":
        return _unknown(name, location, model) if model else "unknown field; remove it, or correct its spelling"
    given = "its value is not shown" if name in SECRET_FIELDS and value else given_words(value, in_yaml=in_yaml)
    if kind in CHOICES:
        allowed = [str(each) for each in choices(model, location)] if model else []
        close = nearest(str(value), allowed)
        meant = f"; did you mean {close}?" if close else ""
        return f"must be {_listed(allowed) if allowed else context['expected']} ({given}){meant}"
    required = _required(kind, context)
    if model is None:
        return f"{required} ({given})"
    fix = "write a value after the colon, or leave the field out" if value is None else _IN_YAML.get(required)
    if value is not None and kind.startswith("model") and (names := required_fields(model, location)):
        fix = f"write {{{', '.join(f'{each}: ...' for each in names)}}}"
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
    if kind in CHOICES:
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
    if name == "protocol" and "sampling" in known:
        return "unknown field; a task has it: `parameters: {protocol: ...}` in `tasks`"
    owners = [] if name in SECRET_FIELDS else list(dict.fromkeys(homes(model, name, (), frozenset())))
    elsewhere = f"it is a field of {' and '.join(owners[:2])}; " if owners else ""
    return f"unknown field; {elsewhere}fields here are {', '.join(known[:MAX_NAMES]) or 'none'}"


def _listed(names: Sequence[str]) -> str:
    *first, last = names[:MAX_NAMES]
    return f"{', '.join(first)} or {last}" if first else last


def given_words(value: object, *, in_yaml: bool) -> str:
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
