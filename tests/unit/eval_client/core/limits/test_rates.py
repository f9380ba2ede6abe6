"""Requests and tokens a minute: never more in any minute, shared in turn, settled once an answer says what it took."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_client.core.limits.rates import BURST_S, SLIP_S, Estimate, Pace, RateRequest, Rates, Slot, reserve

BUSIEST = st.sampled_from([1, 2, 3, 7, 10, 60, 600, 3000])


def most_in_a_minute(moments: list[tuple[float, float]]) -> float:
    """The most that any 60 s saw, of (moment, amount)."""
    moments = sorted(moments)
    return max(sum(amount for at, amount in moments if begin <= at < begin + 60) for begin, _ in moments)


@given(rpm=BUSIEST, clients=st.integers(1, 4), seed=st.integers(0, 100))
def test_no_minute_sees_more_requests_than_rpm_whoever_asks_when(rpm: int, clients: int, seed: int) -> None:
    """Clients ask at random times for random numbers, and send up to the slip after what they were given."""
    rng, now, pace = random.Random(seed), 1000.0, Pace()
    sent: list[tuple[float, float]] = []
    for _ in range(60):
        now += rng.choice([0.0, 0.05, 1.0, 5.0])
        ask = RateRequest(waiting=(0.0,) * rng.randint(0, 40))
        pace, slots = reserve(pace, Rates(rpm=rpm), now, ask, clients)
        sent += [(slot.due + rng.choice([0.0, 0.999 * SLIP_S]), 1.0) for slot in slots]
    if sent:  # clients that were killed hold nothing, so they ask for more than any that live
        assert most_in_a_minute(sent) <= rpm


def test_a_busy_client_uses_nearly_all_of_the_rate() -> None:
    now, pace = 0.0, Pace()
    dues: list[float] = []
    while now < 300:
        held = tuple(0.0 for due in dues if due > now)
        pace, slots = reserve(pace, Rates(rpm=600), now, RateRequest(waiting=(0.0,) * 100, held=held), 1)
        dues += [slot.due for slot in slots]
        now += 0.25
    assert 0.93 * 3000 <= sum(due < 300 for due in dues) <= 3000


def test_clients_that_all_wait_get_equal_parts_whoever_asks_more_often() -> None:
    pace = Pace()
    got: dict[str, list[float]] = {"often": [], "seldom": []}
    for tick in range(6000):
        now = tick * 0.02
        for name, every in (("often", 1), ("seldom", 5)):
            if tick % every == 0:
                held = tuple(0.0 for due in got[name] if due > now)
                pace, slots = reserve(pace, Rates(rpm=300), now, RateRequest(waiting=(0.0,) * 50, held=held), 2)
                got[name] += [slot.due for slot in slots]
    often, seldom = (len(dues) for dues in got.values())
    assert often < 1.25 * seldom


@given(tpm=st.sampled_from([10_000, 200_000]), seed=st.integers(0, 50))
def test_tokens_stay_within_tpm_but_for_one_request_where_estimates_are_right(tpm: int, seed: int) -> None:
    rng, now, pace = random.Random(seed), 0.0, Pace()
    sent: list[tuple[float, float]] = []
    for _ in range(200):
        now += rng.choice([0.05, 0.5])
        ask = RateRequest(waiting=tuple(rng.uniform(10, 1500) for _ in range(5)))
        pace, slots = reserve(pace, Rates(tpm=tpm), now, ask, 1)
        sent += [(slot.due, slot.tokens) for slot in slots]
    assert most_in_a_minute(sent) <= tpm + 1500


def test_what_requests_took_beyond_their_estimates_is_waited_for_afterwards() -> None:
    """Each is thought to take 100 tokens and takes 1,000."""
    now, pace, debt = 0.0, Pace(), 0.0
    sent: list[tuple[float, float]] = []
    while now < 600:
        pace, slots = reserve(pace, Rates(tpm=10_000), now, RateRequest(waiting=(100.0,), debt=debt), 1)
        debt = 900.0 * len(slots)
        sent += [(slot.due, 1000.0) for slot in slots]
        now = max(now, *(slot.due for slot in slots)) + 0.1
    assert 0.9 * 10_000 <= sum(tokens for _, tokens in sent) / 10 <= 10_000 + 1000


def test_what_was_reserved_and_not_used_is_given_back() -> None:
    used, _ = reserve(Pace(), Rates(tpm=6000), 100.0, RateRequest(waiting=(3000.0,)), 1)
    back, _ = reserve(used, Rates(tpm=6000), 100.0, RateRequest(debt=-3000.0), 1)
    assert used.tokens_at > 125
    assert back.tokens_at == pytest.approx(100.0 - BURST_S)


def test_each_slot_says_which_rate_made_it_wait() -> None:
    rates = Rates(rpm=60, tpm=600)
    pace, (first,) = reserve(Pace(), rates, 10.0, RateRequest(waiting=(100.0,)), 1)
    _, (second,) = reserve(pace, rates, 10.0, RateRequest(waiting=(100.0,)), 1)
    assert (first.due, second.by) == (10.0, "tpm")
    assert second.due == pytest.approx(10.0 - BURST_S + 100 * 60 / 570)


def test_a_moment_too_far_away_to_be_true_holds_nobody_for_longer_than_all_can_have_reserved() -> None:
    for rates in (Rates(rpm=60), Rates(tpm=1000)):
        now = 10.0
        slots: list[Slot] = []
        pace = Pace(requests_at=1e12, tokens_at=1e12)
        while not slots:
            pace, slots = reserve(pace, rates, now, RateRequest(waiting=(1.0,)), 1)
            now += 1.0
        assert slots[0].due <= 10.0 + 4 * 64


def test_the_smallest_of_several_rates_holds() -> None:
    assert Rates(60, None).both(Rates(120, 500)) == Rates(60, 500)
    assert Rates().both(Rates()) == Rates()


def test_an_estimate_comes_to_what_requests_take() -> None:
    estimate, errors = Estimate(), Counter[bool]()
    for turn in range(1, 200):
        chars = 300 * (turn % 7 + 1)
        errors[abs(estimate.of(chars) - (chars / 3 + 40)) < 10] += turn > 50
        estimate.learn(chars, chars // 3, 40)
    assert errors[False] == 0
