"""OpenEnv's frames and schemas, read and written. Nothing here does I/O."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, Field, JsonValue, TypeAdapter, ValidationError

from proctor.tools import Arguments, Function, Toolset

Object: TypeAlias = dict[str, JsonValue]
ScoreRule = Literal["last", "sum", "max"]
LIST_TOOLS: Object = {"type": "list_tools"}
"""The action to which an MCP environment answers with its tools."""
SHOWN = 300
"""Characters of what a server sent, in messages."""
OBJECT: TypeAdapter[Object] = TypeAdapter(Object)


class BadFrame(ValueError):
    """What the server sent is not a frame of this protocol."""


class EnvFrame(NamedTuple):
    """One message of a WebSocket."""

    type: str
    data: Object


class StepResult(BaseModel):
    """The data of an observation frame."""

    observation: Object
    reward: float | None = Field(default=None, allow_inf_nan=False)
    done: bool = False


def written(type_: str, data: Mapping[str, JsonValue]) -> str:
    """The text of a frame."""
    return json.dumps({"type": type_, "data": data})


def read_frame(text: str | bytes) -> EnvFrame:
    """The frame of a text. Raises BadFrame."""
    try:
        found = OBJECT.validate_json(text)
        return EnvFrame(str(found["type"]), OBJECT.validate_python(found.get("data") or {}))
    except (ValidationError, KeyError) as error:
        raise BadFrame(f"no frame with `type` and `data`: {shown(text)}") from error


def read_result(frame: EnvFrame) -> StepResult:
    """The observation in a frame. Raises BadFrame."""
    try:
        if frame.type == "observation":
            return StepResult.model_validate(frame.data)
    except ValidationError as error:
        raise BadFrame(f"no observation: {error.errors()[0]['msg']} at {error.errors()[0]['loc']}") from error
    raise BadFrame(f"a frame of type {frame.type!r} in place of an observation")


def complaint(data: Mapping[str, JsonValue]) -> str:
    """The text of an error frame, with what it says of each wrong field."""
    errors = data.get("errors")
    fields = [_wrong_field(error) for error in errors if isinstance(error, dict)] if isinstance(errors, list) else []
    return shown("; ".join([str(data.get("message", "no message")), *fields]))


def shown(text: str | bytes) -> str:
    """The beginning of a text, for messages."""
    return (text if isinstance(text, str) else text[:SHOWN].decode(errors="replace"))[:SHOWN]


def is_mcp(action_schema: Mapping[str, JsonValue]) -> bool:
    """Whether an environment takes calls of tools: its action is OpenEnv's `CallToolAction`, or has no fields."""
    fields = _properties(action_schema).keys() - {"metadata", "type"}
    return not fields or fields == {"tool_name", "arguments"}


def action_field(action_schema: Mapping[str, JsonValue]) -> str:
    """The field of an action that takes the reply's text. Raises ValueError where more than one could."""
    required = action_schema.get("required")
    names = [name for name in _texts(action_schema) if isinstance(required, list) and name in required]
    if len(names) != 1:
        fields = ", ".join(_properties(action_schema).keys() - {"metadata"})
        raise ValueError(f"action: name the field that takes the agent's reply; the server's actions have: {fields}")
    return names[0]


def text_field(observation_schema: Mapping[str, JsonValue]) -> str | None:
    """The field of an observation that the agent reads; None where not exactly one holds text."""
    names = _texts(observation_schema)
    return names[0] if len(names) == 1 else None


def observed(observation: Mapping[str, JsonValue], field: str | None) -> str:
    """What the agent reads of an observation: the text of the field, else the JSON of all there is."""
    if field is not None and field in observation:
        return _text(observation[field])
    return _text({name: value for name, value in observation.items() if value != {}})


def called(observation: Mapping[str, JsonValue]) -> str:
    """What the agent reads of a tool's result: its texts, its value, or why the call failed."""
    match observation.get("error"), observation.get("result"):
        case {"message": message}, _:
            return f"Error: {message}"
        case _, {"content": [_, *_] as parts} if all(isinstance(part, dict) and "text" in part for part in parts):
            return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict))
        case _, {"data": value}:
            return _text(value)
        case _, None:
            return observed(observation, None)
        case _, value:
            return _text(value)


def toolset(observation: Mapping[str, JsonValue]) -> Toolset[Object]:
    """The tools that a server lists, as functions whose action is a frame's data. Raises BadFrame."""
    listed = observation.get("tools")
    if not isinstance(listed, list) or not listed:
        raise BadFrame(f"no list of tools: {shown(json.dumps(observation))}")
    return Toolset(tuple(map(_function, listed)), several="in order")


def score(rewards: Sequence[float], rule: ScoreRule, bounds: tuple[float, float]) -> float | None:
    """The score of an episode's rewards, from 0 to 1; None where there are none."""
    if not rewards:
        return None
    value = {"last": rewards[-1], "sum": math.fsum(rewards), "max": max(rewards)}[rule]
    low, high = bounds
    return min(1.0, max(0.0, (value - low) / (high - low)))


def _function(tool: JsonValue) -> Function[Object]:
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        raise BadFrame(f"a tool without a name: {shown(json.dumps(tool))}")
    name, schema = str(tool["name"]), tool.get("input_schema") or tool.get("inputSchema")
    parameters: Object = schema if isinstance(schema, dict) else {"type": "object", "properties": {}}
    return Function(name, str(tool.get("description") or ""), parameters, partial(_call, name), lambda action: None)


def _call(name: str, arguments: Arguments) -> Object:
    return {"type": "call_tool", "tool_name": name, "arguments": dict(arguments)}


def _properties(schema: Mapping[str, JsonValue]) -> Object:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _texts(schema: Mapping[str, JsonValue]) -> list[str]:
    """The fields of a schema that hold text."""
    fields = _properties(schema).items()
    return [name for name, field in fields if isinstance(field, dict) and field.get("type") == "string"]


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _wrong_field(error: Mapping[str, JsonValue]) -> str:
    place = error.get("loc")
    return f"{'.'.join(map(str, place)) if isinstance(place, list) else place}: {error.get('msg')}"
