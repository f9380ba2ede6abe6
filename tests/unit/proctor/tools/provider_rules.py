"""The rules by which OpenAI, Mistral, Bedrock, Moonshot and Gemini refuse a conversation, all at once.

Written from what their users and documents report, without our own code; a reason names who refuses.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]
NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
ID = re.compile(r"[a-zA-Z0-9]{9}")
BEFORE: Mapping[str, Collection[str | None]] = {
    "user": {None, "system", "user", "assistant"},
    "assistant": {"user", "tool"},
    "tool": {"assistant", "tool"},
    "system": {None, "system"},
}
"""role -> the roles that may come before it (Mistral, Gemini; Bedrock joins a user's neighbours)"""


def refused(request: Json, own_ids: Collection[str] = ()) -> str | None:
    """Why one of them refuses a request of chat; None where none does. `own_ids` are those that the endpoint gave."""
    messages = request["messages"]
    return _refused_order(messages) or refused_messages(messages, own_ids, offers="tools" in request)


def _refused_order(messages: Sequence[Json]) -> str | None:
    roles = ["system" if message["role"] == "developer" else str(message["role"]) for message in messages]
    for number, (before, role) in enumerate(zip([None, *roles], roles, strict=False)):
        if before not in BEFORE[role]:
            return f"messages.{number} ({role}): Mistral, Gemini: stands behind {before}"
    return None if roles[-1] in ("user", "tool") else "Mistral: the last message is none of a user or a tool"


def refused_messages(messages: Sequence[Json], own_ids: Collection[str] = (), *, offers: bool) -> str | None:
    """Why one of them refuses messages in chat's wire format; `offers`: whether functions are offered."""
    waiting: dict[str, str] = {}
    seen: set[str] = set()
    for number, message in enumerate(messages):
        role = message["role"]
        at = f"messages.{number} ({role})"
        if role == "tool":
            name = waiting.pop(message["tool_call_id"], None)
            if name is None:
                return f"{at}: OpenAI: it answers no call: {message['tool_call_id']!r}"
            if message.get("name") != name:
                return f"{at}: Gemini: its name {message.get('name')!r} is not that of its call"
        elif waiting:
            return f"{at}: OpenAI: calls before it have no answer: {', '.join(waiting)}"
        if not _text(message).strip() and not message.get("tool_calls") and role != "tool":
            return f"{at}: Bedrock, Moonshot, Mistral: it is empty"
        if _text(message) and not _text(message).strip() and role == "assistant":
            return f"{at}: Bedrock: its text is blank"
        if message.get("tool_calls") == []:
            return f"{at}: OpenAI: its list of calls is empty"
        for call in message.get("tool_calls") or []:
            if problem := _refused_call(call, seen, own_ids, offers=offers):
                return f"{at}: {problem}"
            seen.add(call["id"])
            waiting[call["id"]] = call["function"]["name"]
    return f"OpenAI: the last calls have no answer: {', '.join(waiting)}" if waiting else None


def _text(message: Json) -> str:
    return message.get("content") or ""


def _refused_call(call: Json, seen: Collection[str], own_ids: Collection[str], *, offers: bool) -> str | None:
    function = call["function"]
    if not offers:
        return "Bedrock: a call, but no functions are offered"
    if not call["id"]:
        return "OpenAI: a call has no id"
    if call["id"] in seen:
        return f"Moonshot: the id of a call stands twice: {call['id']!r}"
    if call["id"] not in own_ids and not ID.fullmatch(call["id"]):
        return f"Mistral: the id of a call is none of nine letters and digits: {call['id']!r}"
    if not NAME.fullmatch(function["name"]):
        return f"OpenAI, Bedrock: the name of a function: {function['name'][:80]!r}"
    try:
        return None if isinstance(json.loads(function["arguments"]), dict) else "vLLM: arguments are no object"
    except (ValueError, RecursionError):
        return "vLLM: arguments are no JSON"
