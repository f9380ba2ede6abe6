"""A service that is away: its task waits, one trial probes at a time, and no trial pays for it."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_client.core.events import Job, ServiceSlots
from eval_client.trial.services import LONGEST_PAUSE_S, Services

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
    assert of.services.waiting() == {TASK: (100.0, "still gone")}
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
