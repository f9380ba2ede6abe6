"""Random function calls, sound and broken ones, for tests of environments in protocol `tools`."""

import json
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from pydantic import JsonValue

from proctor.environment import POLICY_KINDS, Environment, Policy, policy_of
from proctor.session.play import play_to_finish
from proctor.types import Action, Finish, Message, Observation, Tool, ToolCall
from tests.tool_calls import CallingAgent

MOST_TURNS = 1_000
"""Of a session of an environment that names no limit."""
WORDS = ("", " ", "0", "-1", "home", "#1", "x" * 300, "\n\t\x00", "你好", "\ud800", "null", "A\nB", "1" * 5_000)
PLAIN: tuple[JsonValue, ...] = (None, True, 0, -1, 1.5, 10**30, [], {}, ["a"], {"a": None}, [[]], [1, None])
CONTENTS = ("", "I think.", "Answer: B.", "Final Answer: #0", "Final Answer: #99", "ACTION: look")
NUMBERS_OF_CALLS = (0, *[1] * 10, 2, 3, 40)


async def fuzz(environment: Environment, sample: str, seed: int) -> tuple[Finish, int]:
    """Plays a session of random calls; returns its finish and the number of its turns.

    It ends with a score, within its rounds; every history is valid, begins with instructions, and offers functions. A
    failure names environment, sample and seed.
    """
    policy = policy_of(environment, POLICY_KINDS[seed % len(POLICY_KINDS)], sample, seed)
    where = f"{environment!r}, sample {sample!r}, seed {seed}"
    agent = _FuzzingAgent(policy or (lambda *_: Action(content="")), seed, environment.max_turns or MOST_TURNS, where)
    finish = await play_to_finish(environment, sample, agent, seed)
    assert finish.score is not None, f"{where}: {finish.detail}"
    return finish, len(agent.seen)


def unread(finishes: Iterable[Finish]) -> dict[str, float]:
    """How many replies and calls of many sessions could not be read, by kind."""
    kinds = ("no_call", "bad_arguments", "unknown_function", "extra_calls")
    kept = list(finishes)
    return {kind: sum(finish.metrics[kind] for finish in kept) for kind in kinds}


class _FuzzingAgent(CallingAgent):
    """Makes calls of a policy, changed ones, and made-up ones, and gives replies without any."""

    def __init__(self, policy: Policy, seed: int, longest: int, where: str) -> None:
        super().__init__(policy, where)
        self._longest, self._chance = longest, random.Random(seed)
        self._believed = defaultdict[str, list[Message]](list)

    def reply(self, observation: Observation, history: Sequence[Message]) -> Action:
        if len(self.seen) > self._longest:
            self.fail(f"the session has more than {self._longest} turns")
        if not observation.tools:
            self.fail("the observation offers no function")
        if history[0].role != "system":
            self.fail("the history begins without instructions")
        chance, sound = self._chance, self._of_policy(observation)
        shown = history[-1].content
        words = (*WORDS, *re.findall(r"'([^']+)'", shown)[:20], *shown.split()[:20])
        earlier = [each.id for message in history for each in message.tool_calls]
        count = chance.choice(NUMBERS_OF_CALLS)
        calls = tuple(_random_call(chance, sound, observation.tools, earlier, words) for _ in range(count))
        return Action(content=chance.choice((*CONTENTS, sound.content)), tool_calls=calls)

    def _of_policy(self, observation: Observation) -> Action:
        """What the policy does if it believes it said all that it wanted to; nothing where it can't follow."""
        believed = self._believed[observation.conversation]
        if observation.fresh:
            believed.clear()
        believed += observation.messages
        try:
            action = super().reply(observation, believed)
        except Exception:
            action = Action(content="")
        believed.append(action.message())
        return action


def _random_call(
    chance: random.Random, sound: Action, offered: Sequence[Tool], earlier: Sequence[str], words: Sequence[str]
) -> ToolCall:
    """A call of the policy or a made-up one, often changed; `words` are those that a made-up one has."""
    tool = chance.choice(offered)
    name, arguments = tool.name, json.dumps(_value(chance, dict(tool.parameters), words))
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
    return chance.choice(PLAIN) if chance.random() < 0.5 else chance.choice(WORDS)


def _value(chance: random.Random, schema: JsonValue, words: Sequence[str]) -> JsonValue:
    """A value that a schema allows, but for limits of number and length."""
    if not isinstance(schema, dict):
        return _anything(chance)
    if isinstance(schema.get("enum"), list):
        return chance.choice(schema["enum"])  # type: ignore[arg-type]  # schemas are JSON
    if isinstance(schema.get("anyOf"), list):
        return _value(chance, chance.choice(schema["anyOf"]), words)  # type: ignore[arg-type]  # schemas are JSON
    match schema.get("type"):
        case "object":
            properties = schema.get("properties")
            return (
                {name: _value(chance, each, words) for name, each in properties.items()}
                if isinstance(properties, dict)
                else {}
            )
        case "array":
            return [_value(chance, schema.get("items"), words) for _ in range(chance.randrange(6))]
        case "string":
            return chance.choice(words)
        case "boolean":
            return chance.random() < 0.5
        case "integer":
            return chance.randrange(-1, 5)
        case "null":
            return None
    return _anything(chance)
