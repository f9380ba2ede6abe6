"""Builds requests and parses replies of OpenAI Chat Completions."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import to_json

from proctor.types import Action, Message, Tool, ToolCall, Value

MOST_TOKENS = 2**53
"""A larger count is invalid: JSON parsers that use doubles would round it."""


class Usage(Value):
    """Tokens that a completion cost; 0 where the server doesn't report them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


def request_body(
    model: str,
    messages: Sequence[Message],
    tools: Sequence[Tool],
    sampling: Mapping[str, JsonValue],
    metadata: Mapping[str, str] | None,
) -> bytes:
    """The JSON body of `POST /chat/completions`."""
    body: dict[str, object] = {**sampling, "model": model, "messages": [message_json(message) for message in messages]}
    if tools:
        body["tools"] = [tool_json(tool) for tool in tools]
    if metadata:
        body["metadata"] = dict(metadata)
    return to_json(body)


def message_json(message: Message) -> dict[str, object]:
    """A message in wire format. `content` is null where an assistant only calls tools, as some servers require."""
    shaped: dict[str, object] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        shaped["content"] = message.content or None
        shaped["tool_calls"] = [tool_call_json(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        shaped["tool_call_id"] = message.tool_call_id
    return shaped


def tool_call_json(call: ToolCall) -> dict[str, object]:
    """A tool call in wire format."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def tool_json(tool: Tool) -> dict[str, object]:
    """A tool in wire format."""
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _arguments(value: object) -> object:
    return value if isinstance(value, str) else "" if value is None else to_json(value).decode()


def _plain(content: object) -> object:
    """The text of `content`, which may also be null or a list of parts, whose texts are joined."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return "" if content is None else content


def _list(value: object) -> object:
    return [] if value is None else value


Text = Annotated[str, BeforeValidator(_plain)]
Count = Annotated[int, BeforeValidator(lambda value: 0 if value is None else value), Field(ge=0, le=MOST_TOKENS)]


class Wire(BaseModel):
    """A part of a request or a reply; its validator is built when it is first used."""

    model_config = ConfigDict(defer_build=True)


class WireFunction(Wire):
    """The function of a tool call; arguments given as an object instead of a text become its JSON text."""

    name: str
    arguments: Annotated[str, BeforeValidator(_arguments)] = ""


class WireToolCall(Wire):
    """A tool call; where the server omits its id, its position makes one."""

    id: str | None = None
    function: WireFunction

    def value(self, position: int) -> ToolCall:
        """The tool call as a `ToolCall`, given its position in the message."""
        return ToolCall(id=self.id or f"call_{position}", name=self.function.name, arguments=self.function.arguments)


class WireToolCalls(Wire):
    """The tool calls of a message, null or absent where there are none."""

    tool_calls: Annotated[list[WireToolCall], BeforeValidator(_list)] = Field(default_factory=list)

    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls as `ToolCall` values."""
        return tuple(call.value(position) for position, call in enumerate(self.tool_calls))


class _Answer(WireToolCalls):
    content: Text = ""
    refusal: Text = ""


class _Choice(Wire):
    message: _Answer
    finish_reason: str | None = None


class _Usage(Wire):
    prompt_tokens: Count = 0
    completion_tokens: Count = 0


def _known(usage: object, read: ValidatorFunctionWrapHandler) -> object:
    try:
        return read(usage)
    except ValidationError:
        return None


class ChatReply(Wire):
    """A reply, parsed as tolerantly as possible without guessing. Unknown fields are ignored."""

    choices: list[_Choice] = Field(min_length=1)
    usage: Annotated[_Usage | None, WrapValidator(_known)] = None
    """None where the server reports none, or no valid count: the answer is paid for and valid nevertheless."""
    model: str | None = None

    @classmethod
    def read(cls, body: bytes) -> "ChatReply":
        """Parse a body; lone surrogates, which models do produce, become `?`.

        Raises ValidationError.
        """
        try:
            return cls.model_validate_json(body)
        except ValidationError as broken:
            try:
                whole = json.dumps(json.loads(body), ensure_ascii=False).encode(errors="replace")
                return cls.model_validate_json(whole)
            except (ValueError, RecursionError):
                raise broken from None

    def action(self) -> Action:
        """The first choice as an action; the text of a refusal is its content."""
        answer = self.choices[0].message
        return Action(content=answer.content or answer.refusal, tool_calls=answer.calls())

    def used(self) -> Usage:
        """The tokens that the reply cost; 0 where the server reports none."""
        usage = self.usage or _Usage()
        return Usage(prompt_tokens=usage.prompt_tokens, completion_tokens=usage.completion_tokens)
