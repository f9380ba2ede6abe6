"""An agent that calls functions at random, well and badly, and checks every history that an endpoint would get."""

import json
import random
import re
from collections import Counter

from pydantic import JsonValue

from proctor.environment import Agent, Environment, Transcript, play_to_finish
from proctor.llm.tool_calls import invalid_history, normalised
from proctor.types import Action, Finish, Observation, Tool, ToolCall

BAD_ARGUMENTS = ("", "{", "[]", "null", "{}", '{"a": ', '{"other": 1}', '{"a": null, "b": [{}]}', "[" * 50_000)
VALUES: tuple[JsonValue, ...] = (None, True, 0, -7, 1 << 70, 2.5, "", "\x00\ud800", "x" * 70_000, [], {"a": 1})
CALLED_WELL = 0.6
"""The share of calls whose arguments fit their function's schema."""


class FuzzingAgent(Agent):
    """Calls what is offered, with arguments that fit or don't."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._transcript = Transcript()
        self.replies = 0

    async def act(self, observation: Observation) -> Action:
        history = self._transcript.observe(observation)
        assert invalid_history(history) is None
        assert not observation.fresh or observation.messages[0].role == "system"
        assert observation.tools
        self.replies += 1
        action = normalised(self._reply(observation.tools, history[-1].content), history)
        self._transcript.answer(observation, action)
        return action

    def _reply(self, tools: tuple[Tool, ...], shown: str) -> Action:
        number = self._dice.choice((0, 1, 1, 1, 1, 1, 2, 3))
        calls = tuple(self._call(self._dice.choice(tools), shown) for _ in range(number))
        return Action(content=self._dice.choice(("", "I think", "Answer: B.")), tool_calls=calls)

    def _call(self, tool: Tool, shown: str) -> ToolCall:
        name = tool.name if self._dice.random() < 0.9 else self._dice.choice(("", "rm", tool.name.upper()))
        well = self._dice.random() < CALLED_WELL
        arguments = json.dumps(self._fitting(tool, shown)) if well else self._unfitting(tool, shown)
        return ToolCall(id=self._dice.choice(("", "same", "other")), name=name, arguments=arguments)

    def _unfitting(self, tool: Tool, shown: str) -> str:
        if self._dice.random() < 0.4:
            return self._dice.choice(BAD_ARGUMENTS)
        arguments = self._fitting(tool, shown)
        arguments[self._dice.choice([*arguments, "more"])] = self._dice.choice(VALUES)
        text = json.dumps(arguments)
        return text[: self._dice.randrange(len(text))] if self._dice.random() < 0.2 else text

    def _fitting(self, tool: Tool, shown: str) -> dict[str, JsonValue]:
        properties = tool.parameters["properties"]
        assert isinstance(properties, dict)
        return {name: self._value(schema, shown) for name, schema in properties.items()}

    def _value(self, schema: JsonValue, shown: str) -> JsonValue:
        """A value of a schema: a member of its enum, else a text in quotes or a word of what is shown."""
        assert isinstance(schema, dict)
        enum = schema.get("enum")
        words: list[JsonValue] = [*re.findall(r"'([^']+)'", shown), *shown.split()[:20], "nothing"]
        return self._dice.choice(enum if isinstance(enum, list) else words)


async def fuzz(environment: Environment, sample: str, seed: int) -> Finish:
    """Plays one session: it ends with a score, within its rounds, and with valid histories."""
    agent = FuzzingAgent(seed)
    finish = await play_to_finish(environment, sample, agent, seed)
    assert not finish.reason.is_fault, finish.detail
    assert environment.max_turns is not None
    assert agent.replies <= environment.max_turns
    return finish


class ScriptedCaller(Agent):
    """Gives replies in turn, the last one for ever; keeps all observations, and checks every history."""

    def __init__(self, *replies: Action) -> None:
        self._replies = list(replies)
        self._transcript = Transcript()
        self.seen: list[Observation] = []

    async def act(self, observation: Observation) -> Action:
        history = self._transcript.observe(observation)
        assert invalid_history(history) is None
        self.seen.append(observation)
        action = normalised(self.reply(observation.conversation), history)
        self._transcript.answer(observation, action)
        return action

    def reply(self, conversation: str) -> Action:
        """The next reply."""
        return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]


def call(name: str, **arguments: JsonValue) -> Action:
    """A reply with one call."""
    return calls((name, json.dumps(arguments)))


def calls(*named: tuple[str, str]) -> Action:
    """A reply with these calls, each a name and the text of its arguments."""
    return Action(content="", tool_calls=tuple(ToolCall(id="", name=name, arguments=text) for name, text in named))


def unread(finishes: list[Finish]) -> Counter[str]:
    """How many replies and calls of many sessions could not be read, by kind."""
    kinds = ("no_call", "bad_arguments", "unknown_function", "extra_calls")
    return Counter({kind: int(sum(finish.metrics[kind] for finish in finishes)) for kind in kinds})
