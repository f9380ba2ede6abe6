"""`check` plays both protocols of an environment that has both, and its garbage reaches what only calls can break."""

from collections.abc import Callable, Sequence

import pytest
from pydantic import model_validator

from proctor.conformance.check import CheckResult, check
from proctor.conformance.player import GARBAGE, MANY, garbage
from proctor.environment import Agent, AgentStopped, Environment, Policy
from proctor.json_objects import is_object
from proctor.tools import (
    CallReader,
    Function,
    ParsedReply,
    Protocol,
    ReplyReader,
    TextReader,
    Toolset,
    UnreadableCall,
    arguments_schema,
    in_tools,
)
from proctor.types import Action, Finish, FinishReason, Message, Observation, Tool, ToolCall
from tests.pace import slowly

ROUNDS = 3
NAMES = Toolset(
    (
        Function(
            "name",
            "Says the name.",
            arguments_schema(name={"type": "string"}),
            lambda given: str(given["name"]),
            lambda name: {"name": name},
        ),
    )
)


class Calling(Environment):
    """Asks for the sample's name up to three times, in text or by calls; meets every requirement."""

    protocol: Protocol = "text"

    def samples(self) -> Sequence[str]:
        return ["first", "second"]

    def reader(self) -> ReplyReader[str]:
        return TextReader(str) if self.protocol == "text" else CallReader(NAMES, strict=True)

    def answered(self, parsed: ParsedReply[str], text: str) -> tuple[Message, ...]:
        return parsed.answered([text])

    def look(self, action: Action) -> None:
        """What a careless environment would break on."""

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        reader = self.reader()
        messages: tuple[Message, ...] = (Message(role="user", content="your name?"),)
        for _ in range(ROUNDS):
            try:
                action = await agent.act(Observation(messages=messages, tools=reader.tools))
            except AgentStopped as stopped:
                return Finish(reason=stopped.reason, score=0.0)
            self.look(action)
            parsed = reader.read(action)
            name = parsed.actions[0]
            if name == sample:
                return Finish(reason=FinishReason.COMPLETED, score=1.0)
            messages = self.answered(parsed, name.why if isinstance(name, UnreadableCall) else "no")
        return Finish(reason=reader.limit_reason(), score=0.0)

    def in_protocol(self, policy: Policy) -> Policy:
        return policy if self.protocol == "text" else in_tools(policy, str, str, NAMES)

    def reference(self, sample: str, seed: int = 0) -> Policy | None:
        return self.in_protocol(lambda conversation, transcript: Action(content=sample))

    def naive(self, sample: str, seed: int = 0) -> Policy | None:
        return self.in_protocol(lambda conversation, transcript: Action(content="first"))

    def random(self, sample: str, seed: int = 0) -> Policy | None:
        return self.in_protocol(lambda conversation, transcript: Action(content=str(seed)))


class OneDigest(Calling):
    def digest(self) -> str:
        return "00ff"


class TextPolicies(Calling):
    """Its reference writes the name, whatever the protocol."""

    def in_protocol(self, policy: Policy) -> Policy:
        return policy


class AnswersOne(Calling):
    """Answers the first call alone, as AgentBench FC does."""

    def answered(self, parsed: ParsedReply[str], text: str) -> tuple[Message, ...]:
        return super().answered(parsed, text)[:1]


class AnswersAsUser(Calling):
    def answered(self, parsed: ParsedReply[str], text: str) -> tuple[Message, ...]:
        return (Message(role="user", content=text),)


class AnswersLate(Calling):
    def answered(self, parsed: ParsedReply[str], text: str) -> tuple[Message, ...]:
        return (Message(role="user", content="Next turn."), *super().answered(parsed, text))


class AnswersAll(Calling):
    """Answers a call that nobody made."""

    def answered(self, parsed: ParsedReply[str], text: str) -> tuple[Message, ...]:
        extra = Message(role="tool", content=text, tool_call_id="0")
        return (*super().answered(parsed, text), extra) if self.protocol == "tools" else super().answered(parsed, text)


class ShowsExample(Calling):
    """Shows a call and its answer before it asks; meets every requirement."""

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        if self.protocol == "text":
            return await super().play(sample, agent, seed)

        class Shown(Agent):
            async def act(self, observation: Observation) -> Action:
                if observation.messages[0].content != "your name?":
                    return await agent.act(observation)
                call = ToolCall(id="example", name="name", arguments='{"name": "x"}')
                example = Message(role="assistant", content="", tool_calls=(call,))
                answer = Message(role="tool", content="no", tool_call_id="example")
                messages = (example, answer, *observation.messages)
                return await agent.act(observation.model_copy(update={"messages": messages}))

        return await super().play(sample, Shown(), seed)


def distinct(calls: Sequence[ToolCall]) -> bool:
    return len({call.id for call in calls}) == len(calls)


CARELESS: dict[str, Callable[[Sequence[ToolCall]], bool]] = {
    "no call": bool,
    "malformed": lambda calls: all(is_object(call.arguments) or call.arguments in ("", '"text"') for call in calls),
    "empty": lambda calls: all(call.arguments != "{}" for call in calls),
    "other field": lambda calls: all(call.arguments != '{"no_such_name": "x"}' for call in calls),
    "unknown": lambda calls: all(call.name not in ("no_such_function", "no_such_tool") for call in calls),
    "two": lambda calls: len(calls) != 2,
    "many": lambda calls: len(calls) < MANY,
    "no id": lambda calls: all(call.id for call in calls),
    "double id": distinct,
}
"""what an environment breaks on -> what it takes for granted"""


def careless(assumes: Callable[[Sequence[ToolCall]], bool]) -> type[Calling]:
    class Careless(Calling):
        def look(self, action: Action) -> None:
            assert self.protocol == "text" or assumes(action.tool_calls)

    return Careless


class BreaksOnFormerId(Calling):
    """Holds the ids of a session's calls, and breaks on one that comes again."""

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        class Remembering(Agent):
            former: frozenset[str] = frozenset()

            async def act(self, observation: Observation) -> Action:
                action = await agent.act(observation)
                ids = frozenset(call.id for call in action.tool_calls if observation.tools)
                assert not ids & self.former
                self.former |= ids
                return action

        return await super().play(sample, Remembering(), seed)


GARBAGE_RULE = "tools: garbage ends with a score"
BROKEN = "task_error: AssertionError"
CASES: dict[str, tuple[type[Environment], str, str]] = {
    "one digest": (OneDigest, "each protocol has its digest", "the same digest"),
    "text policies": (
        TextPolicies,
        "tools: the reference scores 1",
        "sample 'first': the reference ends invalid_format with score 0.0",
    ),
    "answers one": (AnswersOne, GARBAGE_RULE, "does not answer the calls ['2']"),
    "answers as a user": (AnswersAsUser, GARBAGE_RULE, "does not answer the calls ['1']"),
    "answers late": (AnswersLate, GARBAGE_RULE, "['1']: each needs one tool message, before any other message"),
    "answers all": (AnswersAll, GARBAGE_RULE, "answers a call that nobody made: '0'"),
    "former id": (BreaksOnFormerId, GARBAGE_RULE, BROKEN),
    **{name: (careless(assumes), GARBAGE_RULE, BROKEN) for name, assumes in CARELESS.items()},
}


async def results_of(environment: Environment) -> list[CheckResult]:
    return [result async for result in check(environment, deadline_s=slowly(60))]


@pytest.mark.parametrize("protocol", ["text", "tools"])
async def test_both_protocols_are_checked_the_given_one_first(protocol: Protocol) -> None:
    results = await results_of(Calling(protocol=protocol))
    assert [result for result in results if result.state != "ok"] == []
    *names, last = [result.name for result in results]
    other = "text" if protocol == "tools" else "tools"
    first, second = names[: len(names) // 2], names[len(names) // 2 :]
    assert f"{protocol}: the reference scores 1" in first
    assert second == [name.replace(f"{protocol}: ", f"{other}: ") for name in first]
    assert last == "each protocol has its digest"


async def test_an_example_with_its_answer_is_sound() -> None:
    assert [result for result in await results_of(ShowsExample()) if result.state != "ok"] == []


@pytest.mark.parametrize(("environment", "name", "detail"), CASES.values(), ids=CASES)
async def test_what_is_wrong_in_protocol_tools_is_caught(
    environment: type[Environment], name: str, detail: str
) -> None:
    broken = {result.name: result.detail for result in await results_of(environment()) if not result.ok}
    assert detail in broken[name]
    assert not [other for other in broken if other.startswith("text: ")]


async def test_a_protocol_that_is_refused_is_left_out_with_the_reason() -> None:
    class Refusing(Calling):
        @model_validator(mode="after")
        def _no_functions(self) -> "Refusing":
            if self.protocol == "tools":
                raise ValueError("protocol: there are no functions")
            return self

    results = await results_of(Refusing())
    assert "the reference scores 1" in [result.name for result in results]
    assert results[-1] == CheckResult(
        name="the other protocol", state="left out", detail="protocol: there are no functions"
    )


async def test_a_field_protocol_of_another_kind_is_no_choice_of_protocols() -> None:
    class Other(Calling):
        protocol: str = "text"  # type: ignore[assignment]

    assert "the reference scores 1" in [result.name for result in await results_of(Other())]


def test_garbage_calls_are_those_of_the_functions_offered() -> None:
    every = garbage(NAMES.tools())
    assert every[: len(GARBAGE)] == GARBAGE == garbage(())
    texts = [call.arguments for action in every[len(GARBAGE) :] for call in action.tool_calls]
    assert {'{"name": "x"', "", "{}", '{"no_such_name": "x"}', '{"name": null}', '{"name": "x"}'} <= set(texts)


@pytest.mark.parametrize(
    ("schema", "example"),
    [
        ({"type": "string", "enum": ["a", "b"]}, '"a"'),
        ({"type": "array", "items": {"type": "integer"}}, "[1]"),
        ({"type": "object", "properties": {"b": {"type": "boolean"}}}, '{"b": true}'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, '"x"'),
    ],
)
def test_sound_arguments_follow_the_schema(schema: dict[str, object], example: str) -> None:
    tool = Tool.model_validate({"name": "f", "parameters": {"type": "object", "properties": {"a": schema}}})
    assert f'{{"a": {example}}}' in {call.arguments for action in garbage([tool]) for call in action.tool_calls}
