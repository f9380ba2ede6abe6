"""What the dialects of endpoints share: requests, replies that are read tolerantly, and what a call cost."""

import json
import logging
import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, JsonValue, ValidationError
from pydantic_core import CoreSchema, core_schema, to_json

from proctor.observability.redaction import found_in
from proctor.types import Action, Echo, Message, Tool, ToolCall, Usage

if TYPE_CHECKING:
    from proctor.http.client import HttpReply

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
CHARS_PER_TOKEN = 3.5
"""Of what is estimated."""
MOST_ECHO_BYTES = 1 << 20
MOST_CALLS = 32
MOST_ARGUMENTS = 256 << 10
"""Characters of all calls of a reply together; what is beyond is cut, and so malformed."""


class Form(NamedTuple):
    """How a conversation is written."""

    reasoning: Reasoning = "auto"
    system_role: SystemRole = "system"
    cached_from: int | None = 3_584
    """From so many characters on, some 1,024 tokens, the endpoint is asked to keep the conversation in its cache, where
    the dialect has a word for that; None: never."""


PLAIN = Form()


class Request(NamedTuple):
    """A request for a completion."""

    path: str
    """Behind the base URL."""
    headers: Mapping[str, str]
    """Those of the dialect, beside the key's."""
    body: bytes
    method: str = "POST"
    is_written: bool = False
    """Whether another program wrote it, which gets the reply as it came."""


class Written(tuple[Message, ...]):
    """A conversation as a program of another's wrote it, in the endpoint's own dialect: it is sent as it is.

    As messages it is one, the text of the request's body: by that its size is estimated.
    """

    request: Request
    reply: "HttpReply | None"
    """The endpoint's reply as it came, a stream too; set where that is an answer."""
    cause: str
    """Why there is none, once that is known."""

    @classmethod
    def of(cls, request: Request) -> "Written":
        """A conversation whose request is this one."""
        made = cls((Message(role="user", content=request.body.decode()),))
        made.request, made.reply, made.cause = request, None, ""
        return made


class Reply(NamedTuple):
    """A completion as an endpoint replied it."""

    action: Action
    usage: Usage | None
    """None where the server reports none, or no valid count: the answer is paid for and valid nevertheless."""
    model: str | None
    stop: str | None
    """Why the answer ends, in the words of chat (`stop`, `length`, `tool_calls`) where there is one."""
    is_plain: bool = False
    """Whether it is words that end in the usual way, and nothing in it says that it is no answer."""
    raw: "HttpReply | None" = None
    """The whole reply, where the endpoint sent it to a request of `Written`."""

    def holds(self, key: str) -> bool:
        """Whether a key stands in what is kept of the reply, however its characters are escaped."""
        action, more = self.action, ""
        if action.tool_calls or action.echo:
            calls = [(call.id, call.name, call.arguments, call.echo) for call in action.tool_calls]
            more = to_json((calls, action.echo)).decode()
        return found_in(key, "\0".join((action.content, action.reasoning, self.model or "", self.stop or "", more)))


def fitting(fields: Fields, tools: Tools) -> Fields:
    """The fields of a request with these tools."""
    return fields if tools else {name: value for name, value in fields.items() if name not in ONLY_WITH_TOOLS}


class OrNone:
    """An annotation: what is invalid counts as not given."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_default_schema(handler(source), default=None, on_error="default")


JsonObject = dict[str, JsonValue]


def objects(value: object) -> list[JsonObject]:
    """The objects of a list; none of anything else."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


class Wire(BaseModel):
    """A part of a request or a reply; its validator is built when it is first used."""

    model_config = ConfigDict(defer_build=True)


def said_end(value: object) -> str | None:
    """A finish reason: the type of one that is told with more, as SGLang does."""
    told = value.get("type") if isinstance(value, dict) else value
    return told if isinstance(told, str) else None


End = Annotated[str | Annotated[str | None, BeforeValidator(said_end)], Field(union_mode="left_to_right")] | None


class WireReply(Wire):
    """What the replies of all dialects hold."""

    usage: object = None
    """Read by `usage_of`."""
    model: Annotated[str | None, OrNone()] = None

    @classmethod
    def mended(cls, reply: JsonObject) -> JsonObject:
        """A reply that could not be read, without what is not needed of it."""
        return reply


Part = TypeVar("Part", bound=WireReply)
MOST_NESTED = 100
"""What is nested so deep in a reply is dropped: journals can't hold it."""
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[][{}]', re.DOTALL)
"""The brackets of a JSON text, and its strings, which may hold more of them."""


def parsed(model: type[Part], body: bytes) -> Part:
    """Parse a body; lone surrogates, which models do produce, become `?`.

    Raises ValidationError.
    """
    try:
        return model.model_validate_json(body)
    except ValidationError as broken:
        try:
            reply = json.loads(shallow(body))
            whole = json.dumps(model.mended(reply), ensure_ascii=False).encode(errors="replace")
            return model.model_validate_json(whole)
        except (ValueError, AttributeError):
            raise broken from None


def shallow(body: bytes) -> bytes:
    """A JSON text with null in the place of what is nested too deep."""
    kept, depth, start = list[bytes](), 0, 0
    for mark in _BRACKETS.finditer(body):
        if mark[0] in b"[{":
            depth += 1
            if depth == MOST_NESTED:
                kept += [body[start : mark.start()], b"null"]
        elif mark[0] in b"]}":
            if depth == MOST_NESTED:
                start = mark.end()
            depth -= 1
    return b"".join([*kept, body[start:]])


def arguments_text(value: object) -> str:
    """The arguments of a call, given as an object instead of a text, as their JSON text."""
    return value if isinstance(value, str) else "" if value is None else to_json(value).decode()


def plain_text(value: object) -> str:
    """A text, or the text of a number; empty for anything else."""
    return str(value) if isinstance(value, int | float) else value if isinstance(value, str) else ""


def joined_texts(parts: object, name: str = "text") -> str:
    """The texts of those parts that have one, joined; of a text itself, or of one part that stands for its list."""
    if isinstance(parts, str):
        return parts
    return "".join(plain_text(part.get(name)) for part in objects([parts] if isinstance(parts, dict) else parts))


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
    """The first calls, with some MOST_ARGUMENTS characters of arguments in sum; none that is cut becomes empty."""
    left, cut = MOST_ARGUMENTS, list[ToolCall]()
    for call in calls[:MOST_CALLS]:
        fits = len(call.arguments) <= left
        cut.append(call if fits else call.model_copy(update={"arguments": call.arguments[: max(1, left)]}))
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


def estimated(sent: int, came: int) -> Usage:
    """The usage of a call of which the endpoint told none, by the characters that were sent and that came."""
    prompt, completion = math.ceil(sent / CHARS_PER_TOKEN), math.ceil(came / CHARS_PER_TOKEN)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, estimated_tokens=prompt + completion)


def characters(messages: Sequence[Message], tools: Sequence[Tool] = ()) -> int:
    """The characters of messages, of their calls and of the tools that are offered with them."""
    count = 0
    for message in messages:
        count += len(message.content)
        for call in message.tool_calls:
            count += len(call.name) + len(call.arguments)
    for tool in tools:
        count += len(tool.model_dump_json())
    return count


_SUMS = frozenset({"prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"})
_COUNTS = _SUMS | {
    *("total_tokens", "reasoning_tokens", "thinking_tokens"),
    *("cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"),
    *("cache_write_tokens", "cache_creation_tokens", "cache_creation_input_tokens"),
}
"""What is read of a usage and its details. Read from the cache: OpenAI's, Moonshot's and Together's; DeepSeek's;
Anthropic's."""


def usage_of(told: object) -> Usage | None:
    """The tokens that a reply cost by its usage; 0 where some are not told, or more of a kind than there are.

    None where it is invalid, or tells neither a count above 0 nor a price: some servers write 0 for what they don't
    count.
    """
    if not isinstance(told, dict):
        return None
    try:
        counts = _counts(told, _SUMS)
    except ValueError:
        return None
    prompt, taken = counts.get("prompt_tokens"), counts.get("input_tokens")
    completion, given = counts.get("completion_tokens"), counts.get("output_tokens")
    total, cost = counts.get("total_tokens", 0), _money(told["cost"]) if "cost" in told else None
    if not (prompt or completion or taken or given or total) and cost is None:
        return None
    about = told.get("prompt_tokens_details") or told.get("input_tokens_details")
    thought = told.get("completion_tokens_details") or told.get("output_tokens_details")
    details = _counts(about) if isinstance(about, dict) else {}
    cached = details.get("cached_tokens") or counts.get("prompt_cache_hit_tokens")
    cached = cached or counts.get("cache_read_input_tokens") or counts.get("cached_tokens", 0)
    written = details.get("cache_write_tokens") or details.get("cache_creation_tokens")
    written = written or counts.get("cache_creation_input_tokens", 0)
    thoughts = _counts(thought) if isinstance(thought, dict) else {}
    tokens_in, tokens_out = prompt or taken or 0, completion or given or 0
    if completion is None and given is None:
        tokens_in = tokens_in or total
    if prompt is None and not isinstance(about, dict) and "cached_tokens" not in told:  # Anthropic's are counted apart
        tokens_in += cached + written
    if total > tokens_in + tokens_out:  # xAI and Gemini count reasoning in the total alone
        tokens_out = total - tokens_in
    return Usage(
        tokens_in,
        tokens_out,
        cached if cached <= tokens_in else 0,
        thoughts.get("reasoning_tokens") or thoughts.get("thinking_tokens", 0),
        written if written <= tokens_in else 0,
        billed_tokens=0 if cost is None else tokens_in + tokens_out,
        billed_money=(cost or 0.0) + (_upstream(told) if "is_byok" in told else 0.0),
    )


def _counts(told: JsonObject, sure: frozenset[str] = frozenset()) -> dict[str, int]:
    """The counts in an object, by name. Raises ValueError where one of `sure` is none."""
    counts = dict[str, int]()
    for name, value in told.items():
        if name in _COUNTS and value is not None:
            count = value if isinstance(value, int) else _whole(value)
            if 0 <= count <= MOST_TOKENS:
                counts[name] = count
            elif name in sure:
                raise ValueError(name)
    return counts


def _whole(value: object) -> int:
    """The integer in another number or in a text; -1 where there is none."""
    try:
        return int(number) if isinstance(value, float | str) and (number := float(value)).is_integer() else -1
    except ValueError:
        return -1


def _money(value: object) -> float | None:
    """A price, or None where it is none."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < math.inf:
        return None
    return float(value)


def _upstream(told: Mapping[str, object]) -> float:
    """The provider's price, where OpenRouter tells that it is billed apart from its own."""
    details = told.get("cost_details")
    if told.get("is_byok") is not True or not isinstance(details, dict):
        return 0.0
    return _money(details.get("upstream_inference_cost")) or 0.0
