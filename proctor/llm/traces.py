"""What the span of a model call records, by the conventions that `proctor.observability.tracing` names."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from pydantic import JsonValue
from pydantic_core import to_json

from proctor.observability import tracing
from proctor.observability.redaction import redacted
from proctor.observability.tracing import Attribute
from proctor.types import Message, Usage


def request_attributes(model: str, url: str, sampling: Mapping[str, JsonValue]) -> dict[str, Attribute]:
    """The attributes of a request; of its sampling those that the conventions name."""
    attributes: dict[str, Attribute] = {
        tracing.OPERATION: tracing.CHAT,
        tracing.PROVIDER: tracing.provider(urlsplit(url).hostname or ""),
        tracing.REQUEST_MODEL: model,
    }
    for field, name in tracing.REQUEST.items():
        value = sampling.get(field)
        if isinstance(value, int | float) and not isinstance(value, bool):
            attributes[name] = value
    stop = sampling.get("stop")
    ends = [stop] if isinstance(stop, str) else stop
    if isinstance(ends, list) and ends:
        attributes[tracing.STOP_SEQUENCES] = tuple(str(end) for end in ends)
    return attributes


def reply_attributes(model: str, stop: str | None, usage: Usage) -> dict[str, Attribute]:
    """The attributes of a reply."""
    return {
        tracing.RESPONSE_MODEL: model,
        tracing.FINISH_REASONS: (stop,) if stop else (),
        tracing.INPUT_TOKENS: usage.prompt_tokens,
        tracing.OUTPUT_TOKENS: usage.completion_tokens,
    }


def messages_text(messages: Sequence[Message], **more: str) -> str:
    """Messages in the shape of the conventions, with more fields in each, secrets redacted."""
    return redacted(to_json([{**_shaped(message), **more} for message in messages]).decode())


def _shaped(message: Message) -> dict[str, object]:
    if message.tool_call_id is not None:
        parts: list[dict[str, object]] = [
            {"type": "tool_call_response", "id": message.tool_call_id, "response": message.content}
        ]
    else:
        parts = [{"type": "text", "content": message.content}] if message.content else []
    parts += [
        {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.tool_calls
    ]
    return {"role": message.role, "parts": parts}
