"""The agent that a check plays with, and its replies that mean nothing: calls are wrong in one way each."""

import asyncio
import functools
import itertools
import json
import math
from collections.abc import Awaitable, Callable, Iterable, Sequence

from pydantic import JsonValue

from proctor.environment import Agent, Policy
from proctor.session.play import PolicyAgent
from proctor.types import Action, Message, Observation, Tool, ToolCall

Then = Callable[[Observation], Awaitable[Action]]
"""Answers observations that a policy is not asked about."""


async def _never(_: Observation) -> Action:
    """For a policy that is followed to the end."""
    raise AssertionError("a policy without limit is never left")


class Player(Agent):
    """Follows a policy for `acts` acts, by default to the end, then calls `then`; records what it observes."""

    def __init__(self, policy: Policy, acts: float = math.inf, then: Then = _never) -> None:
        self._agent = PolicyAgent(policy)
        self._acts = acts
        self._then = then
        self._calls: dict[str, list[str]] = {}
        self.seen: list[str] = []
        """The digests of the observations."""
        self.offered: tuple[Tool, ...] = ()
        """The functions that the latest observation offers."""
        self.unanswered: str | None = None
        """How an observation answers calls otherwise than once each; None where none does."""

    async def act(self, observation: Observation) -> Action:
        await asyncio.sleep(0)  # so that the deadline ends a session that never ends by itself
        self._check_answers(observation)
        self.seen.append(observation.digest())
        self.offered = observation.tools
        action = await (self._agent.act if len(self.seen) <= self._acts else self._then)(observation)
        if observation.tools:
            self._calls[observation.conversation] = [call.id for call in action.tool_calls]
        return action

    def _check_answers(self, observation: Observation) -> None:
        made = self._calls.pop(observation.conversation, [])
        problem = _unanswered([] if observation.fresh else made, observation.messages)
        if problem is not None and self.unanswered is None:
            self.unanswered = f"the observation of turn {len(self.seen) + 1} {problem}"


def _unanswered(waiting: Sequence[str], messages: Sequence[Message]) -> str | None:
    """What is wrong with the answers to calls: endpoints want one tool message for each, before any other message."""
    left = list(waiting)
    for message in messages:
        if message.role != "tool":
            if left:
                break
            left += [call.id for call in message.tool_calls]
        elif message.tool_call_id in left:
            left.remove(message.tool_call_id)
        else:
            return f"answers a call that nobody made: {message.tool_call_id!r}"
    return f"does not answer the calls {left}: each needs one tool message, before any other message" if left else None


def raising(error: Exception) -> Then:
    """Fails."""

    async def then(_: Observation) -> Action:
        raise error

    return then


def replying_garbage(numbers: Iterable[int]) -> Then:
    """Gives the kinds of garbage with these numbers, over and over."""
    cycle = itertools.cycle(numbers)

    async def then(observation: Observation) -> Action:
        kinds = garbage(observation.tools)
        return kinds[next(cycle) % len(kinds)]

    return then


GARBAGE = (
    Action(content=""),
    Action(content="\x00\x1b[31m\N{RIGHT-TO-LEFT OVERRIDE}\N{PILE OF POO}"),
    Action(content="Action: "),
    Action(content="```json\n{" + '"a":' * 50),
    Action(content="x" * 100_000),
    Action(content="", tool_calls=(ToolCall(id="1", name="no_such_tool", arguments='{"half": '),)),
)
"""Replies that are a well-formed action in no environment."""
MANY = 40
"""Calls in one reply, more than an endpoint's answer may hold."""


def garbage(tools: Sequence[Tool]) -> tuple[Action, ...]:
    """GARBAGE, and where functions are offered, calls of the first one that are wrong in one way each.

    Their ids are the same in every turn: an environment has to answer a call by an id that another call had.
    """
    first = tools[0] if tools else None
    return GARBAGE + (_bad_calls(first.name, json.dumps(dict(first.parameters))) if first else ())


@functools.lru_cache(maxsize=16)
def _bad_calls(function: str, parameters: str) -> tuple[Action, ...]:
    """Bad calls of a function with these parameters (JSON Schema), made once for all turns of a check."""
    example = _example(json.loads(parameters))
    names = list(example) if isinstance(example, dict) else []
    sound = json.dumps(example)
    arguments = (
        sound[:-1],
        "",
        json.dumps("text"),
        "[" * 50_000,
        "{}",
        json.dumps({f"no_such_{name}": "x" for name in names or ["field"]}),
        json.dumps(dict.fromkeys(names)),
        json.dumps({**dict.fromkeys(names, "x"), "no_such_field": "x"}),
        json.dumps({name: {"a": [1]} for name in names}),
    )
    broken = [_reply(ToolCall(id="1", name=function, arguments=text)) for text in arguments]
    named = [_reply(ToolCall(id="1", name=name, arguments=sound)) for name in ("", "no_such_function")]
    ids = (["1"], ["1", "2"], [""], ["", ""], ["1", "1"], [str(number) for number in range(MANY)])
    sounds = [_reply(*(ToolCall(id=id_, name=function, arguments=sound) for id_ in each)) for each in ids]
    return (*broken, *named, *sounds)


def _reply(*calls: ToolCall) -> Action:
    return Action(content="", tool_calls=calls)


def _example(schema: JsonValue) -> JsonValue:
    """A value that has the type of a JSON Schema; "x" where it says none."""
    if not isinstance(schema, dict):
        return "x"
    enum, properties = schema.get("enum"), schema.get("properties")
    if isinstance(enum, list):
        return enum[0]
    if isinstance(properties, dict):
        return {name: _example(part) for name, part in properties.items()}
    examples: dict[str, JsonValue] = {"integer": 1, "number": 1.5, "boolean": True, "object": {}, "null": None}
    kind = schema.get("type")
    return [_example(schema.get("items"))] if kind == "array" else examples.get(str(kind), "x")
