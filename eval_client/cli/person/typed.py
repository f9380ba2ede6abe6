"""Reads what a person typed as an action: a text, or calls of the functions that are offered."""

import json
from collections.abc import Sequence

from pydantic import JsonValue

from proctor.types import Action, Tool, ToolCall

IN_WORDS = ">"
"""Begins an answer that calls no function where functions are offered."""


class UnreadableInput(ValueError):
    """What the person typed calls no function; the message says how to."""


def parse_answer(text: str, tools: Sequence[Tool], turn: int) -> Action:
    """The action that a person typed. Without tools it is the text itself. Raises UnreadableInput.

    With tools it is one or more calls: a function's name, then its arguments as a JSON object. Where a function has one
    argument, that may follow as it is.
    """
    if not tools:
        return Action(content=text)
    if text.lstrip().startswith(IN_WORDS):
        return Action(content=text.lstrip().removeprefix(IN_WORDS).strip())
    calls: list[ToolCall] = []
    rest = text.strip()
    while rest:
        tool, rest = _named(rest, tools)
        arguments, rest = _arguments(tool, rest)
        calls.append(made_call(tool, arguments, turn, len(calls)))
    if not calls:
        raise UnreadableInput("name a function")
    return Action(content="", tool_calls=tuple(calls))


def made_call(tool: Tool, arguments: str, turn: int, place: int = 0) -> ToolCall:
    """A call with an id of its own; `place` counts the calls of the same turn."""
    return ToolCall(id=f"typed-{turn}-{place}", name=tool.name, arguments=arguments)


def argument_schemas(tool: Tool) -> dict[str, dict[str, JsonValue]]:
    """argument -> its JSON Schema, in the order declared; {} for one that has none."""
    properties = tool.parameters.get("properties")
    declared = properties if isinstance(properties, dict) else {}
    return {name: schema if isinstance(schema, dict) else {} for name, schema in declared.items()}


def parse_argument(tool: Tool, name: str, text: str) -> JsonValue:
    """An argument that was typed alone: text stays as it is; anything else is JSON. Raises UnreadableInput."""
    kind = argument_schemas(tool).get(name, {}).get("type", "string")
    if kind == "string":
        return text
    try:
        value: JsonValue = json.loads(text)
    except ValueError:
        if kind == "array":
            return [text]  # as environments read it
        raise UnreadableInput(f"{name} is of type {kind}: write it as JSON") from None
    return value


def _named(text: str, tools: Sequence[Tool]) -> tuple[Tool, str]:
    """The function whose name a text begins with, and the rest."""
    for tool in sorted(tools, key=lambda tool: -len(tool.name)):
        rest = text.removeprefix(tool.name)
        if rest != text and (not rest or rest[0].isspace() or rest[0] == "{"):
            return tool, rest.lstrip()
    names = ", ".join(tool.name for tool in tools)
    raise UnreadableInput(
        f"no function has this name; there are: {names}; {IN_WORDS} at the beginning answers in words"
    )


def _arguments(tool: Tool, text: str) -> tuple[str, str]:
    """The JSON text of a call's arguments, and what follows them."""
    if text.startswith("{"):
        try:
            _, end = json.JSONDecoder().raw_decode(text)
        except ValueError as error:
            raise UnreadableInput(f"{tool.name}: its arguments are no JSON object: {error}") from None
        return text[:end], text[end:].lstrip()
    names = list(argument_schemas(tool))
    if not names:
        return "{}", text
    if not text and not tool.parameters.get("required"):
        return "{}", ""
    if len(names) == 1 and text:
        return json.dumps({names[0]: parse_argument(tool, names[0], text)}, ensure_ascii=False), ""
    raise UnreadableInput(f'{tool.name}: give its arguments as a JSON object, {{"{names[0]}": ...}}')
