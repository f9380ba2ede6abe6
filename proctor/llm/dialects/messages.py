"""Anthropic's Messages: builds requests, reads replies.

A reply's blocks go back as they came where some are other than text and calls, such as thinking with its signature.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Annotated, TypedDict

from pydantic import JsonValue
from pydantic_core import from_json, to_json

from proctor.llm import wire
from proctor.llm.tool_calls import NO_ANSWER, sendable_arguments
from proctor.types import Action, Message, Tool, ToolCall

PATH = "/messages"
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
"""The user's first turn where an agent's comes first."""
ECHO = "content_blocks"
PAUSED = "pause_turn"
CACHED_FROM_CHARS = 3_584
"""Shorter conversations, some 1,024 tokens, are not kept in the endpoint's cache."""
_CACHED: wire.JsonObject = {"cache_control": {"type": "ephemeral"}}
_PLAIN = frozenset({"text", "tool_use"})
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "refusal": "content_filter",
}


def request(
    conversation: Sequence[Message],
    tools: Sequence[Tool],
    fields: Mapping[str, JsonValue],
    form: wire.Form = wire.PLAIN,
) -> wire.Request:
    """The request for the next message of a conversation; `fields` are its other ones: the model, the sampling."""
    if form.system_role == "user" or all(message.role in ("system", "assistant") for message in conversation):
        conversation = wire.opened(conversation)
    told = "\n\n".join(message.content for message in conversation if message.role == "system")
    turns = _turns([message for message in conversation if message.role != "system"], form)
    body: dict[str, object] = {"max_tokens": MAX_TOKENS, **_sampled(fields, with_tools=bool(tools)), "messages": turns}
    offered = [_tool(tool) for tool in tools]
    if form.caches and _is_long(conversation, offered):
        offered[-1:] = [{**tool, **_CACHED} for tool in offered[-1:]]
        if told:
            body["system"] = [{"type": "text", "text": told, **_CACHED}]
        for turn in [turn for turn in turns if turn["role"] == "user"][-2:]:
            turn["content"][-1] |= _CACHED
    elif told:
        body["system"] = told
    if offered:
        body["tools"] = offered
    return wire.Request(PATH, HEADERS, to_json(body))


def _sampled(fields: Mapping[str, JsonValue], *, with_tools: bool) -> dict[str, JsonValue]:
    """The fields under their names here."""
    sent = {name: value for name, value in fields.items() if with_tools or name not in wire.ONLY_WITH_TOOLS}
    if "stop" in sent:
        stop = sent.pop("stop")
        sent["stop_sequences"] = [stop] if isinstance(stop, str) else stop
    if isinstance(choice := sent.get("tool_choice"), str):
        sent["tool_choice"] = {"type": "any" if choice == "required" else choice}
    return sent


def _tool(tool: Tool) -> dict[str, object]:
    schema = {"type": "object", **tool.parameters}
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _is_long(conversation: Sequence[Message], offered: Sequence[Mapping[str, object]]) -> bool:
    chars = sum(
        len(message.content) + sum(len(call.arguments) for call in message.tool_calls) for message in conversation
    )
    return chars + len(to_json(offered)) >= CACHED_FROM_CHARS


class _Turn(TypedDict):
    role: str
    content: list[wire.JsonObject]


def _turns(conversation: Sequence[Message], form: wire.Form) -> list[_Turn]:
    """The messages as turns that alternate, from the user's; the results of calls come first in theirs."""
    turns: list[_Turn] = []
    for message in conversation:
        role, blocks = ("assistant", _said(message, form)) if message.role == "assistant" else ("user", _told(message))
        if not turns and role == "assistant":
            turns.append({"role": "user", "content": [_text(NOTHING)]})
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        elif blocks:
            turns.append({"role": role, "content": blocks})
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


def _said(message: Message, form: wire.Form) -> list[wire.JsonObject]:
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
    while blocks and blocks[-1].get("type") in _THOUGHTS:  # refused at the end of an answer
        blocks.pop()
    return blocks or [_text(NO_ANSWER)]


def _use(call: ToolCall) -> wire.JsonObject:
    given: JsonValue = from_json(sendable_arguments(call.arguments))
    return {"type": "tool_use", "id": call.id, "name": call.name, "input": given}


def read(body: bytes) -> wire.Reply:
    """The completion in a reply, parsed as tolerantly as possible without guessing.

    Raises ValidationError where there is none.
    """
    reply = wire.parsed(_Reply, body)
    blocks, stop = reply.content, _STOPS.get(reply.stop_reason or "", reply.stop_reason)
    thought = [block for block in blocks if block.get("type") == "thinking"]
    calls = [
        ToolCall(
            id=wire.plain_text(block.get("id")),
            name=wire.plain_text(block.get("name")),
            arguments=wire.arguments_text(block.get("input")),
        )
        for block in blocks
        if block.get("type") == "tool_use"
    ]
    keeps = stop == PAUSED or any(block.get("type") not in _PLAIN for block in blocks)
    action = wire.called(
        wire.joined_texts([block for block in blocks if block.get("type") == "text"]),
        calls,
        wire.echo(ECHO, blocks if keeps else []),
        "\n\n".join(filter(None, (wire.plain_text(block.get("thinking")) for block in thought))),
        cut=stop == "length",
    )
    return wire.Reply(action, None if reply.usage is None else reply.usage.value(), reply.model, stop)


def joined(paused: Action, more: Action) -> Action:
    """The answer that a paused one and what follows it make."""
    blocks = [block for action in (paused, more) for block in _said(action.message(), wire.PLAIN)]
    reasoning = "\n\n".join(filter(None, (paused.reasoning, more.reasoning)))
    calls = (*paused.tool_calls, *more.tool_calls)
    return wire.called(paused.content + more.content, calls, wire.echo(ECHO, blocks), reasoning, cut=more.cut)


class _Thought(wire.Wire):
    thinking_tokens: wire.Detail = None


class _Usage(wire.Wire):
    input_tokens: wire.Count = None
    output_tokens: wire.Count = None
    cache_read_input_tokens: wire.Detail = None
    cache_creation_input_tokens: wire.Detail = None
    output_tokens_details: Annotated[_Thought | None, wire.OrNone()] = None

    def value(self) -> wire.Usage:
        """The tokens that the reply cost: a prompt's are those that were read anew, from the cache and into it."""
        cached, written = self.cache_read_input_tokens or 0, self.cache_creation_input_tokens or 0
        details = self.output_tokens_details
        return wire.Usage(
            prompt_tokens=(self.input_tokens or 0) + cached + written,
            completion_tokens=self.output_tokens or 0,
            cached_tokens=cached,
            cache_write_tokens=written,
            reasoning_tokens=(details is not None and details.thinking_tokens) or 0,
        )


class _Reply(wire.Wire):
    content: wire.Objects
    stop_reason: str | None = None
    usage: Annotated[_Usage | None, wire.OrNone()] = None
    model: str | None = None
