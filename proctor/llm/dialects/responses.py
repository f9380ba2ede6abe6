"""OpenAI's Responses, without state on the server: builds requests, reads replies.

The output items of a reply go back in their order, reasoning among them, in the place of its message.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import JsonValue
from pydantic_core import to_json

from proctor.llm import wire
from proctor.llm.dialects import PATHS
from proctor.llm.wire import PLAIN, Fields, Form, Messages, Reply, Request, Tools, usage_of
from proctor.tools.histories import NO_ANSWER, sendable_arguments
from proctor.types import Echo, Message, Tool, ToolCall

PATH = PATHS["responses"]
KEY_HEADER, KEY_ENV = "Authorization", "OPENAI_API_KEY"
BASE_URL_ENV, BASE_URL = "OPENAI_BASE_URL", "https://api.openai.com/v1"
LEAST_TOKENS = 16
_OURS = ("background", "conversation", "include", "input", "instructions", "previous_response_id", "store")
LACKS: Mapping[str, str] = {
    **dict.fromkeys(("frequency_penalty", "logit_bias", "logprobs", "presence_penalty", "seed", "stop"), ""),
    **dict.fromkeys(_OURS, "Proctor sets it itself: leave it out"),
    **dict.fromkeys(("max_completion_tokens", "max_output_tokens"), "write `max_tokens`"),
    "response_format": "write `text: {format: ...}`",
    "verbosity": "write `text: {verbosity: ...}`",
}
ECHO = "output_items"


def request(conversation: Messages, tools: Tools, fields: Fields, form: Form = PLAIN) -> Request:
    """The request for the next message of a conversation; `fields` are its other ones: the model, the sampling."""
    body: dict[str, object] = {
        **wire.fitting(fields, tools),
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }
    if "max_tokens" in body:
        body["max_output_tokens"] = body.pop("max_tokens")
    if "reasoning_effort" in body:
        given = fields.get("reasoning")
        body["reasoning"] = {"effort": body.pop("reasoning_effort"), **(given if isinstance(given, dict) else {})}
    if form.system_role != "developer":
        told, conversation = wire.instructed(conversation, form.system_role)
        body |= {"instructions": told} if told else {}
    body["input"] = [item for message in conversation for item in _items(message, form)]
    if tools:
        body["tools"] = [_tool(tool) for tool in tools]
    return Request(PATH, {}, to_json(body))


def _tool(tool: Tool) -> dict[str, object]:
    about = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", **about, "strict": False}


def _items(message: Message, form: Form) -> Iterator[wire.JsonObject]:
    """The items of a message."""
    if message.role == "tool":
        yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": message.content}
    elif message.role == "assistant":
        yield from _said(message, form)
    else:
        yield _message("developer" if message.role == "system" else "user", message.content)


def _message(role: str, text: str) -> wire.JsonObject:
    return {"type": "message", "role": role, "content": text}  # llama.cpp wants the type


def _said(message: Message, form: Form) -> list[wire.JsonObject]:
    """The items of an answer as they came, its calls as the conversation has them; else of its text and calls."""
    left, items = iter([_called(call) for call in message.tool_calls]), list[wire.JsonObject]()
    for item in wire.objects(message.echo.get(ECHO)):
        kind = item.get("type")
        if kind == "function_call":
            items += [{**item, **call} for call in itertools.islice(left, 1)]
        elif kind != "reasoning" or form.reasoning != "never":
            items.append(item)
    while items and items[-1].get("type") == "reasoning":  # refused without what it led to
        items.pop()
    if not items:
        text = message.content or ("" if message.tool_calls else NO_ANSWER)
        items = [_message("assistant", text)] if text else []
    return [*items, *left]


def _called(call: ToolCall) -> wire.JsonObject:
    arguments = sendable_arguments(call.arguments)
    return {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments}


def read(body: bytes) -> Reply:
    """The completion in a reply, read as tolerantly as possible. Raises ValidationError where there is none."""
    reply = wire.parsed(_Reply, body)
    items = _filled(reply.output)
    for item in items:
        item |= {name: [*_filled(item[name])] for name in ("content", "summary") if isinstance(item.get(name), list)}
    said, thought = (_parts(items, kind) for kind in ("message", "reasoning"))
    content = "".join(wire.joined_texts(parts) or wire.joined_texts(parts, "refusal") for parts in said)
    called = [item for item in items if item.get("type") == "function_call"]
    calls = [
        wire.read_call(item.get("call_id") or item.get("id"), item.get("name"), item.get("arguments"))
        for item in called
    ]
    reason = (reply.incomplete_details or _Incomplete()).reason or ("tool_calls" if calls else "stop")
    stop = "length" if reason == "max_output_tokens" else reason
    reasoning = "\n\n".join(text for parts in thought if (text := wire.joined_texts(parts)))
    echo: Echo = {ECHO: [*items]} if items else {}
    action = wire.called(content, calls, echo, reasoning, cut=stop == "length")
    return Reply(action, usage_of(reply.usage), reply.model, stop)


def _filled(objects: JsonValue) -> list[wire.JsonObject]:
    """Objects without their nulls: gateways write them for what is absent, and endpoints don't take them back."""
    return [{name: value for name, value in each.items() if value is not None} for each in wire.objects(objects)]


def _parts(items: Sequence[wire.JsonObject], kind: str) -> list[JsonValue]:
    """The contents of the items of a kind; of reasoning its summary where there is one."""
    return [item.get("summary") or item.get("content") for item in items if item.get("type") == kind]


class _Incomplete(wire.Wire):
    reason: str | None = None


class _Reply(wire.WireReply):
    output: list[JsonValue]
    incomplete_details: Annotated[_Incomplete | None, wire.OrNone()] = None
