"""Parses replies of OpenAI Chat Completions."""

import json
import logging
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    GetCoreSchemaHandler,
    JsonValue,
    ValidationError,
)
from pydantic_core import CoreSchema, core_schema, to_json

from proctor.observability.redaction import found_in
from proctor.types import Action, ToolCall, Value

log = logging.getLogger(__name__)

MOST_TOKENS = 2**53
"""A larger count is invalid: JSON parsers that use doubles would round it."""


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


MESSAGE_ECHO = frozenset(
    {"reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "provider_specific_fields"}
)
"""Fields of an assistant message that endpoints demand back: DeepSeek, Kimi, MiMo; OpenRouter; LiteLLM."""
REASONING_TEXT = ("reasoning_content", "reasoning")
CALL_ECHO = frozenset({"extra_content", "provider_specific_fields"})
"""Fields of a tool call that endpoints demand back: Gemini's signature; LiteLLM."""
MOST_ECHO_BYTES = 1 << 20
MOST_CALLS = 32
MOST_ARGUMENTS = 256 << 10
"""Characters of all calls of a reply together; what is beyond is cut, and so malformed."""
MOST_REPLY_TOKENS = 1 << 18
"""Token ids and log probabilities of a longer reply are not kept."""


def _arguments(value: object) -> object:
    return value if isinstance(value, str) else "" if value is None else to_json(value).decode()


def _plain(content: object) -> object:
    """The text of `content`, which may be a number, or a list of parts, whose texts are joined."""
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    if isinstance(content, int | float):
        return str(content)
    return content


def _calls(value: object) -> object:
    return value[:MOST_CALLS] if isinstance(value, list) else []


def _text_or_nothing(value: object) -> object:
    return str(value) if isinstance(value, int | float) else value if isinstance(value, str) else ""


class OrNone:
    """An annotation: what is invalid counts as not given."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.with_default_schema(handler(source), default=None, on_error="default")


Text = Annotated[str | Annotated[str, BeforeValidator(_plain)], Field(union_mode="left_to_right")] | None
"""Other than a text or null is read by our code, and only then."""
Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)] | None


class Wire(BaseModel):
    """A part of a request or a reply; its validator is built when it is first used."""

    model_config = ConfigDict(defer_build=True)


class WireFunction(Wire):
    """The function of a tool call; arguments given as an object instead of a text become its JSON text."""

    name: Annotated[str, BeforeValidator(_text_or_nothing)] = ""
    arguments: Annotated[str, BeforeValidator(_arguments)] = ""


NO_FUNCTION = WireFunction.model_construct(name="", arguments="")


def _function(value: object) -> object:
    return value if isinstance(value, dict | WireFunction) else NO_FUNCTION


class WireToolCall(Wire):
    """A tool call. One without a name, or of another type than `function`, calls an unknown function."""

    model_config = ConfigDict(extra="allow")

    id: Annotated[str, BeforeValidator(_text_or_nothing)] = ""
    """Empty where the server leaves it out."""
    function: Annotated[WireFunction, BeforeValidator(_function)] = NO_FUNCTION

    def value(self) -> ToolCall:
        """The tool call as a `ToolCall`."""
        function = self.function
        return ToolCall(id=self.id, name=function.name, arguments=function.arguments, echo=_echo(self, CALL_ECHO))


class WireToolCalls(Wire):
    """The tool calls of a message, null or absent where there are none, and what goes back with it."""

    model_config = ConfigDict(extra="allow")

    tool_calls: Annotated[list[WireToolCall], BeforeValidator(_calls)] = Field(default_factory=list)
    function_call: WireFunction | None = None
    """The one call of servers that know no `tool_calls`."""

    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls as `ToolCall` values, an id empty where there was none."""
        if not self.tool_calls and self.function_call is not None:
            return (ToolCall(id="", name=self.function_call.name, arguments=self.function_call.arguments),)
        return tuple(call.value() for call in self.tool_calls)

    def echo(self) -> dict[str, JsonValue]:
        """What of the message goes back to its endpoint."""
        return _echo(self, MESSAGE_ECHO)

    def reasoning_text(self) -> str:
        """What the model thought, where that is said as text."""
        extra = self.model_extra or {}
        return next((text for name in REASONING_TEXT if isinstance(text := extra.get(name), str)), "")


def _cut(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """The calls with at most MOST_ARGUMENTS characters of arguments in sum."""
    left, cut = MOST_ARGUMENTS, list[ToolCall]()
    for call in calls:
        fits = len(call.arguments) <= left
        cut.append(call if fits else call.model_copy(update={"arguments": call.arguments[:left]}))
        left -= min(left, len(call.arguments))
    return tuple(cut)


def _echo(part: Wire, names: frozenset[str]) -> dict[str, JsonValue]:
    extra = part.model_extra or {}
    return {name: value for name, value in extra.items() if name in names and value is not None}


class _Answer(WireToolCalls):
    content: Text = None
    refusal: Text = None


class _Token(Wire):
    logprob: FiniteFloat


class _Logprobs(Wire):
    content: list[_Token] | None = Field(default=None, max_length=MOST_REPLY_TOKENS)


class _Choice(Wire):
    message: _Answer
    finish_reason: str | None = None
    token_ids: Annotated[Annotated[list[int], Field(max_length=MOST_REPLY_TOKENS)] | None, OrNone()] = None
    """vLLM's, for requests with `return_token_ids`."""
    logprobs: Annotated[_Logprobs | None, OrNone()] = None
    """For requests with `logprobs`."""


Detail = Annotated[Count, OrNone()]
"""A count beside the usage; one that is invalid counts as not given."""


class _PromptDetails(Wire):
    cached_tokens: Detail = None


class _CompletionDetails(Wire):
    reasoning_tokens: Detail = None


class _Usage(Wire):
    prompt_tokens: Count = None
    completion_tokens: Count = None
    prompt_tokens_details: Annotated[_PromptDetails | None, OrNone()] = None
    completion_tokens_details: Annotated[_CompletionDetails | None, OrNone()] = None
    prompt_cache_hit_tokens: Detail = None
    """DeepSeek's name for `prompt_tokens_details.cached_tokens`."""


class ChatReply(Wire):
    """A reply, parsed as tolerantly as possible without guessing. Unknown fields are ignored."""

    choices: list[_Choice] = Field(min_length=1)
    usage: Annotated[_Usage | None, OrNone()] = None
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
        choice, answer = self.choices[0], self.choices[0].message
        content, tokens, logprobs = answer.content or answer.refusal or "", choice.token_ids, choice.logprobs
        has_calls = bool(answer.tool_calls) or answer.function_call is not None
        if not has_calls and not tokens and logprobs is None and MESSAGE_ECHO.isdisjoint(answer.model_extra or ()):
            return Action(content=content)
        calls, echo, reasoning = _cut(answer.calls()), answer.echo(), answer.reasoning_text()
        echoed = [kept for kept in (echo, *(call.echo for call in calls)) if kept]
        if echoed and len(to_json(echoed)) > MOST_ECHO_BYTES:
            log.warning("an answer's reasoning is over %d bytes: it is neither kept nor sent back", MOST_ECHO_BYTES)
            echo, reasoning, calls = {}, "", tuple(call.model_copy(update={"echo": {}}) for call in calls)
        return Action(
            content=content,
            tool_calls=calls,
            echo=echo,
            reasoning=reasoning,
            cut=choice.finish_reason == "length" and bool(calls),
            token_ids=tuple(tokens or ()),
            logprobs=tuple(token.logprob for token in (logprobs and logprobs.content) or ()),
        )

    def holds(self, key: str) -> bool:
        """Whether a key stands in what is kept of the reply, however its characters are escaped."""
        kept = self.action().model_dump(mode="json"), self.model, self.choices[0].finish_reason
        return found_in(key, to_json(kept).decode())

    def used(self) -> Usage:
        """The tokens that the reply cost; 0 where the server reports none, or more cached ones than the prompt has."""
        if (usage := self.usage) is None:
            return Usage()
        prompt, details = usage.prompt_tokens or 0, usage.prompt_tokens_details
        cached = (details is not None and details.cached_tokens) or usage.prompt_cache_hit_tokens or 0
        thought = usage.completion_tokens_details
        return Usage(
            prompt_tokens=prompt,
            completion_tokens=usage.completion_tokens or 0,
            cached_tokens=cached if cached <= prompt else 0,
            reasoning_tokens=(thought is not None and thought.reasoning_tokens) or 0,
        )
