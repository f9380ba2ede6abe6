"""`check` can fail: for each requirement an environment here violates it, and the check names it."""

import asyncio
import itertools
import os
import subprocess
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any

import pytest

from proctor.conformance import check as checking
from proctor.conformance import contract
from proctor.conformance.check import CheckResult, check
from proctor.environment import Agent, AgentStopped, AgentUnavailable, Environment, Policy
from proctor.types import Action, Finish, FinishReason, Message, Observation, Summary
from tests.pace import slowly

chance = itertools.count()
kept: list[object] = []


class Sound(Environment):
    """Asks for the sample's name three times; meets every requirement."""

    def samples(self) -> Sequence[str]:
        return ["first", "second", "third"]

    def digest(self) -> str:
        return "00ff"

    def question(self, sample: str, seed: int) -> str:
        return f"your name? {seed}"

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        right = 0
        for _ in range(3):
            message = Message(role="user", content=self.question(sample, seed))
            try:
                right += (await agent.act(Observation(messages=(message,)))).content == sample
            except AgentStopped as stopped:
                return Finish(reason=stopped.reason, score=right / 3)
        return Finish(reason=FinishReason.COMPLETED, score=right / 3)

    def reference(self, sample: str, seed: int = 0) -> Policy | None:
        return lambda conversation, transcript: Action(content=sample)

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, transcript: Action(content="first")

    def random(self, sample: str, seed: int = 0) -> Policy:
        return lambda conversation, transcript: Action(content=str(seed))

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        scores = [finish.score for finish in finishes if finish.score is not None]
        return Summary(primary="mean", metrics={"mean": sum(scores) / len(scores)})


class Caching(Sound):
    """Keeps its samples in a public property."""

    @cached_property
    def names(self) -> Sequence[str]:
        return super().samples()

    def samples(self) -> Sequence[str]:
        return self.names


def broken_data(sound: Sound) -> Sequence[str]:
    raise ValueError("data.jsonl: record 7: answer: missing; add it")


def partly_solved(sound: Sound, sample: str, seed: int = 0) -> Policy | None:
    return None if sample == "second" else Sound.reference(sound, sample, seed)


def failing(sound: Sound, sample: str, seed: int = 0) -> Policy:
    return lambda conversation, transcript: Action(content=str(1 // 0))


def counts_faults(sound: Sound, finishes: Sequence[Finish]) -> Summary:
    return Summary(primary="mean", metrics={"mean": sum(finish.score or 0.0 for finish in finishes) / len(finishes)})


class Fragile(Sound):
    """A reply of no letters is an exception."""

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        action = await agent.act(Observation(messages=(Message(role="user", content="your name?"),)))
        assert action.content, "no reply"
        return Finish(reason=FinishReason.COMPLETED, score=float(action.content == sample))


class Endless(Sound):
    """A wrong reply is asked again for ever."""

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        question = Observation(messages=(Message(role="user", content="your name?"),))
        while (await agent.act(question)).content not in self.samples():
            pass
        return Finish(reason=FinishReason.COMPLETED, score=1.0)


class StopIsFault(Sound):
    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        try:
            return await super().play(sample, _Unstopped(agent), seed)
        except RuntimeError:
            return Finish.fault(FinishReason.TASK_ERROR, "stopped")


class _Unstopped(Agent):
    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def act(self, observation: Observation) -> Action:
        try:
            return await self._agent.act(observation)
        except AgentStopped as stopped:
            raise RuntimeError("stopped") from stopped


class FaultIsScore(Sound):
    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        try:
            return await super().play(sample, agent, seed)
        except AgentUnavailable:
            return Finish(reason=FinishReason.COMPLETED, score=0.0)


class SwallowsCancellation(Sound):
    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        try:
            return await super().play(sample, agent, seed)
        except asyncio.CancelledError:
            return Finish(reason=FinishReason.COMPLETED, score=0.0)


def _thread() -> threading.Event:
    end = threading.Event()
    threading.Thread(target=end.wait, daemon=True).start()
    return end


LEAKS: dict[str, Callable[[], object]] = {
    "tasks (": lambda: asyncio.create_task(asyncio.Event().wait()),
    "threads (": _thread,
    "processes (": lambda: subprocess.Popen(["sleep", "1000"]),
    "files (": lambda: os.memfd_create("leak"),
}
"""what a violation names -> makes something of it that a session leaves behind"""


def leaking(make: Callable[[], object]) -> type[Sound]:
    class Leaking(Sound):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            kept.append(make())
            return await super().play(sample, agent, seed)

    return Leaking


class NoLifespan(Sound):
    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        raise OSError("the server's socket is taken")
        yield


class LeavesProcess(Sound):
    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        kept.append(LEAKS["processes ("]())
        yield


def instead(**methods: Callable[..., object]) -> type[Sound]:
    """Sound, but for one method."""
    return type("Instead", (Sound,), methods)


LISTED, HASHED = "samples are there, unique and stable", "the digest is stable"
POLICY_CASES: list[tuple[type[Environment], str, str]] = [
    (instead(samples=lambda sound: []), LISTED, "there are no samples"),
    (instead(samples=lambda sound: ["first", "second", "first"]), LISTED, "'first' is listed twice"),
    (instead(samples=lambda sound: [f"first {next(chance)}"]), LISTED, "lists other samples"),
    (instead(samples=broken_data), LISTED, "ValueError: data.jsonl: record 7"),
    (instead(digest=lambda sound: f"{next(chance):04x}"), HASHED, "another digest"),
    (instead(digest=lambda sound: "version one"), HASHED, "version one"),
    (NoLifespan, "the lifespan starts", "OSError: the server's socket is taken"),
    (instead(reference=Sound.naive), "the reference scores 1", "'second': the reference ends completed with score 0.0"),
    (instead(reference=partly_solved), "the reference scores 1", "'second': no reference policy, though other samples"),
    (instead(naive=failing), "the naive policy ends with a score", "task_error: ZeroDivisionError"),
    (instead(random=failing), "the random policy ends with a score", "task_error: ZeroDivisionError"),
    (instead(summarize=counts_faults), "faults change no summary", "faults beside a finish change 'mean'"),
    (LeavesProcess, "the lifespan leaves nothing behind", "processes ("),
]
PLAY_CASES: list[tuple[type[Sound], str, str]] = [
    (Fragile, "garbage ends with a score", "task_error: AssertionError: no reply"),
    (Endless, "garbage ends with a score", "took longer than"),
    (StopIsFault, "an agent that stops ends with a score", "task_error: stopped"),
    (FaultIsScore, "an agent that fails ends as agent_error", "ends completed, not agent_error"),
    (
        instead(question=lambda *_: f"your name? {next(chance)}"),
        "equal seeds give equal sessions",
        "differ in the observation of turn 1",
    ),
    (SwallowsCancellation, "cancellation frees everything", "ends as if it were not cancelled"),
    *((leaking(make), "cancellation frees everything", counts) for counts, make in LEAKS.items()),
]
"""What is wrong with `play`, which shows without policies too."""
CASES = [*POLICY_CASES, *PLAY_CASES]
ADVICE = "the digest has every file beside it"
"""Said of a world in a file of the user's own, never broken: tests/e2e/commands/test_own_files.py."""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "SETTLE_S", slowly(0.2))
    monkeypatch.setattr(checking, "SETTLE_S", slowly(0.2))


@pytest.fixture(autouse=True)
async def _put_away() -> AsyncIterator[None]:
    yield
    for held in kept:
        if isinstance(held, subprocess.Popen):
            held.kill()
            held.wait()
        elif isinstance(held, threading.Event):
            held.set()
        elif isinstance(held, asyncio.Task):
            held.cancel()
        elif isinstance(held, int):
            os.close(held)
    kept.clear()


async def broken(environment: Environment, deadline_s: float = 60.0) -> list[CheckResult]:
    return [result async for result in check(environment, deadline_s=slowly(deadline_s)) if not result.ok]


def deadline_of(environment: type[Environment]) -> float:
    """An endless one takes longer than any; it would keep a processor busy for all of each deadline."""
    return 0.1 if environment is Endless else 60.0


@pytest.mark.parametrize("environment", [Sound, Caching])
async def test_a_sound_environment_breaks_nothing(environment: type[Environment]) -> None:
    assert await broken(environment()) == []


@pytest.mark.parametrize(("environment", "name", "detail"), CASES, ids=[detail for *_, detail in CASES])
async def test_a_violated_requirement_is_caught(environment: type[Environment], name: str, detail: str) -> None:
    results = {result.name: result.detail for result in await broken(environment(), deadline_of(environment))}
    assert detail in results[name]


async def test_every_requirement_has_an_environment_that_violates_it() -> None:
    results = [result async for result in check(Sound())]
    assert {result.name for result in results} == {ADVICE, *(name for _, name, _ in CASES)}
    assert {result.state for result in results} == {"ok"}


class Unhelped(Environment):
    """Sound, with two methods only: no policy, no digest and no summary of its own."""

    def samples(self) -> Sequence[str]:
        return Sound().samples()

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        return await self.sound().play(sample, agent, seed)

    def sound(self) -> Sound:
        return Sound()


async def test_an_environment_without_policies_is_checked_but_for_what_needs_them() -> None:
    results = [result async for result in check(Unhelped())]
    left_out = {result.name: result.detail for result in results if result.state == "left out"}
    assert left_out == {
        "the reference scores 1": "the environment has no reference policy",
        "the naive policy ends with a score": "the environment has no naive policy",
        "the random policy ends with a score": "the environment has no random policy",
        "faults change no summary": "no policy scores above 0 here, so faults that count as 0 would not show",
    }
    assert {result.name for result in results} == {ADVICE, *(name for _, name, _ in CASES)}
    assert [result for result in results if not result.ok] == [], "what is left out is not broken"


@pytest.mark.thorough
@pytest.mark.parametrize(("environment", "name", "detail"), PLAY_CASES, ids=[detail for *_, detail in PLAY_CASES])
async def test_without_policies_the_same_breaches_are_caught(environment: type[Sound], name: str, detail: str) -> None:
    class Bare(Unhelped):
        def sound(self) -> Sound:
            return environment()

    results = {result.name: result.detail for result in await broken(Bare(), deadline_of(environment))}
    assert detail in results[name]


async def test_at_most_so_many_samples_are_played_first_and_last_among_them() -> None:
    played: set[str] = set()

    class Noting(Sound):
        def naive(self, sample: str, seed: int = 0) -> Policy:
            played.add(sample)
            return super().naive(sample, seed)

    async for _ in check(Noting(), samples=2):
        pass
    assert played == {"first", "third"}


async def test_closing_the_iterator_ends_the_lifespan() -> None:
    events: list[str] = []

    class Noting(Sound):
        @asynccontextmanager
        async def lifespan(self) -> AsyncIterator[None]:
            events.append("start")
            yield
            events.append("end")

    results = check(Noting())
    async for result in results:
        if result.name == "the lifespan starts":
            break
    await results.aclose()
    assert events == ["start", "end"]


class Float32:
    """As numpy's scalars are: no float, and yet a number."""

    def __float__(self) -> float:
        return 0.5


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), None, "many", 10**400])
async def test_a_metric_that_is_no_number_is_named_with_its_sample(number: Any) -> None:
    found = await broken(measuring(number)())
    assert found
    assert all(
        "sample 'second': task_error: Finish: metrics.mean_error: Input should be a" in one.detail for one in found
    )


@pytest.mark.parametrize("number", [True, 1, 0.5, Float32()])
async def test_a_metric_that_is_a_number_in_some_way_is_taken(number: Any) -> None:
    assert await broken(measuring(number)()) == []


def measuring(number: Any) -> type[Sound]:
    class Measuring(Sound):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            finish = await super().play(sample, agent, seed)
            metrics = {"mean_error": number if sample == "second" else 0.5}
            return Finish(reason=finish.reason, score=finish.score, metrics=metrics)

    return Measuring


def _spin() -> None:
    while True:
        pass


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(lambda: time.sleep(10_000), id="asleep"),
        pytest.param(_spin, id="at work", marks=pytest.mark.thorough),
    ],
)
async def test_an_environment_that_blocks_the_event_loop_is_named_with_its_sample_and_the_place(block: Any) -> None:
    sessions = itertools.count()

    class Blocking(Sound):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            if sample == "second" and next(sessions) == 0:
                block()
            return await super().play(sample, agent, seed)

    found = [result async for result in check(Blocking(), deadline_s=slowly(1)) if not result.ok]
    assert [one.name for one in found] == ["the reference scores 1"]
    assert all("sample 'second': task_error: LoopBlocked: blocked the event loop" in one.detail for one in found)
    assert all("test_check_catches.py" in one.detail for one in found)
