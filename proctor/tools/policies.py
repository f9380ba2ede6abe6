"""Lets a policy that was written for protocol `text` play protocol `tools`."""

import contextlib
import functools
import json
from collections.abc import Callable, Sequence

from proctor.environment import Policy
from proctor.tools.functions import A, Toolset
from proctor.tools.histories import normalised
from proctor.types import Action, Message, ToolCall


def in_tools(policy: Policy, parse: Callable[[str], A], spell: Callable[[A], str], toolset: Toolset[A]) -> Policy:
    """A policy written for protocol `text`, which plays protocol `tools`.

    It sees each call of the transcript as the reply that `spell` gives for it, and each result as a user's message;
    what `parse` finds in its reply becomes a call. A reply that no function stands for stays text, and a call in
    the transcript that can't be read stays as it is.
    """

    @functools.lru_cache(maxsize=256)  # a policy is asked again about all that it has seen before
    def as_text(message: Message) -> Message:
        return _as_text(message, spell, toolset)

    def act(conversation: str, transcript: Sequence[Message]) -> Action:
        reply = policy(conversation, list(map(as_text, transcript)))
        action = parse(reply.content)
        for function in toolset.functions:
            arguments = function.write(action)
            if arguments is not None:
                text = json.dumps(arguments, ensure_ascii=False)
                call = ToolCall(id="", name=function.name, arguments=text)
                return normalised(Action(content="", tool_calls=(call,)), transcript)
        return reply

    return act


def _as_text(message: Message, spell: Callable[[A], str], toolset: Toolset[A]) -> Message:
    if message.role == "tool":
        return Message(role="user", content=message.content)
    for call in message.tool_calls:
        function = toolset.find(call.name, strict=False)
        with contextlib.suppress(ValueError):
            if function is not None:
                action = function.read(function.checked(call.arguments, strict=False))
                return Message(role="assistant", content=spell(action))
    return message
