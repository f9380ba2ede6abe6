"""Parses the error replies of OpenAI-compatible servers, and recognises those about an exceeded context."""

import re
from typing import Literal, NamedTuple

from pydantic import JsonValue
from pydantic_core import from_json

from proctor.environment import AgentUnavailable


class RequestRejected(AgentUnavailable):
    """The endpoint refused a request by a status that no retry changes, such as 400; it may answer others."""


FUNCTION_RAISED = "function_raised"
"""Our own code of the error reply for an agent that is a Python function and raised an exception."""


class ErrorReply(NamedTuple):
    """The fields of an error reply, in OpenAI's terms; missing ones are empty."""

    code: str
    type: str
    message: str


class Sign(NamedTuple):
    """How a server reports that the transcript doesn't fit the context: `pattern` is found in `field`."""

    server: str
    field: Literal["code", "type", "message"]
    pattern: re.Pattern[str]


def _sign(server: str, field: Literal["code", "type", "message"], pattern: str) -> Sign:
    return Sign(server, field, re.compile(pattern, re.IGNORECASE))


CONTEXT_LIMIT_SIGNS = (
    _sign("OpenAI, Azure, Groq", "code", r"^context_length_exceeded$"),
    _sign("OpenAI", "message", r"^Invalid 'messages\[\d+\]\.content.*string too long"),
    _sign("OpenAI, Azure, vLLM, DeepSeek, OpenRouter", "message", r"\bmaximum context length is \d+ tokens"),
    _sign("OpenAI", "message", r"\binput exceeds the context window of this model"),
    _sign("SGLang", "message", r"\blonger than the model's context length"),
    _sign("SGLang", "message", r"\bexceeds the model's maximum context length"),
    _sign("llama.cpp", "type", r"^exceed_context_size_error$"),
    _sign("llama.cpp", "message", r"\brequest \(?.{0,20}\)? ?exceeds the available context size"),
    _sign("Ollama", "message", r"\binput length exceeds (the|maximum) context length"),
    _sign("Ollama", "message", r"\bprompt too long; exceeded max context length"),
    _sign("LM Studio", "message", r"\bmodel is loaded with context length of only \d+ tokens"),
    _sign("Anthropic", "type", r"^request_too_large$"),
    _sign("Anthropic", "message", r"\bprompt is too long: \d+ tokens > \d+ maximum"),
    _sign("Anthropic", "message", r"\binput length and `max_tokens` exceed context limit: "),
    _sign("Bedrock", "message", r"\bInput is too long for requested model"),
    _sign("Gemini", "message", r"\binput token count \(?\d+\)? exceeds the maximum number of tokens allowed"),
    _sign("Mistral", "message", r"\btoo large for model with \d+ maximum context length"),
    _sign("TGI, Together", "message", r"`inputs` tokens \+ `max_new_tokens` must be <= \d+"),
    _sign("LiteLLM, whatever its provider said", "message", r"\blitellm\.ContextWindowExceededError\b"),
    _sign("xAI", "message", r"\bmaximum prompt length is \d+ but the request contains \d+ tokens"),
)
"""Searched for in every error reply except those about keys and rates (401, 403, 429)."""

_RESERVES = (
    re.compile(r"\((?P<reserve>\d+) > (?P<limit>\d+) - \d+\)"),
    re.compile(r"length is (?P<limit>\d+) tokens.*\b(?P<reserve>\d+) in the completion"),
    re.compile(r"context limit: \d+ \+ (?P<reserve>\d+) > (?P<limit>\d+)"),
)
"""How servers report the tokens reserved for the answer, and the model's context length."""


def read_error(body: bytes) -> ErrorReply:
    """The fields in the body of an error reply; a body that is not JSON becomes the message."""
    try:
        data: JsonValue = from_json(body)
    except ValueError:
        return ErrorReply("", "", body.decode("utf-8", "replace"))
    if isinstance(data, list) and data:
        data = data[0]
    if isinstance(data, dict):
        data = data.get("error") or data
    if not isinstance(data, dict):
        return ErrorReply("", "", _text(data))
    return ErrorReply(_text(data.get("code")), _text(data.get("type")), _message(data))


def _message(data: dict[str, JsonValue]) -> str:
    """The message; behind it what OpenRouter was answered itself. Of an invalid request, fields without values."""
    message, metadata = data.get("message") or data.get("detail"), data.get("metadata")
    if isinstance(message, list) and all(isinstance(each, dict) and "loc" in each for each in message):
        return "; ".join(map(_problem, message))
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f"{_text(message)}: {raw}" if raw else _text(message)


def _problem(detail: JsonValue) -> str:
    assert isinstance(detail, dict)
    where = detail["loc"]
    path = ".".join(map(str, where)) if isinstance(where, list) else _text(where)
    return f"{path}: {_text(detail.get('msg'))}"


def is_context_limit(status: int, error: ErrorReply) -> bool:
    """True where the transcript doesn't fit the model's context.

    False where `max_tokens` alone exceeds the context: that is a wrong setting, with which no transcript would fit.
    """
    if status in (401, 403, 429) or not any(
        sign.pattern.search(getattr(error, sign.field)) for sign in CONTEXT_LIMIT_SIGNS
    ):
        return False
    found = next(filter(None, (shape.search(error.message) for shape in _RESERVES)), None)
    return found is None or int(found["reserve"]) < int(found["limit"])


def _text(value: JsonValue) -> str:
    return "" if value is None else str(value)
