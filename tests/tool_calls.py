"""Agents that answer with function calls, for tests of environments in protocol `tools`; what a valid history is.

And the installed environments that offer functions, found by their field `protocol`, on the cheapest engine of each.
"""

import hashlib
import itertools
import json
from collections.abc import Collection, Sequence
from typing import NoReturn, get_args

import pytest
from pydantic import ValidationError

from proctor import registry
from proctor.environment import (
    POLICY_KINDS,
    Agent,
    AgentStopped,
    Environment,
    Policy,
    policy_of,
)
from proctor.llm.dialects.chat import messages_json
from proctor.session.play import play_to_finish
from proctor.session.transcript import Transcript
from proctor.tools import Protocol
from proctor.tools.histories import normalised, sendable
from proctor.types import WORDS, Action, Message, Observation, ToolCall
from tests.unit.proctor.tools.provider_rules import refused_messages

Reply = Action | AgentStopped
Fields = dict[str, str]
ENGINES: dict[str, Fields] = {"db": {"engine": "sqlite"}, "os": {"engine": "namespace"}}


def call(name: str, /, **arguments: object) -> Action:
    """A reply of one call."""
    return calls((name, arguments))


def calls(*named: tuple[str, object], content: str = "") -> Action:
    """A reply of calls: names with their arguments, which are written as JSON unless they are a text."""
    texts = [(name, given if isinstance(given, str) else json.dumps(given)) for name, given in named]
    return Action(content=content, tool_calls=tuple(ToolCall(id="", name=name, arguments=text) for name, text in texts))


class CallingAgent(Agent):
    """Follows a policy, makes every reply whole as the client does, and keeps what it sees.

    Fails the test where an endpoint might refuse the history of a request.
    """

    def __init__(self, policy: Policy, where: str = "") -> None:
        self._policy, self._where, self._transcript = policy, where, Transcript()
        self.seen: list[Observation] = []
        self._own_ids: set[str] = set()
        self.history: Sequence[Message] = ()
        """All messages of the conversation that it answered last."""

    async def act(self, observation: Observation) -> Action:
        self.seen.append(observation)
        self.history = self._transcript.observe(observation)
        if (why := invalid_history(self.history, self._own_ids)) is not None:
            self.fail(why)
        replied = self.reply(observation, self.history)
        self._own_ids |= {call.id for call in replied.tool_calls}
        action = normalised(replied, self.history)
        self._transcript.answer(observation, action)
        return action

    def reply(self, observation: Observation, history: Sequence[Message]) -> Action:
        """What the policy does."""
        return self._policy(observation.conversation, history)

    def fail(self, why: str) -> NoReturn:
        """End the test: no environment catches this exception, so none can make a score or a fault of it."""
        pytest.fail(f"{self._where or 'a session'}, turn {len(self.seen)}: {why}")

    def told(self, turn: int) -> list[str]:
        """The texts of the messages before a turn, from 0."""
        return [message.content for message in self.seen[turn].messages]

    @property
    def answers(self) -> list[Message]:
        """All messages after those of the first turn."""
        return [message for observation in self.seen[1:] for message in observation.messages]


def in_turn(*replies: Reply) -> Policy:
    """A policy that gives these replies one after the other, the last one for ever."""
    left = list(replies)

    def policy(_conversation: str, _history: Sequence[Message]) -> Action:
        reply = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(reply, AgentStopped):
            raise reply
        return reply

    return policy


def replying(*replies: Reply) -> CallingAgent:
    """An agent that gives these replies one after the other, the last one for ever."""
    return CallingAgent(in_turn(*replies))


async def sessions_in_text(environment: Environment, samples: Sequence[str], *scripts: Sequence[str]) -> str:
    """A hash of all that is told and scored where each policy plays each sample, without the words for tables.

    Each script plays the first sample: its texts are the replies, again and again.
    """
    state = hashlib.blake2b(digest_size=8)

    async def play(sample: str, policy: Policy) -> None:
        agent = CallingAgent(policy)
        finish = await play_to_finish(environment, sample, agent, seed=1)
        told = [observation.digest() for observation in agent.seen]
        scored = finish.model_dump_json(exclude={"detail": set(WORDS)})
        state.update("".join([*told, scored]).encode())

    async with environment.lifespan():
        for sample in samples:
            for kind in POLICY_KINDS:
                policy = policy_of(environment, kind, sample, seed=1)
                assert policy is not None
                await play(sample, policy)
        for script in scripts:
            await play(samples[0], _again_and_again(script))
    return state.hexdigest()


def _again_and_again(script: Sequence[str]) -> Policy:
    texts = itertools.cycle(script)
    return lambda _conversation, _history: Action(content=next(texts))


def invalid_history(messages: Sequence[Message], own_ids: Collection[str] | None = None) -> str | None:
    """Why an endpoint may refuse a history; None where none should. `own_ids` are those that it gave; None: all.

    Each call of an assistant message is answered by exactly one tool message, before any other message; no tool message
    stands without its call; ids are unique. As it is sent, five providers take it.
    """
    if own_ids is None:
        own_ids = {call.id for message in messages for call in message.tool_calls}
    return _unpaired(messages) or refused_messages(messages_json(sendable(messages)), own_ids, offers=True)


def _unpaired(messages: Sequence[Message]) -> str | None:
    """Which call has no answer, or which answer no call."""
    seen: set[str] = set()
    waiting: set[str] = set()
    for number, message in enumerate(messages):
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                return f"messages.{number}: it answers no call: {message.tool_call_id!r}"
            waiting.remove(message.tool_call_id)
            continue
        if waiting:
            return f"messages.{number}: calls before it have no answer: {', '.join(sorted(waiting))}"
        ids = [call.id for call in message.tool_calls]
        if "" in ids:
            return f"messages.{number}: a call has no id"
        if again := next((id_ for n, id_ in enumerate(ids) if id_ in seen or id_ in ids[:n]), None):
            return f"messages.{number}: the id of a call stands twice: {again!r}"
        seen.update(ids)
        waiting.update(ids)
    return f"the last calls have no answer: {', '.join(sorted(waiting))}" if waiting else None


def environment_in(name: str, protocol: Protocol, fields: Fields) -> Environment:
    """An environment in one of its protocols. Raises ValidationError where it refuses it."""
    given: dict[str, object] = {**fields, "protocol": protocol}
    return registry.load(name)(**given)


def tools_environment(name: str, fields: Fields) -> Environment | None:
    """An environment in protocol `tools`; None where it has no such protocol with these fields."""
    try:
        return environment_in(name, "tools", fields) if has_protocols(name) else None
    except ValidationError:
        return None


def has_protocols(name: str) -> bool:
    """Whether an environment has the field `protocol`."""
    return "protocol" in registry.load(name).model_fields


def configurations() -> list[tuple[str, Fields]]:
    """The environments that offer functions, in each profile that they have with their cheapest engine."""
    found = []
    for name in registry.names():
        profile = registry.load(name).model_fields.get("profile")
        profiles = get_args(profile.annotation) if profile is not None else ("",)
        for each in profiles:
            fields = ENGINES.get(name, {}) | ({"profile": each} if each else {})
            if tools_environment(name, fields) is not None:
                found.append((name, fields))
    return found
