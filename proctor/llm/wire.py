"""What the dialects of endpoints share: values of requests and replies, and how replies are read tolerantly."""

import json
import logging
from collections.abc import Mapping, Sequence
from math import ceil
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, GetCoreSchemaHandler, JsonValue, ValidationError
from pydantic_core import CoreSchema, core_schema, to_json

from proctor.observability.redaction import found_in
from proctor.types import Action, Echo, Message, Tool, ToolCall, Value

log = logging.getLogger(__name__)

Reasoning = Literal["auto", "always", "never"]
"""Which messages carry their reasoning back: those with tool calls (all, in other dialects than chat), all, none."""
SystemRole = Literal["system", "developer", "user"]
Messages = Sequence[Message]
Tools = Sequence[Tool]
Fields = Mapping[str, JsonValue]
ONLY_WITH_TOOLS = frozenset({"tool_choice", "parallel_tool_calls"})
"""Request fields that endpoints refuse in requests that offer no tools."""
MOST_TOKENS = 2**53
"""A larger count is invalid: JSON parsers that use doubles would round it."""
MOST_ECHO_BYTES = 1 << 20
CHARS_PER_TOKEN = 3.5
"""Of what is estimated."""
MOST_CALLS = 32
MOST_ARGUMENTS = 256 << 10
"""Characters of all calls of a reply together; what is beyond is cut, and so malformed."""


class Usage(Value):
    """Tokens that a completion cost; 0 where the server doesn't report them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """The prompt tokens among them that the endpoint had in its cache."""
    cache_write_tokens: int = 0
    """The prompt tokens among them that the endpoint put into its cache, and charges more for."""
    reasoning_tokens: int = 0
    """The tokens that the model thought in, which most endpoints count among the completion tokens too."""
    estimated_tokens: int = 0
    """The tokens among them that are estimated: nothing reported them."""
    billed_tokens: int = 0
    """The tokens among them whose price the endpoint told."""
    billed_money: float = 0.0
    """That price."""

    @property
    def counts(self) -> bool:
        """Whether the tokens are told: a price alone tells none, unless it is 0."""
        return bool(self.prompt_tokens or self.completion_tokens or not self.billed_money)

    def plus(self, more: "Usage") -> "Usage":
        """The sum, count by count."""
        return Usage(**{name: count + getattr(more, name) for name, count in self})


def estimated(sent: int, came: int) -> Usage:
    """The usage of a call of which the endpoint told none, by the characters that were sent and that came."""
    prompt, completion = ceil(sent / CHARS_PER_TOKEN), ceil(came / CHARS_PER_TOKEN)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, estimated_tokens=prompt + completion)


def characters(messages: Messages, tools: Tools = ()) -> int:
    """The characters of messages, of their calls and of the tools that are offered with them."""
    count = 0
    for message in messages:
        count += len(message.content)
        for call in message.tool_calls:
            count += len(call.name) + len(call.arguments)
    for tool in tools:
        count += len(tool.model_dump_json())
    return count


class Form(NamedTuple):
    """How a conversation is written."""

    reasoning: Reasoning = "auto"
    system_role: SystemRole = "system"
    caches: bool = True
    """Whether the endpoint is asked to keep the conversation in its cache, where the dialect has a word for that."""


PLAIN = Form()


class Request(NamedTuple):
    """A request for a completion."""

    path: str
    """Behind the base URL."""
    headers: Mapping[str, str]
    """Those of the dialect, beside the key's."""
    body: bytes


class Reply(NamedTuple):
    """A completion as an endpoint replied it."""

    action: Action
    usage: Usage | None
    """None where the server reports none, or no valid count: the answer is paid for and valid nevertheless."""
    model: str | None
    stop: str | None
    """Why the answer ends, in the words of chat (`stop`, `length`, `tool_calls`) where there is one."""

    def holds(self, key: str) -> bool:
        """Whether a key stands in what is kept of the reply, however its characters are escaped."""
        return found_in(key, to_json((self.action.model_dump(mode="json"), self.model, self.stop)).decode())


def fitting(fields: Fields, tools: Tools) -> Fields:
    """The fields of a request with these tools."""
    return fields if tools else {name: value for name, value in fields.items() if name not in ONLY_WITH_TOOLS}


class OrNone:
    """An annotation: what is invalid counts as not given."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_default_schema(handler(source), default=None, on_error="default")


Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None
Detail = Annotated[Count, OrNone()]
"""A count beside the usage; one that is invalid counts as not given."""
JsonObject = dict[str, JsonValue]


def objects(value: object) -> list[JsonObject]:
    """The objects of a list; none of anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


class Wire(BaseModel):
    """A part of a request or a reply; its validator is built when it is first used."""

    model_config = ConfigDict(defer_build=True)


class _Details(Wire):
    cached_tokens: Detail = None
    cache_write_tokens: Detail = None
    reasoning_tokens: Detail = None
    thinking_tokens: Detail = None


_Money = Annotated[FiniteFloat, Field(ge=0, strict=True)] | None


class _Upstream(Wire):
    upstream_inference_cost: Annotated[_Money, OrNone()] = None


_NO_DETAILS = _Details.model_construct()
_Told = Annotated[_Details | None, OrNone()]


class WireUsage(Wire):
    """The usage of a reply, in the words of any dialect."""

    prompt_tokens: Count = None
    completion_tokens: Count = None
    input_tokens: Count = None
    output_tokens: Count = None
    total_tokens: Detail = None
    cost: Annotated[_Money, OrNone()] = None
    """What the call cost, as OpenRouter tells it; without the provider's price where that is billed apart."""
    is_byok: Annotated[bool, OrNone()] = False
    cost_details: Annotated[_Upstream | None, OrNone()] = None
    prompt_tokens_details: _Told = None
    completion_tokens_details: _Told = None
    input_tokens_details: _Told = None
    output_tokens_details: _Told = None
    prompt_cache_hit_tokens: Detail = None
    """DeepSeek's name for `prompt_tokens_details.cached_tokens`."""
    cache_read_input_tokens: Detail = None
    """Anthropic's; it does not count them among the `input_tokens`, nor those below."""
    cache_creation_input_tokens: Detail = None

    def value(self) -> Usage | None:
        """The tokens that the reply cost; 0 where some are not told, or more of a kind than there are.

        None where neither a count above 0 nor a price is told: some servers write 0 for what they don't count.
        """
        counts = (self.prompt_tokens, self.completion_tokens, self.input_tokens, self.output_tokens, self.total_tokens)
        if not any(counts) and self.cost is None:
            return None
        told = self.prompt_tokens_details or self.input_tokens_details or _NO_DETAILS
        thought = self.completion_tokens_details or self.output_tokens_details or _NO_DETAILS
        cached = told.cached_tokens or self.prompt_cache_hit_tokens or self.cache_read_input_tokens or 0
        written = told.cache_write_tokens or self.cache_creation_input_tokens or 0
        prompt = self.prompt_tokens or self.input_tokens or 0
        if self.completion_tokens is None and self.output_tokens is None:
            prompt = prompt or self.total_tokens or 0
        if self.prompt_tokens is None and told is _NO_DETAILS:
            prompt += cached + written
        completion = self.completion_tokens or self.output_tokens or 0
        if self.prompt_tokens is not None:  # xAI and Gemini count reasoning in the total alone
            completion = max(completion, (self.total_tokens or 0) - prompt)
        upstream = self.cost_details.upstream_inference_cost if self.is_byok and self.cost_details else None
        return Usage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            billed_tokens=0 if self.cost is None else prompt + completion,
            billed_money=(self.cost or 0.0) + (upstream or 0.0),
            cached_tokens=cached if cached <= prompt else 0,
            cache_write_tokens=written if written <= prompt else 0,
            reasoning_tokens=thought.reasoning_tokens or thought.thinking_tokens or 0,
        )


class WireReply(Wire):
    """What the replies of all dialects hold."""

    usage: Annotated[WireUsage | None, OrNone()] = None
    model: str | None = None


Part = TypeVar("Part", bound=Wire)


def parsed(model: type[Part], body: bytes) -> Part:
    """Parse a body; lone surrogates, which models do produce, become `?`.

    Raises ValidationError.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as broken:
        try:
            whole = json.dumps(json.loads(body), ensure_ascii=False).encode(errors="replace")
            return model.model_validate_json(whole)
        except (ValueError, RecursionError):
            raise broken from None


def arguments_text(value: object) -> str:
    """The arguments of a call, given as an object instead of a text, as their JSON text."""
    return value if isinstance(value, str) else "" if value is None else to_json(value).decode()


def plain_text(value: object) -> str:
    """A text, or the text of a number; empty for anything else."""
    return str(value) if isinstance(value, int | float) else value if isinstance(value, str) else ""


def joined_texts(parts: object, name: str = "text") -> str:
    """The texts of those parts of a list that have one, joined."""
    return "".join(plain_text(part.get(name)) for part in objects(parts))


def read_call(id_: object, name: object, arguments: object) -> ToolCall:
    """A call of a reply; what is missing in it is empty."""
    return ToolCall(id=plain_text(id_), name=plain_text(name), arguments=arguments_text(arguments))


def called(content: str, calls: Sequence[ToolCall], echo: Echo, reasoning: str, *, cut: bool, **more: Any) -> Action:
    """The action of a reply with calls, or with what goes back to its endpoint; `cut`: `max_tokens` cut it."""
    calls = _cut(calls)
    echoed = [kept for kept in (echo, *(call.echo for call in calls)) if kept]
    if echoed and len(to_json(echoed)) > MOST_ECHO_BYTES:
        log.warning("an answer's reasoning is over %d bytes: it is neither kept nor sent back", MOST_ECHO_BYTES)
        echo, reasoning, calls = {}, "", tuple(call.model_copy(update={"echo": {}}) for call in calls)
    return Action(content=content, tool_calls=calls, echo=echo, reasoning=reasoning, cut=cut and bool(calls), **more)


def _cut(calls: Sequence[ToolCall]) -> tuple[ToolCall, ...]:
    """The first calls, with at most MOST_ARGUMENTS characters of arguments in sum."""
    left, cut = MOST_ARGUMENTS, list[ToolCall]()
    for call in calls[:MOST_CALLS]:
        fits = len(call.arguments) <= left
        cut.append(call if fits else call.model_copy(update={"arguments": call.arguments[:left]}))
        left -= min(left, len(call.arguments))
    return tuple(cut)


def instructed(messages: Messages, role: SystemRole) -> tuple[str, list[Message]]:
    """The system text, and the messages without it. With the role `user`, and where the user says nothing, it is in
    the first message of the user."""
    told = "\n\n".join(message.content for message in messages if message.role == "system")
    rest = [message for message in messages if message.role != "system"]
    first = next((number for number, message in enumerate(rest) if message.role == "user"), None)
    if told and first is None:
        return "", [Message(role="user", content=told), *rest]
    if not told or first is None or role != "user":
        return told, rest
    opening = rest[first].model_copy(update={"content": f"{told}\n\n{rest[first].content}"})
    return "", [*rest[:first], opening, *rest[first + 1 :]]
