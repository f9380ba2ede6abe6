"""Reads an agent's replies as actions, from their text or their calls; lets a policy for text play protocol `tools`."""

import contextlib
import functools
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Literal

from proctor.environment import Policy
from proctor.json_objects import is_object
from proctor.tools.functions import SHOWN_NAME, A, Toolset
from proctor.tools.histories import normalised
from proctor.types import Action, FinishReason, Message, ParsedAction, Tool, ToolCall

NOT_EXECUTED = "Only one call per turn is executed; this one was not."
UnreadableKind = Literal["no_call", "bad_arguments", "unknown_function"]
"""What is wrong with a call; also the finish metric that counts it."""


@dataclass(frozen=True)
class UnreadableCall:
    """A call, or a reply without one, that asks for nothing the environment can execute."""

    why: str
    """What the agent is told."""
    kind: UnreadableKind


@dataclass(frozen=True)
class ParsedReply(Generic[A]):
    """What a reply asks for."""

    actions: tuple[A | UnreadableCall, ...]
    """To be executed in order; at least one."""
    call_ids: tuple[str, ...] = ()
    """The ids of all calls of the reply, those of `actions` first; empty where the reply calls nothing."""

    def answered(self, texts: Sequence[str]) -> tuple[Message, ...]:
        """The messages after the turn, from the text that answers each action.

        Every call gets its tool message: endpoints refuse a history in which a call has no answer.
        """
        if not self.call_ids:
            return tuple(Message(role="user", content=text) for text in texts)
        padded = [*texts, *[NOT_EXECUTED] * (len(self.call_ids) - len(texts))]
        return tuple(
            Message(role="tool", content=text, tool_call_id=id_)
            for text, id_ in zip(padded, self.call_ids, strict=True)
        )


class ReplyReader(ABC, Generic[A]):
    """How the replies of one session are read. A session makes its own: a grammar counts what it reads."""

    tools: tuple[Tool, ...] = ()
    """The functions that each observation offers."""

    @abstractmethod
    def read(self, reply: Action) -> ParsedReply[A]:
        """What a reply asks for."""

    def metrics(self) -> dict[str, float]:
        """Finish metrics about the replies read so far."""
        return {}

    def limit_reason(self) -> FinishReason:
        """Why a session that reached its turn limit ended."""
        return FinishReason.TURN_LIMIT


class TextReader(ReplyReader[A]):
    """Reads the action in a reply's text; `parse` represents a reply without one by an action of its own kind."""

    def __init__(self, parse: Callable[[str], A]) -> None:
        self._parse = parse

    def read(self, reply: Action) -> ParsedReply[A]:
        return ParsedReply((self._parse(reply.content),))


def parsed_action(reader: ReplyReader[A], reply: Action, shown: Callable[[A], ParsedAction]) -> ParsedAction:
    """What a session's new reader reads in a reply, for `Environment.parse_action`; several actions are joined.

    `shown` makes a value of one action.
    """
    found = [
        ParsedAction(problem=action.why) if isinstance(action, UnreadableCall) else shown(action)
        for action in reader.read(reply).actions
    ]
    return ParsedAction(
        kind=", ".join(dict.fromkeys(part.kind for part in found if part.kind)),
        text="\n".join(part.text for part in found if part.text),
        problem=" ".join(part.problem for part in found if part.problem) or None,
    )


class CallReader(ReplyReader[A]):
    """Reads a reply's function calls."""

    def __init__(self, toolset: Toolset[A], *, strict: bool) -> None:
        self.tools = toolset.tools()
        self._toolset, self._strict = toolset, strict
        self._counts = Counter[str]()
        self._replies = self._shapeless = self._readable = 0

    def read(self, reply: Action) -> ParsedReply[A]:
        self._replies += 1
        self._counts["calls"] += len(reply.tool_calls)
        if not reply.tool_calls:
            return ParsedReply((self._without_call(reply.content),))
        executed = reply.tool_calls if self._toolset.several == "in order" else reply.tool_calls[:1]
        self._counts["extra_calls"] += len(reply.tool_calls) - len(executed)
        cut = reply.tool_calls[-1] if reply.cut and self._strict else None
        actions = tuple(self._action(call, cut=call is cut) for call in executed)
        self._shapeless += not any(is_object(call.arguments) for call in executed)
        for action in actions:
            if isinstance(action, UnreadableCall):
                self._counts[action.kind] += 1
            else:
                self._readable += 1
        return ParsedReply(actions, tuple(call.id for call in reply.tool_calls))

    def metrics(self) -> dict[str, float]:
        """Numbers of replies without a call; of calls: all, bad, unknown, and not executed for being too many; and of
        arguments that are not declared, which are ignored."""
        names = ("no_call", "bad_arguments", "unknown_function", "extra_calls", "extra_arguments", "calls")
        return {name: float(self._counts[name]) for name in names}

    def limit_reason(self) -> FinishReason:
        """The turn limit; in a strict session without one readable call, what was wrong with most replies."""
        if not self._strict or self._readable or not self._replies:
            return FinishReason.TURN_LIMIT
        mostly_shapeless = self._shapeless * 2 > self._replies
        return FinishReason.INVALID_FORMAT if mostly_shapeless else FinishReason.INVALID_ACTION

    def _without_call(self, content: str) -> A | UnreadableCall:
        action = self._toolset.without_call(content)
        if action is not None:
            self._readable += 1
            return action
        self._counts["no_call"] += 1
        self._shapeless += 1
        return UnreadableCall(f"Your reply calls no function. Call one of: {self._toolset.names()}.", "no_call")

    def _action(self, call: ToolCall, *, cut: bool) -> A | UnreadableCall:
        function = self._toolset.find(call.name, self._strict)
        if function is None:
            why = f"Invalid function call: there is no function {call.name[:SHOWN_NAME]!r}."
            return UnreadableCall(
                f"{why} There are: {self._toolset.names()}." if self._strict else why, "unknown_function"
            )
        try:
            if cut and not is_object(call.arguments):  # a part of them may read as others
                raise ValueError("the reply was cut at its limit of tokens")
            action = function.read(function.checked(call.arguments, self._strict))
            self._counts["extra_arguments"] += function.ignored(call.arguments, self._strict)
            return action
        except ValueError as error:
            why = f"The arguments of {function.name} can't be read: {error}."
            told = f"{why} They are: {function.fields()}." if self._strict else why
            return UnreadableCall(told, "bad_arguments")


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
