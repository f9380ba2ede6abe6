"""Anthropic's Messages: builds requests, reads replies.

A reply's blocks go back as they came where some are other than text and calls, such as thinking with its signature.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import TypedDict

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from proctor.llm import wire
from proctor.llm.dialects import PATHS
from proctor.llm.wire import PLAIN, Fields, Form, Messages, Reply, Request, Tools, usage_of
from proctor.tools.histories import NO_ANSWER, sendable_arguments
from proctor.types import Echo, Message, ToolCall

PATH = PATHS["messages"]
KEY_HEADER, KEY_ENV = "x-api-key", "ANTHROPIC_API_KEY"
BASE_URL_ENV, BASE_URL = "ANTHROPIC_BASE_URL", "https://api.anthropic.com/v1"
LEAST_TOKENS = 1
HEADERS = {"anthropic-version": "2023-06-01"}
MAX_TOKENS = 4_096
"""Sent where the sampling has no `max_tokens`, which the dialect requires."""
_NONE = ("frequency_penalty", "logit_bias", "logprobs", "presence_penalty", "seed", "top_logprobs", "user")
LACKS: Mapping[str, str] = {
    **dict.fromkeys(_NONE, ""),
    "system": "Proctor sets it itself: leave it out",
    "max_completion_tokens": "write `max_tokens`",
    "parallel_tool_calls": "write `tool_choice: {type: auto, disable_parallel_tool_use: true}`",
    "reasoning_effort": "write `thinking`, or `output_config: {effort: ...}`",
    "response_format": "write `output_config: {format: ...}`",
    "stop_sequences": "write `stop`",
}
NOTHING = "(nothing)"
"""The user's turn where it is blank, and the first one where an agent's comes first."""
ECHO = "content_blocks"
PAUSED = "pause_turn"
_CACHED: wire.JsonObject = {"cache_control": {"type": "ephemeral"}}
_PLAIN = frozenset({"text", "tool_use"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_STOPS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
_STOPS["refusal"] = "content_filter"


def request(conversation: Messages, tools: Tools, fields: Fields, form: Form = PLAIN) -> Request:
    """The request for the next message of a conversation; `fields` are its other ones: the model, the sampling."""
    told, conversation = wire.instructed(conversation, form.system_role)
    turns = _turns(conversation, form)
    body: dict[str, object] = {"max_tokens": MAX_TOKENS, **_sampled(wire.fitting(fields, tools)), "messages": turns}
    offered: list[dict[str, object]] = [
        {"name": tool.name, "description": tool.description, "input_schema": {"type": "object", **tool.parameters}}
        for tool in tools
    ]
    if form.cached_from is not None and len(told) + len(to_json((turns, offered))) >= form.cached_from:
        offered[-1:] = [{**tool, **_CACHED} for tool in offered[-1:]]
        if told:
            body["system"] = [{"type": "text", "text": told, **_CACHED}]
        for turn in [turn for turn in turns if turn["role"] == "user"][-2:]:
            turn["content"][-1] |= _CACHED
    elif told:
        body["system"] = told
    if offered:
        body["tools"] = offered
    return Request(PATH, HEADERS, to_json(body))


def _sampled(fields: Fields) -> Fields:
    """The fields under their names here."""
    sent: dict[str, JsonValue] = {**fields}
    if "stop" in sent:
        stop = sent.pop("stop")
        sent["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if isinstance(choice := sent.get("tool_choice"), str):
        sent["tool_choice"] = {"type": "any" if choice == "required" else choice}
    return sent


class _Turn(TypedDict):
    role: str
    content: list[wire.JsonObject]


def _turns(conversation: Sequence[Message], form: Form) -> list[_Turn]:
    """The messages as turns that alternate, from the user's; the results of calls come first in theirs."""
    turns: list[_Turn] = []
    for message in conversation:
        role, blocks = ("assistant", _said(message, form)) if message.role == "assistant" else ("user", _told(message))
        if not turns and role == "assistant":
            turns.append({"role": "user", "content": [_text(NOTHING)]})
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks or [_text(NOTHING)]})
    for turn in turns:
        turn["content"].sort(key=lambda block: turn["role"] == "user" and block["type"] != "tool_result")
    return turns or [{"role": "user", "content": [_text(NOTHING)]}]


def _text(text: str) -> wire.JsonObject:
    return {"type": "text", "text": text}


def _told(message: Message) -> list[wire.JsonObject]:
    """The blocks of a message to the agent; none where it is blank, which the dialect refuses."""
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.content}]
    return [_text(message.content)] if message.content.strip() else []


def _said(message: Message, form: Form) -> list[wire.JsonObject]:
    """The blocks of an answer: as they came, its calls as the conversation has them, without blank texts."""
    uses = [_use(call) for call in message.tool_calls]
    came = wire.objects(message.echo.get(ECHO)) if form.reasoning != "never" else []
    if not came:
        return [*([_text(message.content)] if message.content.strip() else []), *uses] or [_text(NO_ANSWER)]
    left, blocks = iter(uses), list[wire.JsonObject]()
    for block in came:
        kind = block.get("type")
        if kind == "tool_use":
            blocks += [{**block, **use} for use in itertools.islice(left, 1)]
        elif kind != "text" or wire.plain_text(block.get("text")).strip():
            blocks.append(block)
    blocks += left
    while blocks and blocks[-1].get("type") in _THOUGHTS:  # refused at the end of an answer
        blocks.pop()
    return blocks or [_text(NO_ANSWER)]


def _use(call: ToolCall) -> wire.JsonObject:
    given: JsonValue = from_json(sendable_arguments(call.arguments))
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def read(body: bytes) -> Reply:
    """The completion in a reply, read as tolerantly as possible. Raises ValidationError where there is none."""
    reply = wire.parsed(_Reply, body)
    blocks, stop = wire.objects(reply.content), _STOPS.get(reply.stop_reason or "", reply.stop_reason)
    texts, thoughts = ([block for block in blocks if block.get("type") == kind] for kind in ("text", "thinking"))
    called = [block for block in blocks if block.get("type") == "tool_use"]
    calls = [wire.read_call(block.get("id"), block.get("name"), block.get("input")) for block in called]
    if stop == "length" and called and called[-1] is blocks[-1] and not called[-1].get("input"):
        calls[-1] = wire.read_call(calls[-1].id, calls[-1].name, "")  # cut before its arguments
    keeps = stop == PAUSED or any(block.get("type") not in _PLAIN for block in blocks)
    echo: Echo = {ECHO: [*blocks]} if keeps else {}
    reasoning = "\n\n".join(text for block in thoughts if (text := wire.plain_text(block.get("thinking"))))
    action = wire.called(wire.joined_texts(texts), calls, echo, reasoning, cut=stop == "length")
    return Reply(action, usage_of(reply.usage), reply.model, stop)


def joined(paused: Reply, more: Reply) -> Reply:
    """The reply that a paused one and what follows it make."""
    first, last = paused.action, more.action
    blocks = [block for action in (first, last) for block in _said(action.message(), wire.PLAIN)]
    reasoning, calls = "\n\n".join(filter(None, (first.reasoning, last.reasoning))), first.tool_calls + last.tool_calls
    action = wire.called(first.content + last.content, calls, {ECHO: [*blocks]}, reasoning, cut=last.cut)
    usage = None if paused.usage is None or more.usage is None else paused.usage.plus(more.usage)
    return more._replace(action=action, usage=usage)


class _Reply(wire.WireReply):
    content: list[JsonValue]
    stop_reason: wire.End = None
