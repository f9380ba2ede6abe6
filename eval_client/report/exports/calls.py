"""Calls and tools as plain JSON."""

import json
from collections.abc import Iterable

from pydantic import JsonValue
from pydantic_core import from_json

from proctor.types import Tool

Json = dict[str, JsonValue]


def arguments_object(text: str) -> Json | None:
    """The arguments of a call as an object; None where the model wrote something else, such as the number 1e999."""
    try:
        read = from_json(text, allow_inf_nan=False)
        json.dumps(read, allow_nan=False)
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


def offered(tools: Iterable[Tool]) -> list[JsonValue]:
    """Tools by OpenAI's function schema."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]
