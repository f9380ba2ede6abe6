"""OpenAI Chat Completions, the dialect that most endpoints speak: builds requests, reads replies."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated

from pydantic import BeforeValidator, ConfigDict, Field, FiniteFloat, JsonValue
from pydantic_core import to_json

from proctor.llm import wire
from proctor.llm.dialects import PATHS
from proctor.llm.wire import PLAIN, Fields, Form, Messages, Reply, Request, Tools, usage_of
from proctor.tools.histories import sendable_arguments
from proctor.types import Action, History, Message, Tool, ToolCall

PATH = PATHS["chat"]
KEY_HEADER, KEY_ENV = "Authorization", "OPENAI_API_KEY"
BASE_URL_ENV, BASE_URL = "OPENAI_BASE_URL", "https://api.openai.com/v1"
LEAST_TOKENS = 1
LACKS: Mapping[str, str] = {}
MESSAGE_ECHO = frozenset(
    {"reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "provider_specific_fields"}
    | {"output_items", "content_blocks"}
)
"""Fields of an assistant message that endpoints demand back: DeepSeek, Kimi, MiMo; OpenRouter; LiteLLM; those of the
other dialects, which our own agent server passes on."""
_PLAIN_ENDS = frozenset({"stop", "length", "tool_calls", None})
REASONING_TEXT = ("reasoning_content", "reasoning")
CALL_ECHO = frozenset({"extra_content", "provider_specific_fields"})
"""Fields of a tool call that endpoints demand back: Gemini's signature; LiteLLM."""
MOST_REPLY_TOKENS = 1 << 18
"""Token ids and log probabilities of a longer reply are not kept."""


def request(conversation: Messages, tools: Tools, fields: Fields, form: Form = PLAIN) -> Request:
    """The request for the next message of a conversation; `fields` are its other ones: the model, the sampling."""
    if not wire.ONLY_WITH_TOOLS.isdisjoint(fields):
        fields = wire.fitting(fields, tools)
    messages = b",".join(_pieces(conversation, form))
    offered = b"" if not tools else b',"tools":%s' % _encoded(tuple(tools))
    beginning = b"%s," % to_json(fields)[:-1] if fields else b"{"
    return Request(PATH, {}, b'%s"messages":[%s]%s}' % (beginning, messages, offered))


def _pieces(messages: Sequence[Message], form: Form) -> Sequence[bytes]:
    """The messages in wire format. Those that a history has had before are not encoded again."""
    done, kept = messages.kept.get(form, (0, [])) if isinstance(messages, History) else (0, [])
    new = messages[done:]
    if form.system_role == "user":
        if not _is_opened(messages[:done], new):
            kept, new = [], messages
        _, new = wire.instructed(new, "user")
    pieces = [*kept, *map(to_json, messages_json(new, form.reasoning, form.system_role))]
    if isinstance(messages, History):
        messages.kept[form] = len(messages), pieces
    return pieces


def _is_opened(before: Sequence[Message], new: Sequence[Message]) -> bool:
    """Whether no new message adds to the first user message, which has the system text too."""
    return any(message.role == "user" for message in before) and all(message.role != "system" for message in new)


@lru_cache(maxsize=256)
def _encoded(tools: tuple[Tool, ...]) -> bytes:
    return to_json([tool_json(tool) for tool in tools])


def messages_json(
    messages: Sequence[Message], reasoning: wire.Reasoning = "auto", system_role: wire.SystemRole = "system"
) -> list[dict[str, object]]:
    """Messages in wire format. An assistant that only calls tools has the content null, as some require."""
    all_shaped = []
    for message in messages:
        role = system_role if message.role == "system" else message.role
        shaped: dict[str, object] = {"role": role, "content": message.content}
        if message.tool_calls:
            shaped["content"] = message.content or None
            shaped["tool_calls"] = [_sent_call(call) for call in message.tool_calls]
        if message.tool_call_id is not None:
            shaped["tool_call_id"] = message.tool_call_id
        if message.name:
            shaped["name"] = message.name
        if message.echo and (reasoning == "always" or (reasoning == "auto" and message.tool_calls)):
            shaped |= message.echo
        all_shaped.append(shaped)
    return all_shaped


def tool_call_json(call: ToolCall, arguments: str | None = None) -> dict[str, object]:
    """A tool call in wire format, with other arguments where some are given."""
    function = {"name": call.name, "arguments": call.arguments if arguments is None else arguments}
    return {"id": call.id, "type": "function", "function": function}


def _sent_call(call: ToolCall) -> dict[str, object]:
    shaped = tool_call_json(call, sendable_arguments(call.arguments))
    return {**shaped, **call.echo} if call.echo else shaped


def tool_json(tool: Tool) -> dict[str, JsonValue]:
    """A tool in wire format."""
    function: dict[str, JsonValue] = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def read(body: bytes) -> Reply:
    """The completion in a reply, read as tolerantly as possible. Raises ValidationError where there is none."""
    reply = wire.parsed(_Reply, body)
    choice, end = reply.choices[0], reply.choices[0].finish_reason
    failed = reply.error or choice.error or choice.message.refusal
    is_plain = end in _PLAIN_ENDS and bool(choice.message.content) and not failed
    return Reply(choice.action(), usage_of(reply.usage), reply.model, end, is_plain)


def _plain(content: object) -> object:
    """The text of `content`, which may be a number, or parts, whose texts are joined."""
    if isinstance(content, list | dict):
        return wire.joined_texts(content)
    return str(content) if isinstance(content, int | float) else content


def _calls(value: object) -> object:
    return [call for call in value if isinstance(call, dict)][: wire.MOST_CALLS] if isinstance(value, list) else []


Text = Annotated[str | Annotated[str, BeforeValidator(_plain)], Field(union_mode="left_to_right")] | None
"""Other than a text or null is read by our code, and only then."""


class WireFunction(wire.Wire):
    """The function of a tool call; arguments given as an object instead of a text become its JSON text."""

    name: Annotated[str, BeforeValidator(wire.plain_text)] = ""
    arguments: Annotated[str, BeforeValidator(wire.arguments_text)] = ""


NO_FUNCTION = WireFunction.model_construct(name="", arguments="")


def _function(value: object) -> object:
    return value if isinstance(value, dict | WireFunction) else NO_FUNCTION


class WireToolCall(wire.Wire):
    """A tool call. One without a name, or of another type than `function`, calls an unknown function."""

    model_config = ConfigDict(extra="allow")

    id: Annotated[str, BeforeValidator(wire.plain_text)] = ""
    """Empty where the server leaves it out."""
    function: Annotated[WireFunction, BeforeValidator(_function)] = NO_FUNCTION

    def value(self) -> ToolCall:
        """The tool call as a `ToolCall`."""
        function = self.function
        return ToolCall(id=self.id, name=function.name, arguments=function.arguments, echo=_echo(self, CALL_ECHO))


class WireToolCalls(wire.Wire):
    """The tool calls of a message, null or absent where there are none, and what goes back with it."""

    model_config = ConfigDict(extra="allow")

    tool_calls: Annotated[list[WireToolCall], BeforeValidator(_calls)] = Field(default_factory=list)
    function_call: Annotated[WireFunction | None, wire.OrNone()] = None
    """The one call of servers that know no `tool_calls`."""

    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls as `ToolCall` values, an id empty where there was none."""
        if not self.tool_calls and self.function_call is not None and self.function_call != NO_FUNCTION:
            return (ToolCall(id="", name=self.function_call.name, arguments=self.function_call.arguments),)
        return tuple(call.value() for call in self.tool_calls)

    def echo(self) -> dict[str, JsonValue]:
        """What of the message goes back to its endpoint."""
        return _echo(self, MESSAGE_ECHO)

    def reasoning_text(self) -> str:
        """What the model thought, where that is said as text."""
        extra = self.model_extra or {}
        return next((text for name in REASONING_TEXT if isinstance(text := extra.get(name), str)), "")


def _echo(part: wire.Wire, names: frozenset[str]) -> dict[str, JsonValue]:
    extra = part.model_extra or {}
    return {name: value for name, value in extra.items() if name in names and value is not None}


class _Answer(WireToolCalls):
    content: Text = None
    refusal: Text = None


class _Token(wire.Wire):
    logprob: FiniteFloat


class _Logprobs(wire.Wire):
    content: list[_Token] | None = Field(default=None, max_length=MOST_REPLY_TOKENS)


class _Choice(wire.Wire):
    message: _Answer
    finish_reason: wire.End = None
    error: object = None
    token_ids: Annotated[Annotated[list[int], Field(max_length=MOST_REPLY_TOKENS)] | None, wire.OrNone()] = None
    """vLLM's, for requests with `return_token_ids`."""
    logprobs: Annotated[_Logprobs | None, wire.OrNone()] = None
    """For requests with `logprobs`."""

    def action(self) -> Action:
        """The choice as an action; the text of a refusal is its content."""
        answer, tokens, logprobs = self.message, self.token_ids, self.logprobs
        content, has_calls = answer.content or answer.refusal or "", answer.tool_calls or answer.function_call
        if not has_calls and not tokens and logprobs is None and MESSAGE_ECHO.isdisjoint(answer.model_extra or ()):
            return Action(content=content)
        return wire.called(
            content,
            answer.calls(),
            answer.echo(),
            answer.reasoning_text(),
            cut=self.finish_reason == "length",
            token_ids=tuple(tokens or ()),
            logprobs=tuple(token.logprob for token in (logprobs and logprobs.content) or ()),
        )


class _Reply(wire.WireReply):
    choices: list[_Choice] = Field(min_length=1)
    error: object = None

    @classmethod
    def mended(cls, reply: wire.JsonObject) -> wire.JsonObject:
        """The reply with its first choice alone."""
        choices = reply.get("choices")
        return {**reply, "choices": choices[:1]} if isinstance(choices, list) else reply
