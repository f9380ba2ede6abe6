"""Tool calls between agents and endpoints: made whole when read, and made acceptable when sent back."""

import json
from collections.abc import Sequence
from functools import lru_cache

from proctor.json_objects import is_object
from proctor.types import Action, Message, ToolCall

MALFORMED = "malformed_arguments"
MALFORMED_CHARS = 2_000
"""Of malformed arguments, what an endpoint gets to see again."""
NO_ANSWER = "(no answer)"
"""What an answer without content and calls is sent back as: endpoints refuse empty ones."""


def normalised(action: Action, history: Sequence[Message]) -> Action:
    """The action with an id for every call, each once in its conversation, and names without control characters.

    A call without an id gets `call_<k>`, k counting the calls of the conversation; an id that was there before gets
    `_2`, `_3`, ... behind it, since endpoints pair results with calls by id. `history` is the conversation so far.
    """
    if not action.tool_calls:
        return action
    earlier = [call.id for message in history if message.tool_calls for call in message.tool_calls]
    seen, calls = set(earlier), list[ToolCall]()
    for number, call in enumerate(action.tool_calls, len(earlier)):
        unique = _unseen(call.id or f"call_{number}", seen)
        seen.add(unique)
        name = "".join(char for char in call.name if char.isprintable())
        same = (unique, name) == (call.id, call.name)
        calls.append(call if same else call.model_copy(update={"id": unique, "name": name}))
    same_calls = all(made is call for made, call in zip(calls, action.tool_calls, strict=True))
    return action if same_calls else action.model_copy(update={"tool_calls": tuple(calls)})


def _unseen(wanted: str, seen: set[str]) -> str:
    unique, number = wanted, 1
    while unique in seen:
        number += 1
        unique = f"{wanted}_{number}"
    return unique


@lru_cache(maxsize=4096)
def sendable_arguments(arguments: str) -> str:
    """The arguments of a call as every endpoint takes them in a history: the text of a JSON object.

    Text that is no object is wrapped, cut to its beginning: vLLM and llama.cpp parse histories, and refuse all further
    requests of a conversation that holds such a call.
    """
    if is_object(arguments):
        return arguments
    return json.dumps({MALFORMED: arguments[:MALFORMED_CHARS]}, ensure_ascii=False)
