"""What a worker counts of its sessions."""

import asyncio

from proctor.environment import Agent, EnvironmentFault
from proctor.observability.metrics import expose
from proctor.types import Action, Finish
from task_server.wire.messages import Act, StartSession, TurnRequest
from task_server.worker.sessions import Sessions
from tests.task_server_world import Counting

ONE = "1" * 32


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


class Breaking(Counting):
    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        raise EnvironmentFault("the disk at /some/path is full")


class Slow(Counting):
    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        CLOCK.time += 3.0
        return await super().play(sample, agent, seed)


CLOCK = Clock()


def begin(session: str) -> StartSession:
    return StartSession(session=session, task="count", sample="plain")


async def test_a_fault_is_counted_by_its_class_and_not_by_its_text() -> None:
    sessions = Sessions(CLOCK, lambda: None)
    await sessions.start(begin(ONE), Breaking(), 1).current_step()
    text = expose(sessions.metrics.collect())
    assert 'proctor_faults_total{kind="EnvironmentFault",task="count"} 1.0' in text
    assert 'proctor_finishes_total{reason="task_error",task="count"} 1.0' in text
    assert "/some/path" not in text


async def test_a_session_that_was_ended_is_no_finish_and_no_fault() -> None:
    sessions = Sessions(CLOCK, lambda: None)
    await sessions.start(begin(ONE), Counting(), 1).current_step()
    await sessions.end(ONE)
    text = expose(sessions.metrics.collect())
    assert 'proctor_sessions_started_total{task="count"} 1.0' in text
    assert "proctor_finishes_total{" not in text
    assert "proctor_faults_total{" not in text


async def test_an_environment_that_cancels_itself_is_a_fault() -> None:
    class Cancelling(Counting):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            raise asyncio.CancelledError

    sessions = Sessions(CLOCK, lambda: None)
    await sessions.start(begin(ONE), Cancelling(), 1).current_step()
    assert 'proctor_faults_total{kind="CancelledError",task="count"} 1.0' in expose(sessions.metrics.collect())


async def test_starts_and_turns_are_timed_and_repeats_are_counted_once() -> None:
    sessions = Sessions(CLOCK, lambda: None)
    session = sessions.start(begin(ONE), Slow(), 1)
    await session.current_step()
    turn = TurnRequest(turn=1, reply=Act(action=Action(content="1")))
    assert await session.turn(turn) == await session.turn(turn)
    text = expose(sessions.metrics.collect())
    assert 'proctor_session_start_seconds_sum{task="count"} 3.0' in text
    assert 'proctor_session_start_seconds_bucket{le="2.0",task="count"} 0.0' in text
    assert 'proctor_turns_total{task="count"} 1.0' in text
    assert 'proctor_turn_seconds_count{task="count"} 1.0' in text
    await sessions.end_all()
