"""Replies that mean nothing, and calls that are wrong in one way each."""

import functools
import json
from collections.abc import Sequence

from pydantic import JsonValue

from proctor.types import Action, Tool, ToolCall

GARBAGE = (
    Action(content=""),
    Action(content="\x00\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}\N{PILE OF POO}"),
    Action(content="Action: "),
    Action(content="```json\n{" + '"a":' * 50),
    Action(content="x" * 100_000),
    Action(content="", tool_calls=(ToolCall(id="1", name="no_such_tool", arguments='{"half": '),)),
)
"""Replies that are a well-formed action in no environment."""
MANY = 40
"""Calls in one reply, more than an endpoint's answer may hold."""


def garbage(tools: Sequence[Tool]) -> tuple[Action, ...]:
    """GARBAGE, and where functions are offered, calls of the first one that are wrong in one way each.

    Their ids are the same in every turn: an environment has to answer a call by an id that another call had.
    """
    first = tools[0] if tools else None
    return GARBAGE + (_bad_calls(first.name, json.dumps(dict(first.parameters))) if first else ())


@functools.lru_cache(maxsize=16)
def _bad_calls(function: str, parameters: str) -> tuple[Action, ...]:
    """Bad calls of a function with these parameters (JSON Schema), made once for all turns of a check."""
    example = _example(json.loads(parameters))
    names = list(example) if isinstance(example, dict) else []
    sound = json.dumps(example)
    arguments = (
        sound[:-1],
        "",
        json.dumps("text"),
        "[" * 50_000,
        "{}",
        json.dumps({f"no_such_{name}": "x" for name in names or ["field"]}),
        json.dumps(dict.fromkeys(names)),
        json.dumps({**dict.fromkeys(names, "x"), "no_such_field": "x"}),
        json.dumps({name: {"a": [1]} for name in names}),
    )
    broken = [_reply(ToolCall(id="1", name=function, arguments=text)) for text in arguments]
    named = [_reply(ToolCall(id="1", name=name, arguments=sound)) for name in ("", "no_such_function")]
    ids = (["1"], ["1", "2"], [""], ["", ""], ["1", "1"], [str(number) for number in range(MANY)])
    sounds = [_reply(*(ToolCall(id=id_, name=function, arguments=sound) for id_ in each)) for each in ids]
    return (*broken, *named, *sounds)


def _reply(*calls: ToolCall) -> Action:
    return Action(content="", tool_calls=calls)


def _example(schema: JsonValue) -> JsonValue:
    """A value that has the type of a JSON Schema; "x" where it says none."""
    if not isinstance(schema, dict):
        return "x"
    enum, properties = schema.get("enum"), schema.get("properties")
    if isinstance(enum, list):
        return enum[0]
    if isinstance(properties, dict):
        return {name: _example(part) for name, part in properties.items()}
    examples: dict[str, JsonValue] = {"integer": 1, "number": 1.5, "boolean": True, "object": {}, "null": None}
    kind = schema.get("type")
    return [_example(schema.get("items"))] if kind == "array" else examples.get(str(kind), "x")
