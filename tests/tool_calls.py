"""Agents that answer with function calls, sound and broken ones, and hold every request to what endpoints take."""

import hashlib
import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence

from pydantic import JsonValue

from proctor.environment import POLICY_KINDS, Agent, Environment, Policy, play_to_finish, policy_of
from proctor.llm.tool_calls import invalid_history, normalised
from proctor.types import Action, Message, Observation, Tool, ToolCall

WORDS = ("", " ", "0", "-1", "home", "#1", "x" * 300, "\n\t\x00", "你好", "\ud800", "null", "A\nB", "1" * 5_000)


def call(name: str, arguments: object, *, id_: str = "") -> Action:
    """A reply of one call; `arguments` that are no text are written as JSON."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Action(content="", tool_calls=(ToolCall(id=id_, name=name, arguments=text),))


def several(*replies: Action) -> Action:
    """One reply with the calls of all."""
    return Action(content="", tool_calls=tuple(each for reply in replies for each in reply.tool_calls))


class CallingAgent(Agent):
    """Keeps what it sees, and answers as the client does: each call gets an id of its own.

    A session of more than `longest` turns is a fault.
    """

    def __init__(self, reply: Callable[[Observation, Sequence[Message]], Action], longest: int = 1_000) -> None:
        self._reply, self._longest = reply, longest
        self._histories = defaultdict[str, list[Message]](list)
        self.seen: list[Observation] = []
        self.calls = 0
        self.invalid: str | None = None
        """Why an endpoint may refuse one of the requests; None where it should take all."""

    async def act(self, observation: Observation) -> Action:
        self.seen.append(observation)
        assert len(self.seen) <= self._longest, f"the session is longer than {self._longest} turns"
        history = self._histories[observation.conversation]
        if observation.fresh:
            history.clear()
        history += observation.messages
        self.invalid = self.invalid or invalid_history(history)
        action = normalised(self._reply(observation, history), history)
        history.append(action.message())
        self.calls += len(action.tool_calls)
        return action


def replying(*replies: Action) -> CallingAgent:
    """An agent that gives these replies one after the other, the last one for ever."""
    left = list(replies)
    return CallingAgent(lambda _observation, _history: left.pop(0) if len(left) > 1 else left[0])


def following(policy: Policy) -> CallingAgent:
    """An agent that follows a policy."""
    return CallingAgent(lambda observation, history: policy(observation.conversation, history))


async def trace(environment: Environment, samples: Sequence[str]) -> str:
    """16 hex digits of what the built-in policies observe on these samples, in each turn."""
    seen = []
    async with environment.lifespan():
        for sample in samples:
            for kind in POLICY_KINDS:
                policy = policy_of(environment, kind, sample)
                assert policy is not None
                agent = following(policy)
                await play_to_finish(environment, sample, agent)
                seen += [observation.digest() for observation in agent.seen]
    return hashlib.blake2b("\n".join(seen).encode(), digest_size=8).hexdigest()


def fuzzing(policy: Policy, seed: int, longest: int = 1_000) -> CallingAgent:
    """An agent of random calls: calls of the policy, changed ones, made-up ones, and replies without any."""
    chance, believed = random.Random(seed), defaultdict[str, list[Message]](list)

    def reply(observation: Observation, history: Sequence[Message]) -> Action:
        if observation.fresh:
            believed[observation.conversation].clear()
        sound = _of_policy(policy, observation, believed[observation.conversation])
        offered = observation.tools or (Tool(name="none"),)
        count = chance.choice((0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 3, 40))
        earlier = [each.id for message in history for each in message.tool_calls]
        calls = tuple(_random_call(chance, sound, offered, earlier) for _ in range(count))
        return Action(content=chance.choice(("", "I think.", "Final Answer: #0", sound.content)), tool_calls=calls)

    return CallingAgent(reply, longest)


def _of_policy(policy: Policy, observation: Observation, believed: list[Message]) -> Action:
    """What a policy does that believes it said all that it wanted to; nothing where it can't follow what it is told."""
    believed += observation.messages
    try:
        action = policy(observation.conversation, believed)
    except Exception:
        action = Action(content="")
    believed.append(action.message())
    return action


def _random_call(chance: random.Random, sound: Action, offered: Sequence[Tool], earlier: Sequence[str]) -> ToolCall:
    tool = chance.choice(offered)
    made = json.dumps(_value(chance, dict(tool.parameters)))
    name, arguments = tool.name, made
    if sound.tool_calls and chance.random() < 0.7:
        name, arguments = sound.tool_calls[0].name, sound.tool_calls[0].arguments
    if chance.random() < 0.5:
        arguments = chance.choice(_MUTATIONS)(chance, arguments)
    if chance.random() < 0.1:
        name = chance.choice(("", "no_such_function", name.upper(), f"{name}\x00", f"functions.{name}", "x" * 10_000))
    ids = ("", "", "1", "call_0", "\ud800", *earlier[-2:])
    return ToolCall(id=chance.choice(ids).encode(errors="replace").decode(), name=name, arguments=arguments)


def _changed(chance: random.Random, text: str) -> str:
    """The arguments with one value, or one name, that is another."""
    fields = json.loads(text)
    name = chance.choice([*fields, "made_up"])
    kept = {other: value for other, value in fields.items() if other != name}
    return json.dumps(kept | {chance.choice((name, name, "other", name.upper())): _anything(chance)})


_MUTATIONS: Sequence[Callable[[random.Random, str], str]] = (
    _changed,
    _changed,
    lambda chance, text: text[: chance.randrange(len(text) + 1)],
    lambda _, text: f"Here it is: {text}",
    lambda _, text: f"[{text}]",
    lambda _, text: json.dumps(text),
    lambda chance, _: chance.choice(("", "{}", "null", "[]", "5", "NaN", '{"": Infinity}', "\x00", '{"a": "\\ud800"}')),
    lambda _, text: '{"x": ' + "[" * 20_000,
    lambda _, text: text[:-1] + ', "big": "' + "y" * 70_000 + '"}',
    lambda chance, text: json.dumps(dict.fromkeys(json.loads(text), _anything(chance))),
)


def _anything(chance: random.Random) -> JsonValue:
    plain: tuple[JsonValue, ...] = (None, True, 0, -1, 1.5, 10**30, [], {}, ["a"], {"a": None}, [[]], [1, None])
    return chance.choice(plain) if chance.random() < 0.5 else chance.choice(WORDS)


def _value(chance: random.Random, schema: JsonValue) -> JsonValue:
    """A value that a schema allows, but for limits of number and length."""
    if not isinstance(schema, dict):
        return _anything(chance)
    if isinstance(schema.get("enum"), list):
        return chance.choice(schema["enum"])  # type: ignore[arg-type]
    if isinstance(schema.get("anyOf"), list):
        return _value(chance, chance.choice(schema["anyOf"]))  # type: ignore[arg-type]
    match schema.get("type"):
        case "object":
            properties = schema.get("properties")
            return (
                {name: _value(chance, each) for name, each in properties.items()}
                if isinstance(properties, dict)
                else {}
            )
        case "array":
            return [_value(chance, schema.get("items")) for _ in range(chance.randrange(6))]
        case "string":
            return chance.choice(WORDS)
        case "boolean":
            return chance.random() < 0.5
        case "integer":
            return chance.randrange(-1, 5)
        case "null":
            return None
    return _anything(chance)
