"""Turns and leases as state machines, and the sessions of a worker around them."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from proctor.environment import Agent
from proctor.session.kept_replies import ModelReply, session_replies
from proctor.types import Action, Finish, FinishReason, Message, Observation
from task_server.wire.clients import SILENT_S
from task_server.wire.errors import (
    BadRequest,
    InWork,
    NoCapacity,
    SessionHeld,
    SessionTaken,
    TurnConflict,
    UnknownSession,
)
from task_server.wire.messages import Act, Finished, Observed, Sender, StartSession, Stop, TurnRequest
from task_server.wire.turns import Lease, Turns
from task_server.worker import sessions as sessions_module
from task_server.worker.sessions import TICK_S, Sessions
from tests.pace import slowly
from tests.task_server_world import Counting

ONE, TWO = "1" * 32, "2" * 32
DONE = Finish(reason=FinishReason.COMPLETED, score=1.0)


def asked(number: int) -> Observation:
    return Observation(messages=(Message(role="user", content=str(number)),))


def act(content: str) -> Act:
    return Act(action=Action(content=content))


def step(answers: int) -> Observed:
    """What is sent after so many answers."""
    return Observed(turn=answers + 1, observation=asked(answers))


class TurnsAgainstAList(RuleBasedStateMachine):
    """Whatever a client sends, the answers applied are 1, 2, 3, ... each once, and repeats get what was stored."""

    def __init__(self) -> None:
        super().__init__()
        self.turns = Turns()
        self.applied: list[str] = []
        self.over = False

    @precondition(lambda self: self.turns.step is None)
    @rule(finish=st.integers(0, 9))
    def environment_steps(self, finish: int) -> None:
        self.over = finish == 0
        self.turns = self.turns.finished(DONE) if self.over else self.turns.observed(step(len(self.applied)))

    @rule(turn=st.integers(1, 12), content=st.sampled_from(["a", "b"]))
    def client_answers(self, turn: int, content: str) -> None:
        self._answer(turn, content)

    @rule(content=st.sampled_from(["a", "b"]))
    def client_goes_on(self, content: str) -> None:
        self._answer(len(self.applied) + 1, content)

    @rule()
    def client_repeats(self) -> None:
        if self.applied:
            self._answer(len(self.applied), self.applied[-1])

    def _answer(self, turn: int, content: str) -> None:
        before, waits = self.turns, isinstance(self.turns.step, Observed)
        try:
            self.turns, new = before.replied(turn, act(content))
        except TurnConflict:
            assert not (turn == len(self.applied) + 1 and waits)
            assert not (turn == len(self.applied) and content == self.applied[-1])
            return
        if new:
            assert turn == len(self.applied) + 1
            assert waits
            self.applied.append(content)
        else:
            assert self.turns == before
            assert turn == len(self.applied)
            assert content == self.applied[-1]

    @invariant()
    def counts_what_was_applied(self) -> None:
        assert self.turns.answered == len(self.applied)
        if isinstance(self.turns.step, Observed):
            assert self.turns.step.turn == len(self.applied) + 1


TestTurnsAgainstAList = TurnsAgainstAList.TestCase


def test_a_conflict_names_the_current_turn() -> None:
    turns, _ = Turns().observed(step(0)).replied(1, act("a"))
    with pytest.raises(TurnConflict, match="turn 1 is in work"):
        turns.replied(2, act("b"))
    with pytest.raises(TurnConflict, match="turn 2 is current"):
        turns.observed(step(1)).replied(7, act("b"))
    with pytest.raises(TurnConflict, match="turn 1: it was answered otherwise"):
        turns.observed(step(1)).replied(1, act("b"))
    with pytest.raises(TurnConflict, match="finished"):
        turns.finished(DONE).replied(2, act("b"))


def test_a_lease_ends_when_it_was_not_renewed() -> None:
    lease = Lease.granted(10.0, now=100.0)
    assert not lease.expired(109.9)
    assert lease.expired(110.0)
    assert not lease.renewed(109.0).expired(118.9)


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


class Hall:
    """Sessions with a clock and a count of changes."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.changes = 0
        self.sessions = Sessions(self.clock, self._changed)

    def _changed(self) -> None:
        self.changes += 1

    async def begin(self, session: str = ONE, environment: Counting | None = None, capacity: int = 2) -> Observed:
        request = StartSession(session=session, task="count", sample="plain")
        stands = await self.sessions.start(request, environment or Counting(), capacity).current_step()
        assert isinstance(stands.step, Observed)
        return stands.step

    async def answer(self, turn: int, content: str = "0", session: str = ONE) -> Observed | Finished:
        return (await self.sessions.find(session).turn(TurnRequest(turn=turn, reply=act(content)))).step


@pytest.fixture
async def hall() -> AsyncIterator[Hall]:
    hall = Hall()
    yield hall
    await hall.sessions.end_all()


async def test_a_session_plays_to_its_finish_and_repeats_get_the_stored_step(hall: Hall) -> None:
    first = await hall.begin()
    assert (first.turn, first.observation) == (1, asked(0))
    second = await hall.answer(1, "1")
    assert second == Observed(turn=2, observation=asked(1))
    assert await hall.answer(1, "1") == second
    await hall.answer(2, "2")
    finished = await hall.answer(3, "wrong")
    assert isinstance(finished, Finished)
    assert finished.finish.score == pytest.approx(2 / 3)
    assert await hall.answer(3, "wrong") == finished


async def test_a_finish_frees_the_slot_and_keeps_the_record_until_its_lease_ends(hall: Hall) -> None:
    await hall.begin(environment=Counting(turns=1), capacity=1)
    with pytest.raises(NoCapacity) as refusal:
        await hall.begin(TWO, capacity=1)
    assert refusal.value.retry_after_s == 1.0
    await hall.answer(1)
    await hall.begin(TWO, capacity=1)
    assert set(hall.sessions.held()) == {ONE, TWO}
    hall.clock.time = 59.9
    assert hall.sessions.renew([ONE, TWO, "3" * 32]).lost == ("3" * 32,)
    hall.clock.time = 119.9
    assert hall.sessions.expire() == 1
    assert hall.sessions.held() == ()


async def test_repeats_that_come_while_the_turn_is_in_work_share_its_result(hall: Hall) -> None:
    await hall.begin()
    one, two = await asyncio.gather(hall.answer(1, "1"), hall.answer(1, "1"))
    assert one == two == Observed(turn=2, observation=asked(1))


async def test_a_stop_ends_the_play_with_its_reason(hall: Hall) -> None:
    await hall.begin()
    stop = TurnRequest(turn=1, reply=Stop(reason=FinishReason.CONTEXT_LIMIT))
    turned = await hall.sessions.find(ONE).turn(stop)
    assert turned.step == Finished(finish=Finish(reason=FinishReason.CONTEXT_LIMIT, score=0.0))


async def test_an_ended_session_frees_what_it_held_and_its_id_is_spent(hall: Hall) -> None:
    freed = asyncio.Event()

    class Holding(Counting):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            try:
                return await super().play(sample, agent, seed)
            finally:
                freed.set()

    await hall.begin(environment=Holding())
    await hall.sessions.end(ONE)
    assert freed.is_set()
    assert hall.sessions.live("count") == 0
    await hall.sessions.end(ONE)
    with pytest.raises(UnknownSession):
        hall.sessions.find(ONE)
    with pytest.raises(UnknownSession):
        hall.sessions.find_started(StartSession(session=ONE, task="count", sample="plain"))
    assert hall.sessions.renew([ONE]).lost == (ONE,)


async def test_whoever_waits_for_a_step_learns_that_the_session_ended(hall: Hall) -> None:
    class Stuck(Counting):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            await agent.act(asked(0))
            await asyncio.Event().wait()
            raise AssertionError

    await hall.begin(environment=Stuck())
    waiting = asyncio.create_task(hall.answer(1))
    await asyncio.sleep(0)
    await hall.sessions.end(ONE)
    with pytest.raises(UnknownSession):
        await waiting


async def test_a_paid_reply_is_told_while_the_environment_still_works(
    hall: Hall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions_module, "STEP_WAIT_S", 1e6)
    told = asyncio.Event()

    class Asking(Counting):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            await agent.act(asked(0))
            replies = session_replies.get()
            assert replies is not None
            await asyncio.sleep(0)
            replies.add("0" * 40, ModelReply(text="yes", model="judge"), bought=True)
            await told.wait()
            return DONE

    request = StartSession(session=ONE, task="count", sample="plain", lease_s=600)
    session = hall.sessions.start(request, Asking(), 1)
    await session.current_step()
    with pytest.raises(InWork) as working:
        async with asyncio.timeout(slowly(10)):
            await session.turn(TurnRequest(turn=1, reply=act("0"), replies=0))
    assert [kept.reply.text for kept in working.value.replies] == ["yes"]
    told.set()
    assert (await session.current_step(1)).step == Finished(finish=DONE)


async def test_an_environment_that_cancels_itself_is_a_fault_and_not_a_hang(hall: Hall) -> None:
    class Cancelling(Counting):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            await agent.act(asked(0))
            raise asyncio.CancelledError

    await hall.begin(environment=Cancelling())
    step = await hall.answer(1)
    assert isinstance(step, Finished)
    assert step.finish.reason is FinishReason.TASK_ERROR


async def test_an_id_can_not_be_used_for_another_sample(hall: Hall) -> None:
    await hall.begin()
    with pytest.raises(BadRequest):
        hall.sessions.find_started(StartSession(session=ONE, task="count", sample="other"))
    assert hall.sessions.find_started(StartSession(session=ONE, task="count", sample="plain")) is not None


async def test_every_start_and_every_freed_slot_is_a_change(hall: Hall) -> None:
    await hall.begin()
    assert hall.changes == 1
    await hall.sessions.end(ONE)
    assert hall.changes == 2


ORIGINAL, COPY = (Sender("f" * 32, client=client * 32) for client in "ab")


async def pass_time(hall: Hall, seconds: float) -> None:
    """While the worker listens."""
    for _ in range(round(seconds / TICK_S)):
        hall.clock.time += TICK_S
        hall.sessions.tick()


async def test_another_client_gets_a_session_only_of_a_silent_one_and_the_earlier_one_never_again(hall: Hall) -> None:
    request = StartSession(session=ONE, task="count", sample="plain")
    session = hall.sessions.start(request, Counting(), 2, ORIGINAL)
    await session.current_step()
    await pass_time(hall, SILENT_S - TICK_S)
    before = session.lease
    for refused in (
        lambda: hall.sessions.find_started(request, COPY),
        lambda: hall.sessions.find(ONE, COPY),
        lambda: hall.sessions.renew([TWO, ONE], COPY),
    ):
        with pytest.raises(SessionHeld) as refusal:
            refused()
        assert refusal.value.retry_after_s == TICK_S
    with pytest.raises(SessionHeld):
        await hall.sessions.end(ONE, COPY)
    assert (session.lease, hall.sessions.held()) == (before, (ONE,))
    hall.clock.time += 3 * SILENT_S  # its event loop was blocked: nobody could be heard
    assert hall.sessions.renew([ONE], ORIGINAL).lost == ()
    await pass_time(hall, SILENT_S + TICK_S)
    assert hall.sessions.find_started(request, COPY) is session
    with pytest.raises(SessionTaken):
        hall.sessions.find(ONE, ORIGINAL)
    with pytest.raises(SessionTaken):
        await hall.sessions.end(ONE, ORIGINAL)
    assert hall.sessions.held() == (ONE,)
    await hall.sessions.end(ONE, COPY)
    with pytest.raises(SessionTaken):
        hall.sessions.renew([ONE], ORIGINAL)
    with pytest.raises(UnknownSession):
        hall.sessions.find(ONE, COPY)


async def test_a_client_that_plays_is_told_of_others_of_its_run_until_they_are_silent(hall: Hall) -> None:
    assert not hall.sessions.renew([], ORIGINAL).others
    assert hall.sessions.renew([], COPY._replace(yields=True)).others
    assert not hall.sessions.renew([], ORIGINAL).others
    assert not hall.sessions.renew([], Sender("e" * 32, client="c" * 32)).others
    assert not hall.sessions.renew([], Sender("f" * 32)).others
    await pass_time(hall, SILENT_S)
    assert not hall.sessions.renew([], COPY).others
