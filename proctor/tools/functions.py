"""Functions that an environment offers to agents: their declaration, and the checking of a call's arguments."""

import ast
import contextlib
import json
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, Literal, TypeVar

from pydantic import JsonValue

from proctor.json_objects import objects
from proctor.types import Tool

A = TypeVar("A")
"""The type of an environment's actions."""
Arguments = Mapping[str, JsonValue]
MAX_TEXT_BYTES = 64 << 10
"""Limit of each text among the arguments of a call; a longer one is a bad argument."""
SHOWN_NAME = 100
"""Characters of a name that an agent made up, in messages."""
SHOWN_NAMES = 3
"""Such names in one message."""
_MAX_LITERAL = 16_384
"""Characters of arguments that are tried as a Python literal: the parser's stack is finite."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,9}")


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
    by_name: bool = False
    """True: every session reads the arguments by their names. Else one that is not strict takes the first argument of
    a call, whatever its name, for the parameter of a function that has one, as published (AgentBench FC)."""
    needs_none: bool = False
    """True: a call may leave out every argument, though the declaration requires some."""

    def tool(self) -> Tool:
        """The declaration that the agent's endpoint gets."""
        return Tool(name=self.name, description=self.description, parameters=dict(self.parameters))

    def checked(self, text: str, strict: bool) -> Arguments:
        """The declared arguments of a call, checked against `parameters`: presence, types, enums; others are ignored.

        A number where a text is asked for becomes its text, a text that is an integer where one is asked for becomes
        that, and a text where a list of texts is asked for becomes a list of one. Raises ValueError, whose text the
        agent is told.
        """
        given = given_arguments(text, strict)
        if self._by_place(strict):
            given = dict(zip(_properties(self.parameters), given.values(), strict=False))
        return checked_arguments({**self.parameters, "required": []} if self.needs_none else self.parameters, given)

    def ignored(self, text: str, strict: bool) -> int:
        """How many arguments of a call that could be read are ignored."""
        try:
            given = given_arguments(text, strict)
        except ValueError:
            return 0
        declared = _properties(self.parameters)
        return max(0, len(given) - 1) if self._by_place(strict) else len(given.keys() - declared.keys())

    def _by_place(self, strict: bool) -> bool:
        return not (strict or self.by_name) and len(_properties(self.parameters)) == 1

    def fields(self) -> str:
        """The names and types of the arguments, for messages."""
        return ", ".join(f"{name} ({_type(schema)})" for name, schema in _properties(self.parameters).items())


def given_arguments(text: str, strict: bool = False) -> Arguments:
    """The arguments of a call as they were written. Raises ValueError where the text is no JSON object.

    A strict session also reads an object that stands in a JSON text, in a fence or among words, or that has single
    quotes or bare line breaks, and no text as no arguments: what is meant is the same.
    """
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        given = _written_otherwise(text) if strict else None
        if given is None:
            raise ValueError(f"no JSON: {error}") from None
    if strict and isinstance(given, str):
        given = _written_otherwise(given)
    if not isinstance(given, dict):
        raise ValueError("no JSON object")
    return given


def _written_otherwise(text: str) -> dict[str, JsonValue] | None:
    """The JSON object that a text means which is not JSON itself; None where it means none."""
    if not text.strip():
        return {}
    found = next(objects(text), None) or ""
    readers: tuple[Callable[[str], object], ...] = (lambda each: json.loads(each, strict=False), _python_literal)
    for read in readers:
        with contextlib.suppress(ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            value = json.loads(json.dumps(read(found)))  # a TypeError for what is no JSON, such as a set
            return value if isinstance(value, dict) else None
    return None


def _python_literal(text: str) -> object:
    """The value of a Python literal. Raises what `ast.literal_eval` raises, and ValueError for a long text."""
    if len(text) > _MAX_LITERAL:
        raise ValueError("too long")
    with warnings.catch_warnings(action="ignore"):
        return ast.literal_eval(text)


def checked_arguments(parameters: Mapping[str, JsonValue], given: Arguments) -> Arguments:
    """Those of the arguments that a JSON Schema declares; see `Function.checked`. Raises ValueError."""
    properties, required = _properties(parameters), parameters.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in given:
            others = ", ".join(repr(other[:SHOWN_NAME]) for other in [*given][:SHOWN_NAMES])
            raise ValueError(f"{name} is missing" + (f", there is no argument {others}" if others else ""))
    return {name: _value(name, value, properties[name]) for name, value in given.items() if name in properties}


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
    if wanted == "integer" and isinstance(value, str) and _INTEGER.fullmatch(value):
        value = int(value)
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
