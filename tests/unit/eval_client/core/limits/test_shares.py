"""Limits shared by several clients: divided by demand, never exceeded, whoever asks when; 429s count for all."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from eval_client.core.limits.shares import EndpointFeedback, Quota, adjusted, divide, granted

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


class Sharing(RuleBasedStateMachine):
    """Shards that come, want, use, tell one another at any time, and vanish; between two tells each goes on."""

    @initialize(limit=st.integers(1, 20))
    def begin(self, limit: int) -> None:
        self.limit = limit
        self.told: dict[int, Quota] = {}
        self.capacity: dict[int, int] = {}
        self.used: dict[int, int] = {}
        self.demand: dict[int, int] = {}

    @rule(shard=st.integers(1, 4), demand=st.integers(0, 30))
    def want(self, shard: int, demand: int) -> None:
        self.demand[shard] = demand
        self.used.setdefault(shard, 0)
        self.capacity.setdefault(shard, 0)

    @rule(shard=st.integers(1, 4), more=st.integers(1, 20))
    def use(self, shard: int, more: int) -> None:
        if shard in self.used:
            self.used[shard] = max(self.used[shard], min(self.used[shard] + more, self.capacity[shard]))

    @rule(shard=st.integers(1, 4), fewer=st.integers(1, 20))
    def end(self, shard: int, fewer: int) -> None:
        if shard in self.used:
            self.used[shard] = max(0, self.used[shard] - fewer)

    @rule(shard=st.integers(1, 4))
    def exchange(self, shard: int) -> None:
        if shard in self.used:
            self._exchange(shard)

    def _exchange(self, shard: int) -> None:
        held = max(self.used[shard], self.capacity[shard])
        own = Quota(held=held, wanted=self.used[shard] + self.demand[shard])
        self.capacity[shard] = granted(self.limit, shard, {**self.told, shard: own})
        self.told[shard] = Quota(held=max(held, self.capacity[shard]), wanted=own.wanted)

    @rule(shard=st.integers(1, 4))
    def vanish(self, shard: int) -> None:
        for each in (self.told, self.capacity, self.used, self.demand):
            each.pop(shard, None)

    @invariant()
    def nobody_exceeds_the_limit(self) -> None:
        if hasattr(self, "limit"):
            assert sum(max(self.used[shard], self.capacity[shard]) for shard in self.used) <= self.limit

    @rule()
    def settle(self) -> None:
        """Once demands stand still and nothing is in use, four rounds give everybody its fair part."""
        self.used = dict.fromkeys(self.used, 0)
        for shard in 4 * list(self.used):
            self._exchange(shard)
        assert self.capacity == divide(self.limit, self.demand)


TestSharing = Sharing.TestCase


def test_a_limit_that_shrinks_below_what_is_used_is_given_to_nobody_until_that_ends() -> None:
    using = {1: Quota(held=8, wanted=8), 2: Quota(held=8, wanted=8)}
    assert granted(8, 1, using) == 0
    assert granted(8, 1, {**using, 2: Quota(held=3, wanted=8)}) == 4


def test_a_429_halves_the_level_of_all_and_a_wave_of_them_only_once() -> None:
    level = adjusted(None, 16, EndpointFeedback(throttled=True, retry_after_s=5.0), now=100.0)
    assert (level.limit, level.cool_until) == (8.0, 105.0)
    again = adjusted(level, 16, EndpointFeedback(throttled=True), now=101.0)
    assert (again.limit, again.cool_until) == (8.0, 105.0)
    assert adjusted(again, 16, EndpointFeedback(throttled=True), now=106.0).limit == 4.0


def test_a_clock_that_is_set_back_keeps_nobody_waiting() -> None:
    level = adjusted(None, 16, EndpointFeedback(throttled=True), now=5000.0)
    assert adjusted(level, 16, EndpointFeedback(), now=1400.0).cool_until == 1400.0


def test_answers_heard_by_any_client_raise_the_level_again_to_its_ceiling() -> None:
    level = adjusted(None, 16, EndpointFeedback(throttled=True), now=0.0)
    for _ in range(20):
        level = adjusted(level, 16, EndpointFeedback(answered=16), now=10.0)
    assert level.limit == 16.0


def test_what_could_not_be_told_is_told_with_what_came_later() -> None:
    feedback = EndpointFeedback(answered=3, throttled=True, retry_after_s=2.0)
    later = EndpointFeedback(answered=1)
    later.merge(feedback)
    assert (later.answered, later.throttled, later.retry_after_s) == (4, True, 2.0)
    later.was_throttled(7.0)
    later.was_throttled(None)
    assert later.retry_after_s == pytest.approx(7.0)
