"""Between attempts: a trial that starts over, one that is kept apart, one whose service is away."""

import asyncio
import math
from contextlib import AsyncExitStack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_client.core.events import Job, ServiceSlots
from eval_client.store.records import Turn
from eval_client.trial.attempt_log import PendingTrial
from eval_client.trial.episode import TrialHistory
from eval_client.trial.isolation import Isolation
from eval_client.trial.services import LONGEST_PAUSE_S, Services
from proctor.types import Action
from task_server.wire.messages import Act
from tests.pace import slowly

JOB = Job(0, ("a", "t"))


def turns(count: int) -> list[Turn]:
    reply = Act(action=Action(content=""))
    return [Turn(turn=n + 1, digest="", observation="{}", reply=reply, prompt_tokens=5) for n in range(count)]


def test_the_session_of_an_earlier_client_is_left_and_a_new_journal_begun() -> None:
    history = TrialHistory(turns=turns(3))
    pending = PendingTrial(JOB, history, session="old", recalled=True)
    assert pending.start_over() == "old"
    assert (pending.session, pending.recalled, history.turns, history.journal) == (None, False, [], 1)
    assert history.tokens().prompt_tokens == 15  # what was paid stays counted


def test_an_attempt_that_was_put_back_goes_on_as_it_was() -> None:
    pending = PendingTrial(JOB, session="mine")
    assert pending.start_over() is None
    assert (pending.session, pending.trial_history.journal) == ("mine", 0)


class Trials:
    """Attempts that are let in and out by name."""

    def __init__(self, patience_s: float = slowly(60)) -> None:
        self.isolation = Isolation(patience_s)
        self.inside: list[str] = []
        self._open: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def begin(self, name: str, *, suspect: bool = True, last_try: bool = False) -> None:
        self._open[name] = asyncio.Event()
        self._tasks[name] = asyncio.create_task(self._play(name, suspect, last_try))
        await self._settle()

    async def _play(self, name: str, suspect: bool, last_try: bool) -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self.isolation.entered(suspect=suspect, last_try=last_try))
            self.inside.append(name)
            await self._open[name].wait()
            self.inside.remove(name)

    async def end(self, *names: str) -> None:
        for name in names:
            self._open[name].set()
        await self._settle()

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        await self._settle()

    async def _settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)  # a round of the loop


async def test_a_last_try_waits_for_all_suspects_and_then_is_the_only_one() -> None:
    trials = Trials()
    await trials.begin("second try")
    await trials.begin("another")
    await trials.begin("last", last_try=True)
    assert trials.inside == ["second try", "another"]
    await trials.end("second try")
    assert trials.inside == ["another"]
    await trials.end("another")
    assert trials.inside == ["last"]
    await trials.begin("late")
    await trials.begin("last too", last_try=True)
    assert trials.inside == ["last"]
    await trials.end("last")
    assert trials.inside == ["last too"], "a last try goes first"
    await trials.end("last too")
    assert trials.inside == ["late"]


async def test_trials_that_lost_no_worker_never_wait_and_hold_up_nobody() -> None:
    trials = Trials()
    await trials.begin("first", suspect=False)
    await trials.begin("last", last_try=True)
    await trials.begin("second", suspect=False, last_try=True)
    assert trials.inside == ["first", "last", "second"]


async def test_a_last_try_that_is_cancelled_while_it_waits_holds_up_nobody() -> None:
    trials = Trials()
    await trials.begin("suspect")
    await trials.begin("last", last_try=True)
    await trials.begin("late")
    assert trials.inside == ["suspect"]
    await trials.cancel("last")
    await trials.end("suspect")
    await trials.begin("later")
    assert trials.inside == ["late", "later"]


async def test_nobody_waits_for_ever() -> None:
    trials = Trials(patience_s=0.0)
    await trials.begin("suspect")
    await trials.begin("last", last_try=True)
    assert trials.inside == ["suspect", "last"]


TASK = "t"
PATIENCE_S = 60.0


def job(number: int) -> Job:
    return Job(number, ("a", TASK))


class Told:
    """The services of one task, and what it may start."""

    def __init__(self) -> None:
        self.most = math.inf
        self.services = Services(self.hear, PATIENCE_S)

    def hear(self, slots: ServiceSlots) -> None:
        assert slots.task == TASK
        self.most = math.inf if slots.most is None else slots.most
        assert (slots.most is None) is (slots.waits_for is None)


def test_the_task_waits_and_is_probed_until_a_new_turn_is_carried_out() -> None:
    of = Told()
    assert of.services.away(job(1), 2, "gone", now=100.0)
    assert of.most == 0
    of.services.probe(100.1)
    assert of.most == 0
    of.services.probe(100.0 + LONGEST_PAUSE_S)
    assert of.most == 1
    assert of.services.away(job(2), 0, "still gone", now=106.0)
    assert of.most == 0
    assert of.services.waiting() == {TASK: (100.0, "still gone", PATIENCE_S)}
    assert of.services.away(job(3), 0, "a judge is gone", 112.0, 2 * PATIENCE_S)
    assert of.services.waiting() == {TASK: (100.0, "a judge is gone", 2 * PATIENCE_S)}
    of.services.worked(TASK)
    assert of.most == math.inf
    assert of.services.waiting() == {}


@given(st.lists(st.tuples(st.floats(0, 30), st.integers(0, 3), st.integers(0, 3)), max_size=60))
def test_an_outage_that_nothing_survives_is_nobodys_fault(events: list[tuple[float, int, int]]) -> None:
    of, now = Told(), 0.0
    for after, trial, turns in events:
        now += after
        assert of.services.away(job(trial), turns, "gone", now)
        of.services.probe(now + LONGEST_PAUSE_S)
        assert of.most == 1


@given(
    st.lists(st.tuples(st.floats(0, PATIENCE_S / 2), st.sampled_from(("worked", "away", "away"))), max_size=60),
)
def test_within_the_patience_no_trial_pays_though_others_go_on(events: list[tuple[float, str]]) -> None:
    of, now = Told(), 0.0
    for after, what in events:
        now += after
        if now >= PATIENCE_S:
            break
        if what == "worked":
            of.services.worked(TASK)
        else:
            assert of.services.away(job(1), 1, "gone", now)


@pytest.mark.parametrize("further", [False, True])
def test_a_trial_that_never_gets_further_while_the_service_works_for_others_pays(further: bool) -> None:
    of, now = Told(), 0.0
    blamed = []
    for turns in range(20):
        now += 10.0
        blamed.append(of.services.away(job(1), turns if further else 0, "its container has ended", now))
        of.services.worked(TASK)
    assert all(blamed) is further
    assert blamed[:5] == [True] * 5
