"""JSON Schemas as lines of Markdown."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tools.docs.markdown import cell

Schema = Mapping[str, Any]
Link = Callable[[str], str]
"""The Markdown of a named schema's type."""


def fields(schema: Schema, link: Link) -> str:
    """A line for each property that has a meaning, and one for those whose name and type say all."""
    plain, told = list[str](), list[str]()
    for name, field in schema["properties"].items():
        default, meaning = _default(field, name in schema.get("required", [])), field.get("description", "")
        kind = ", ".join(filter(None, (type_of(field, link), default)))
        (told if meaning else plain).append(f"`{name}` ({kind})" + (f": {cell(meaning)}" if meaning else ""))
    return "\n".join(f"- {line}" for line in [*([", ".join(plain)] if plain else []), *told])


def named(schema: Schema) -> Iterator[str]:
    """The names of the schemas that a schema refers to, in their order."""
    for key, value in schema.items():
        if key == "$ref":
            yield value.rpartition("/")[2]
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, Mapping):
                yield from named(inner)


def reached(schema: Schema, definitions: Mapping[str, Schema]) -> list[str]:
    """The names of all schemas that a schema leads to, each once, nearest first."""
    names = list(dict.fromkeys(named(schema)))
    for name in names:  # grows on the way
        names += [inner for inner in dict.fromkeys(named(definitions[name])) if inner not in names]
    return names


def type_of(schema: Schema, link: Link) -> str:
    """The type of a value in words."""
    if "$ref" in schema:
        return link(schema["$ref"].rpartition("/")[2])
    if "const" in schema:
        return _code(schema["const"])
    if "enum" in schema:
        return ", ".join(map(_code, schema["enum"]))
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(type_of(each, link) for each in schema[union] if each.get("type") != "null")
    return _plain_type(schema, link)


def _plain_type(schema: Schema, link: Link) -> str:
    kind = schema.get("type")
    if kind == "array":
        if "prefixItems" in schema:
            return "list of " + ", ".join(type_of(each, link) for each in schema["prefixItems"])
        return f"list of {type_of(schema.get('items', {}), link)}"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"map to {type_of(values, link)}" if values else "object"
    return f"{kind}{_bounds(schema)}" if kind else "any JSON"


def _bounds(schema: Schema) -> str:
    words = {"minimum": "at least", "exclusiveMinimum": "over", "maximum": "at most", "exclusiveMaximum": "under"}
    bounds = [f"{word} {_number(schema[key])}" for key, word in words.items() if key in schema]
    return f", {', '.join(bounds)}" if bounds else ""


def _number(number: float) -> str:
    whole = number == int(number)
    return f"{int(number):,}".replace(",", " ") if whole else str(number)


def _default(field: Schema, required: bool) -> str:
    if required or "const" in field:
        return "required"
    default = field.get("default")
    said = isinstance(default, bool | int | float) or (isinstance(default, str | list) and default)
    return f"default {_code(default)}" if said else ""


def _code(value: object) -> str:
    return f"`{value if isinstance(value, str) else json.dumps(value)}`"
