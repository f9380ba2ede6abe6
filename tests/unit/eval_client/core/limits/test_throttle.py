"""Limits shared by several clients: divided by demand, never exceeded, whoever asks when; 429s count for all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval_client.core.limits.pool import Quota, divide, granted
from eval_client.core.limits.throttle import LONGEST_COOL_S, EndpointFeedback, adjusted

DEMANDS = st.dictionaries(st.integers(1, 20), st.integers(0, 60), min_size=1, max_size=6)


@given(st.integers(0, 100), DEMANDS)
def test_a_limit_is_divided_whole_and_fairly(limit: int, wanted: dict[int, int]) -> None:
    parts = divide(limit, wanted)
    assert sum(parts.values()) == min(limit, sum(wanted.values()))
    assert all(0 <= parts[shard] <= wanted[shard] for shard in wanted)
    lacking = [parts[shard] for shard in wanted if parts[shard] < wanted[shard]]
    assert not lacking or max(parts.values()) <= min(lacking) + 1


def test_the_last_units_of_all_limits_go_to_the_same_client() -> None:
    """Else each could hold what the other lacks, and neither could play."""
    limits = {"endpoint": {1: 3, 2: 4}, "X": {1: 3, 2: 2}, "Y": {2: 2}, "T1": {2: 2}, "T2": {1: 3, 2: 2}}
    first = {name: divide(1, wanted) for name, wanted in limits.items()}
    assert [first[name][1] for name in ("endpoint", "X", "T2")] == [1, 1, 1]


def test_a_limit_that_shrinks_below_what_is_used_is_given_to_nobody_until_that_ends() -> None:
    using = {1: Quota(held=8, wanted=8), 2: Quota(held=8, wanted=8)}
    assert granted(8, 1, using) == 0
    assert granted(8, 1, {**using, 2: Quota(held=3, wanted=8)}) == 4


THROTTLED = EndpointFeedback(throttled=True)


@pytest.mark.parametrize(
    ("heard", "limit", "cool_until"),
    [
        ([(10.0, EndpointFeedback(throttled=True, retry_after_s=2.0))] * 5, 8.0, 12.0),
        ([(10.0, THROTTLED), (10.5, THROTTLED)], 8.0, 11.5),
        ([(10.0, THROTTLED), (12.0, THROTTLED)], 4.0, 13.0),
        ([(float(second), THROTTLED) for second in range(10)], 1.0, 10.0),
        ([(10.0, EndpointFeedback(throttled=True, retry_after_s=1e9))], 8.0, 10.0 + LONGEST_COOL_S),
        ([(0.0, THROTTLED), (10.0, EndpointFeedback(answered=9))], 9.0, 1.0),
        ([(0.0, THROTTLED), *[(10.0, EndpointFeedback(answered=16))] * 20], 16.0, 1.0),
        ([(5000.0, THROTTLED), (1400.0, EndpointFeedback())], 8.0, 1400.0),
    ],
    ids=["a wave", "within the pause", "the next wave", "down to one", "an absurd pause", "success", "to the ceiling",
         "a clock that is set back"],
)  # fmt: skip
def test_the_level_of_all_after_what_each_heard(
    heard: list[tuple[float, EndpointFeedback]], limit: float, cool_until: float
) -> None:
    level = None
    for now, feedback in heard:
        level = adjusted(level, 16, feedback, now)
    assert level is not None
    assert (int(level.limit), level.cool_until) == (limit, cool_until)


def test_what_could_not_be_told_is_told_with_what_came_later() -> None:
    feedback = EndpointFeedback(answered=3, throttled=True, retry_after_s=2.0)
    later = EndpointFeedback(answered=1)
    later.merge(feedback)
    assert (later.answered, later.throttled, later.retry_after_s) == (4, True, 2.0)
    later.was_throttled(7.0)
    later.was_throttled(None)
    assert later.retry_after_s == pytest.approx(7.0)
