"""A `play` that is a plain `def`: it runs in a thread, and comes to the same as an async one."""

import asyncio
import functools
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar

import pytest

from proctor.conformance.check import CheckResult, check
from proctor.environment import Agent, AgentStopped, ContextLimitExceeded, Environment, EnvironmentFault, Policy
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, Finish, FinishReason, Message, Observation

ENDED: list[str] = []


class Plain(Environment):
    """Which letter is meant? Its thread is noted as it ends."""

    fails: str = ""

    def samples(self) -> Sequence[str]:
        return ("a", "b")

    def play(self, sample: str, agent: Any, seed: int = 0) -> Finish:  # type: ignore[override]  # a plain one
        try:
            for _ in range(2):
                action = agent.act(Observation(messages=(Message(role="user", content="Which letter?"),)))
            if self.fails == "fault":
                raise EnvironmentFault("broken")
            if self.fails == "stop":
                raise StopIteration("over")
            return Finish(reason=FinishReason.COMPLETED, score=float(action.content == sample))
        finally:
            ENDED.append(threading.current_thread().name)

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, messages: Action(content=sample)


class Waits(Agent):
    """Answers nothing."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked, self._error = asyncio.Event(), error

    async def act(self, observation: Observation) -> Action:
        self.asked.set()
        if self._error is not None:
            raise self._error
        await asyncio.Event().wait()
        raise AssertionError


async def once(world: Environment, sample: str, agent: Agent, seed: int = 0) -> Finish:
    await agent.act(Observation(messages=()))
    return Finish(reason=FinishReason.COMPLETED, score=0.25)


async def broken() -> list[CheckResult]:
    return [rule async for rule in check(Plain()) if not rule.ok]


def played(world: Environment, agent: Agent | None = None) -> Finish:
    agent = agent or PolicyAgent(lambda conversation, messages: Action(content="a"))
    return asyncio.run(play_to_finish(world, "a", agent))


def test_it_plays_in_a_thread_and_keeps_the_contract() -> None:
    ENDED.clear()
    assert played(Plain()).score == 1.0
    assert ENDED == ["play a"]
    assert asyncio.run(broken()) == []


@pytest.mark.parametrize(
    ("world", "agent", "wanted"),
    [
        (Plain(fails="fault"), None, (FinishReason.TASK_ERROR, None)),
        (Plain(fails="stop"), None, (FinishReason.TASK_ERROR, None)),
        (Plain(), ContextLimitExceeded(), (FinishReason.CONTEXT_LIMIT, 0.0)),
        (Plain(), AgentStopped(FinishReason.TURN_LIMIT), (FinishReason.TURN_LIMIT, 0.0)),
    ],
)
def test_what_it_raises_or_lets_pass_is_classified_alike(
    world: Environment, agent: Exception | None, wanted: tuple[FinishReason, float | None]
) -> None:
    async def play() -> Finish:
        return await play_to_finish(world, "a", Waits(agent) if agent else PolicyAgent(lambda *_: Action(content="a")))

    finish = asyncio.run(play())
    assert (finish.reason, finish.score) == wanted


async def test_a_cancellation_ends_its_thread() -> None:
    ENDED.clear()
    waits = Waits()
    session = asyncio.create_task(play_to_finish(Plain(), "b", waits))
    await waits.asked.wait()
    session.cancel()
    with pytest.raises(asyncio.CancelledError):
        await session
    assert ENDED == ["play b"]


def test_an_async_one_may_be_wrapped() -> None:
    def wrapped(play: Callable[..., Awaitable[Finish]]) -> Callable[..., Awaitable[Finish]]:
        @functools.wraps(play)
        def call(*given: Any) -> Awaitable[Finish]:
            return play(*given)

        return call

    class Wrapped(Plain):
        play: ClassVar[Any] = wrapped(once)

    assert played(Wrapped()).score == 0.25
