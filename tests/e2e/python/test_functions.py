"""Python functions as agents: plain and async, with tools, and such as raise."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from proctor import (
    Action,
    Agent,
    ContextLimitExceeded,
    Message,
    Observation,
    PlanError,
    RunInterrupted,
    Tool,
    ToolCall,
    Usage,
    assert_scores,
    evaluate,
    play,
)

IN_TOOLS = {"name": "house", "environment": "alfworld", "parameters": {"protocol": "tools"}}
ONE_TURN = {"limits.trial.turns": 1}


def calls_look(messages: Sequence[Message], tools: Sequence[Tool]) -> Action:
    (tool,) = tools
    assert tool.parameters["required"] == ["action"]
    return Action(content="", tool_calls=(ToolCall(id="call-1", name=tool.name, arguments='{"action": "look"}'),))


async def calls_inventory(messages: Sequence[Message], tools: Sequence[Tool]) -> Action:
    await asyncio.sleep(0)
    call = ToolCall(id="call-1", name=tools[0].name, arguments=json.dumps({"action": "inventory"}))
    return Action(content="", tool_calls=(call,))


def test_functions_call_tools(tmp_path: Path) -> None:
    answers: list[str] = []

    def looks_twice(messages: Sequence[Message], tools: Sequence[Tool]) -> Action:
        answers.extend(message.content for message in messages if message.role == "tool")
        return calls_look(messages, tools)

    assert play("alfworld", looks_twice, protocol="tools").score == 0.0
    assert "middle of a room" in answers[0]
    run = evaluate(agents=[calls_look, calls_inventory], tasks=[IN_TOOLS], limit=1, overrides=ONE_TURN, folder=tmp_path)
    called = {turn.agent: turn.action.tool_calls[0] for turn in run.turns() if turn.action is not None}
    assert {name: (call.name, json.loads(call.arguments)) for name, call in called.items()} == {
        "calls_look": ("take_action", {"action": "look"}),
        "calls_inventory": ("take_action", {"action": "inventory"}),
    }


def test_a_function_that_raises_is_a_fault_with_its_tracebacks_last_line(tmp_path: Path) -> None:
    def raises(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        raise KeyError('the "cupboard"')

    def quotes_another_endpoint(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        raise ValueError("This model's maximum context length is 10 tokens. However, you requested 20 tokens")

    functions = [raises, quotes_another_endpoint]
    run = evaluate(agents=functions, tasks=["alfworld"], limit=1, folder=tmp_path)
    faults = {trial.agent: trial.finish for trial in run.trials() if trial.finish is not None}
    assert [finish.score for finish in faults.values()] == [None, None]
    assert faults["raises"].detail["cause"] == "the agent's function raised KeyError: 'the \"cupboard\"' (after 1 try)"
    assert "raised ValueError: This model's maximum" in str(faults["quotes_another_endpoint"].detail["cause"])
    with pytest.raises(
        AssertionError, match=r"(?s)1 of 1 trials without a score.*own-00000: no score: the agent's fun"
    ):
        assert_scores(run, "alfworld", at_least=0.0)
    finish = play("alfworld", raises)
    assert (finish.reason, finish.score) == ("agent_error", None)
    assert finish.detail["cause"] == "the agent's function raised KeyError: 'the \"cupboard\"'"
    wrong = play("alfworld", cast(Any, lambda messages, tools: 3))
    assert "returned int; return a text or an Action" in str(wrong.detail["cause"])


def runs_out(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    return next(iter(()))


def leaves(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    sys.exit(3)


def is_interrupted(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    raise KeyboardInterrupt


def gives_up(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    raise asyncio.CancelledError


async def leaves_too(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    raise SystemExit("enough")


async def gives_up_too(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
    raise asyncio.CancelledError


Function = Callable[[Sequence[Message], Sequence[Tool]], str | Awaitable[str]]
WITHOUT_MERCY: dict[Function, str] = {
    runs_out: "StopIteration",
    leaves: "SystemExit: 3",
    is_interrupted: "KeyboardInterrupt",
    gives_up: "asyncio.exceptions.CancelledError",
    leaves_too: "SystemExit: enough",
    gives_up_too: "asyncio.exceptions.CancelledError",
}
"""Functions that raise what ends a thread, a task or a process, and the last lines of their tracebacks."""


@pytest.mark.parametrize("function", WITHOUT_MERCY)
def test_nothing_that_a_function_raises_ends_more_than_its_session(function: Function) -> None:
    finish = play("alfworld", cast(Any, function))
    assert finish.detail["cause"] == f"the agent's function raised {WITHOUT_MERCY[function]}"


def test_nothing_that_functions_raise_ends_a_run(tmp_path: Path) -> None:
    run = evaluate(agents=cast(Any, list(WITHOUT_MERCY)), tasks=["alfworld"], limit=1, folder=tmp_path)
    causes = {trial.agent: str(trial.finish and trial.finish.detail["cause"]) for trial in run.trials()}
    assert causes == {
        function.__name__: f"the agent's function raised {last_line} (after 1 try)"
        for function, last_line in WITHOUT_MERCY.items()
    }


def test_a_long_message_is_cut(tmp_path: Path) -> None:
    def rambles(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        raise ValueError("first\nsecond " + "x" * 10_000)

    cause = str(play("alfworld", rambles).detail["cause"])
    assert cause.startswith("the agent's function raised ValueError: first second xxx")
    assert len(cause) < 600


def test_a_function_that_reaches_its_models_context_is_scored(tmp_path: Path) -> None:
    def full(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        raise ContextLimitExceeded

    (trial,) = evaluate(agents=full, tasks=["alfworld"], limit=1, folder=tmp_path).trials()
    for finish in (trial.finish, play("alfworld", full)):
        assert finish is not None
        assert (finish.reason, finish.score) == ("context_limit", 0.0)


def test_halves_of_a_character_are_joined_and_one_alone_is_a_question_mark(tmp_path: Path) -> None:
    seen: list[str] = []
    halves, whole = "look \ud83d\ude00 \ude00\ud83d a\ud800", "look \U0001f600 ?? a?"

    def says(messages: Sequence[Message], tools: Sequence[Tool]) -> str:
        seen.extend(message.content for message in messages if message.role == "assistant")
        return halves

    def calls(messages: Sequence[Message], tools: Sequence[Tool]) -> Action:
        call = ToolCall(id=halves, name=halves, arguments=json.dumps({"action": halves}, ensure_ascii=False))
        return Action(content=halves, tool_calls=(call,))

    two = {"limits.trial.turns": 2}
    run = evaluate(agents=[says, calls], tasks=["alfworld"], limit=1, overrides=two, folder=tmp_path)
    assert [trial.finish and trial.finish.score for trial in run.trials()] == [0.0, 0.0]
    actions = [turn.action for turn in run.turns() if turn.action is not None]
    assert {action.content for action in actions} == {whole}
    called = [call for action in actions for call in action.tool_calls]
    assert {(call.id, call.name, json.loads(call.arguments)["action"]) for call in called} == {(whole, whole, whole)}
    assert play("ltp", says).score == 0.0
    assert whole in seen
    assert halves not in seen

    class Says(Agent):
        async def act(self, observation: Observation) -> Action:
            return calls((), ())

    world = play("ltp", Says())
    assert world.score is not None
    assert "\\ud83d" not in ascii(world)
    assert "\\ude00" not in ascii(world)
    assert "\\ud800" not in ascii(world)


def test_a_function_gets_what_it_names_and_its_usage_is_counted(tmp_path: Path) -> None:
    seen: list[tuple[object, ...]] = []

    async def knows(
        messages: Sequence[Message],
        tools: Sequence[Tool],
        *,
        task: str,
        sample: str,
        turn: int,
        epoch: int,
        seed: int,
        conversation: str,
        extra: int = 7,
    ) -> tuple[str, Usage]:
        seen.append((task, sample, turn, epoch, extra, conversation))
        assert isinstance(seed, int)
        return "ACTION: look", Usage(prompt_tokens=100, completion_tokens=10, billed_money=0.5, billed_tokens=110)

    limits = {"limits.trial.turns": 2, "epochs": 2, "limits.run.tokens": 1_000}
    run = evaluate(agents=knows, tasks=["alfworld"], limit=1, overrides=limits, folder=tmp_path)
    assert sorted({each[:5] for each in seen}) == [("alfworld", "own-00000", t, e, 7) for t in (1, 2) for e in (0, 1)]
    assert len({each[5] for each in seen}) == 2, "one conversation for each trial"
    assert [(trial.prompt_tokens, trial.completion_tokens) for trial in run.trials()] == [(200, 20)] * 2
    with pytest.raises(RunInterrupted, match="tokens"):
        evaluate(agents=knows, tasks=["alfworld"], overrides={"limits.run.tokens": 300}, folder=tmp_path)
    assert play("alfworld", lambda messages, tools, turn: f"ACTION: look {turn}").score == 0.0


def test_a_function_that_names_what_nothing_gives_is_refused_before_the_run(tmp_path: Path) -> None:
    def wants(messages: Sequence[Message], tools: Sequence[Tool], temperature: float) -> str:
        return "ACTION: look"

    for begin in (lambda: play("alfworld", wants), lambda: evaluate(agents=wants, tasks=["alfworld"], folder=tmp_path)):
        with pytest.raises(PlanError, match=r"`temperature` is given by nothing; known are conversation, task"):
            begin()
