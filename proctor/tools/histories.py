"""The one maker of histories: an agent's calls are made whole when read, and its answers acceptable when sent back."""

import json
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from proctor.json_objects import is_object
from proctor.types import Action, History, Message, ToolCall

MALFORMED = "malformed_arguments"
MALFORMED_CHARS = 2_000
"""Of malformed arguments, what an endpoint gets to see again."""
NO_ANSWER = "(no answer)"
"""What an answer without content and calls is sent back as: endpoints refuse empty ones."""
INVALID_NAME = "invalid_name"
"""What a function is sent back as whose name has no character that endpoints allow."""
MOST_NAME_CHARS = 64
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")


def normalised(action: Action, history: Sequence[Message]) -> Action:
    """The action with an id for every call, each once in its conversation, and names without control characters.

    A call without an id, or with one that was there before, gets one of nine letters and digits, since Mistral takes no
    others: `call00001`, where the number is that of the call in its conversation, or the next one that is free.
    Endpoints pair results with calls by id. `history` is the conversation so far.
    """
    if not action.tool_calls:
        return action
    earlier = [call.id for message in history if message.tool_calls for call in message.tool_calls]
    seen, calls = set(earlier), list[ToolCall]()
    for number, call in enumerate(action.tool_calls, len(earlier) + 1):
        unique = call.id if call.id and call.id not in seen else _made_id(number, seen)
        seen.add(unique)
        name = "".join(char for char in call.name if char.isprintable())
        same = (unique, name) == (call.id, call.name)
        calls.append(call if same else call.model_copy(update={"id": unique, "name": name}))
    same_calls = all(made is call for made, call in zip(calls, action.tool_calls, strict=True))
    return action if same_calls else action.model_copy(update={"tool_calls": tuple(calls)})


def _made_id(number: int, seen: set[str]) -> str:
    while (made := f"call{number:05}") in seen:
        number += 1
    return made


def sendable(conversation: Sequence[Message]) -> Sequence[Message]:
    """The conversation as every endpoint takes it in a request; what is played and kept stays as the model wrote it.

    Function names have at most 64 of the characters a-z, A-Z, 0-9, _ and -; arguments are JSON objects; calls that
    nothing answers, as where no functions were offered, are left out; an answer without words and calls has some words;
    what answers a call has the function's name. Ids stay: some endpoints keep in them what they need again.
    What a history has had before is not made again: before a request it ends with what the agent is told.
    """
    if not isinstance(conversation, History):
        return _sent(conversation, {})
    if conversation.sent is None:
        conversation.sent = History(), {}
    made, names = conversation.sent
    made.extend(_sent(conversation[len(made) :], names))
    return made


def _sent(messages: Sequence[Message], names: dict[str, str]) -> list[Message]:
    """Messages as they are sent; `names` are those of the functions by the ids of their calls so far."""
    sent: list[Message] = []
    for number, message in enumerate(messages, 1):
        changed: dict[str, object] = {}
        if message.role == "assistant":
            calls = message.tool_calls
            if calls:
                calls = _sent_calls(message, messages[number:])
                names.update((call.id, call.name) for call in calls)
                if calls != message.tool_calls:
                    changed["tool_calls"] = calls
            if not message.content or message.content.isspace():
                changed["content"] = "" if calls else NO_ANSWER
        elif names and message.tool_call_id in names:
            changed["name"] = names[message.tool_call_id]
        sent.append(message.model_copy(update=changed) if changed else message)
    return sent


def _sent_calls(message: Message, behind: Sequence[Message]) -> tuple[ToolCall, ...]:
    """The calls of a message as they are sent; those without an answer only at the end of a conversation."""
    calls = message.tool_calls
    if calls and behind:
        answered = {each.tool_call_id for each in takewhile(lambda each: each.role == "tool", behind)}
        calls = tuple(call for call in calls if call.id in answered)
    return tuple(map(_sent_call, calls))


def _sent_call(call: ToolCall) -> ToolCall:
    name, arguments = sendable_name(call.name), sendable_arguments(call.arguments)
    if (name, arguments) == (call.name, call.arguments):
        return call
    return call.model_copy(update={"name": name, "arguments": arguments})


def sendable_name(name: str) -> str:
    """The name of a function as every endpoint takes it in a history; the same for the same name."""
    return _NOT_IN_NAMES.sub("", name)[:MOST_NAME_CHARS] or INVALID_NAME


@lru_cache(maxsize=4096)
def sendable_arguments(arguments: str) -> str:
    """The arguments of a call as every endpoint takes them in a history: the text of a JSON object.

    Text that is no object is wrapped, cut to its beginning: vLLM and llama.cpp parse histories, and refuse all further
    requests of a conversation that holds such a call.
    """
    if is_object(arguments):
        return arguments
    return json.dumps({MALFORMED: arguments[:MALFORMED_CHARS]}, ensure_ascii=False)
