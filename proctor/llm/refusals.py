"""Recognises replies that refuse every request of a configuration: those that offer tools, or name `max_tokens`."""

import re

from proctor.llm.errors import ErrorReply

TOOLS_FIX = "start the server with its tool parser, or play the task with `parameters: {protocol: text}`"
MAX_TOKENS_FIX = "write `max_tokens_field: max_completion_tokens` beside the model's `sampling`"

_BROAD = frozenset({400, 422, 501})
_NARROW = frozenset({404, 405, 500})
"""Statuses with other causes too: a missing function in a cloud, a traceback. llama.cpp answers 500, OpenRouter 404."""
_TOOLS = re.compile(r"\btools?\b|\btool_choice\b|\bfunctions?\b", re.IGNORECASE)
_UNSUPPORTED = re.compile(
    r"\bnot support|n't support|\bunsupported\b|\bnot (been |currently )?(enabled|available|permitted|allowed)\b|"
    r"\bunrecognized\b|\brequires? --|\bendpoints found that support\b",
    re.IGNORECASE,
)
_HISTORY = re.compile(
    r"\btool[ _]calls?\b|\bfunction (call|response)s?\b|\bcall a function\b|\btool_use_failed\b|thought_signature|"
    r"\broles?\b|\b(assistant|system|tool|user) messages?\b|\bmessages?(\[|\.\d| with | at | must )",
    re.IGNORECASE,
)
"""What only a history has, or a model's own reply: other requests of the configuration may succeed."""
_MAX_TOKENS = re.compile(r"\bmax_tokens\b.*\buse\b.*\bmax_completion_tokens\b", re.IGNORECASE | re.DOTALL)


def refuses_tools(status: int, error: ErrorReply) -> bool:
    """True where a server refuses a request because it offers tools, whatever its history holds."""
    text = f"{error.code} {error.type} {error.message}"
    if status not in _BROAD | _NARROW or not _TOOLS.search(text):
        return False
    if _UNSUPPORTED.search(text):
        return True
    return status in _BROAD and not _HISTORY.search(text)


def refuses_max_tokens(status: int, error: ErrorReply) -> bool:
    """True where a server wants `max_completion_tokens` in the place of `max_tokens`."""
    return status in _BROAD and _MAX_TOKENS.search(error.message) is not None
