"""Functions that an environment offers to agents: their declaration, and the checking of a call's arguments."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Literal, TypeVar

from pydantic import JsonValue

from proctor.types import Tool

A = TypeVar("A")
"""The type of an environment's actions."""
Arguments = Mapping[str, JsonValue]
MAX_TEXT_BYTES = 64 << 10
"""Limit of each text among the arguments of a call; a longer one is a bad argument."""
SHOWN_NAME = 100
"""Characters of a name that an agent made up, in messages."""


@dataclass(frozen=True)
class Function(Generic[A]):
    """A function that an agent may call."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    """JSON Schema of the arguments, an object; `arguments_schema` makes one."""
    read: Callable[[Arguments], A]
    """The action of checked arguments. May raise ValueError: the agent is told its text."""
    write: Callable[[A], Arguments | None]
    """The arguments that ask for an action; None for an action of another function."""

    def tool(self) -> Tool:
        """The declaration that the agent's endpoint gets."""
        return Tool(name=self.name, description=self.description, parameters=dict(self.parameters))

    def checked(self, text: str, strict: bool) -> Arguments:
        """The arguments of a call, parsed and checked against `parameters`: names, presence, types, enums.

        A number where a text is asked for becomes its text; a text where a list of texts is asked for becomes a list of
        one. Unless `strict`, a single argument of any name counts for a function with one parameter, as published.
        Raises ValueError, whose text the agent is told.
        """
        return checked_arguments(self.parameters, text, strict)

    def fields(self) -> str:
        """The names and types of the arguments, for messages."""
        return ", ".join(f"{name} ({_type(schema)})" for name, schema in _properties(self.parameters).items())


def checked_arguments(parameters: Mapping[str, JsonValue], text: str, strict: bool) -> Arguments:
    """The arguments of a call, parsed and checked against their JSON Schema; see `Function.checked`.

    Raises ValueError.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no JSON: {error}") from None
    if not isinstance(given, dict):
        raise ValueError("no JSON object")
    properties = _properties(parameters)
    if not strict and len(properties) == len(given) == 1:
        given = dict(zip(properties, given.values(), strict=True))
    required = parameters.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in given:
            raise ValueError(f"{name} is missing")
    for name in given:
        if name not in properties:
            raise ValueError(f"there is no argument {name[:SHOWN_NAME]!r}")
    return {name: _value(name, value, properties[name]) for name, value in given.items()}


def arguments_schema(**properties: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The JSON Schema of an object with these properties, each required, and no others."""
    shaped: dict[str, JsonValue] = {name: dict(schema) for name, schema in properties.items()}
    return {"type": "object", "properties": shaped, "required": list(properties), "additionalProperties": False}


@dataclass(frozen=True)
class Toolset(Generic[A]):
    """The functions of an environment, or of one of its conversations."""

    functions: tuple[Function[A], ...]
    several: Literal["first", "in order"] = "first"
    """Of several calls in one reply, whether only the first is executed or all are."""
    any_name: bool = False
    """True: unless a session is strict, a call of any name calls the only function."""
    without_call: Callable[[str], A | None] = lambda content: None
    """The action of a reply that calls nothing, from its text; None where it asks for none."""

    def tools(self) -> tuple[Tool, ...]:
        """The declarations of all functions: the same tuple at each call."""
        return self._tools

    @cached_property
    def _tools(self) -> tuple[Tool, ...]:
        return tuple(function.tool() for function in self.functions)

    def names(self) -> str:
        """The names of all functions, for messages."""
        return ", ".join(function.name for function in self.functions)

    def find(self, name: str, strict: bool) -> Function[A] | None:
        """The function that a call names; None where there is none."""
        if self.any_name and not strict:
            return self.functions[0]
        return next((function for function in self.functions if function.name == name), None)


def _properties(parameters: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    properties = parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def _type(schema: JsonValue) -> str:
    if not isinstance(schema, dict):
        return "any"
    enum = schema.get("enum")
    return "one of " + ", ".join(map(str, enum)) if isinstance(enum, list) else str(schema.get("type", "any"))


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def _value(name: str, value: JsonValue, schema: JsonValue) -> JsonValue:
    """A value of the type that its schema asks for. Raises ValueError."""
    if not isinstance(schema, dict):
        return value
    wanted, enum = schema.get("type"), schema.get("enum")
    if wanted == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        value = json.dumps(value)
    if wanted == "array" and isinstance(value, str):
        value = [value]
    expected = _TYPES.get(str(wanted))
    is_bool = isinstance(value, bool) and wanted != "boolean"
    if expected is not None and (is_bool or not isinstance(value, expected)):
        raise ValueError(f"{name} must be of type {wanted}")
    if isinstance(enum, list) and value not in enum:
        raise ValueError(f"{name} must be {_type(schema)}")
    if isinstance(value, str):
        encoded = value.encode(errors="replace")  # a lone surrogate becomes `?`
        if len(encoded) > MAX_TEXT_BYTES:
            raise ValueError(f"{name} is longer than {MAX_TEXT_BYTES >> 10} KiB")
        return encoded.decode()
    if isinstance(value, list):
        return [_value(f"{name}[{place}]", item, schema.get("items", {})) for place, item in enumerate(value)]
    return value
