"""Runs that share an endpoint: fair parts that never exceed it, 429s and rates for all."""

import dataclasses
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from eval_client.core.limits.pool import LEASE_S, TURN_S, ClientReport, Pool, PoolClient, Quota, Share, exchange
from eval_client.core.limits.rates import RateRequest, Rates
from eval_client.core.limits.throttle import EndpointFeedback

NONE = Quota(held=0, wanted=0)


def client(run: str, wanted: int = 0, held: int = 0, ceiling: int = 16, number: int = 0, **rates: int) -> PoolClient:
    slice = Quota(held=held, wanted=wanted)
    return PoolClient(run=run, endpoint="e", name=run, number=number, ceiling=ceiling, slice=slice, **rates)


def said(
    one: PoolClient,
    feedback: EndpointFeedback | None = None,
    ask: RateRequest | None = None,
    *,
    takes_over: bool = False,
) -> ClientReport:
    key = f"{one.run}/{one.number}/{one.endpoint}"
    return ClientReport(key, one, feedback or EndpointFeedback(), ask or RateRequest(), takes_over)


def settled(clients: list[PoolClient], now: float = 0.0) -> tuple[Pool, dict[str, Share]]:
    """After so many rounds that nothing changes any more; nobody uses what was granted."""
    pool = Pool()
    shares: dict[str, Share] = {}
    for _ in range(6):
        for one in clients:
            held = shares[said(one).key].grant if said(one).key in shares else 0
            told = one.model_copy(update={"slice": Quota(held=held, wanted=one.slice.wanted)})
            pool, shares[said(one).key] = exchange(pool, now, said(told))
    return pool, shares


def grants(clients: list[PoolClient], now: float = 0.0) -> list[int]:
    return [share.grant for share in settled(clients, now)[1].values()]


def test_a_run_that_is_alone_has_everything_whatever_it_wants() -> None:
    _, share = exchange(Pool(), 5.0, said(client("a", wanted=0)))
    assert (share.grant, share.others, share.slots) == (16, (), ())


def test_runs_have_equal_parts_however_many_clients_each_has() -> None:
    assert grants([client("a", 50), client("b", 50)]) == [8, 8]
    assert grants([client("a", 50, number=n) for n in (1, 2, 3)] + [client("b", 50)]) == [3, 3, 2, 8]
    assert grants([client("a", 3), client("b", 50)]) == [3, 13]


def test_the_largest_ceiling_holds_for_all_and_each_keeps_within_its_own() -> None:
    assert grants([client("a", 50, ceiling=4), client("b", 50, ceiling=16)]) == [4, 12]
    assert grants([client("a", 50, ceiling=4), client("b", 50, ceiling=4)]) == [2, 2]


def test_a_run_that_names_the_endpoint_twice_has_both_ceilings() -> None:
    second = client("a", 50, ceiling=6).model_copy(update={"endpoint": "f"})
    assert sum(grants([client("a", 50, ceiling=10), second])) == 16


def test_with_fewer_trials_than_runs_each_has_its_turn() -> None:
    runs = [client(name, 9, ceiling=1) for name in "abc"]
    assert [grants(runs, TURN_S * turn) for turn in range(3)] == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_a_newcomer_gets_nothing_that_others_hold_and_its_part_once_they_let_go() -> None:
    pool, _ = exchange(Pool(), 0.0, said(client("a", 50, held=16)))
    pool, share = exchange(pool, 1.0, said(client("b", 50)))
    assert (share.grant, share.others) == (0, ("a",))
    pool, share = exchange(pool, 2.0, said(client("a", 50, held=16)))
    assert (share.grant, share.others) == (8, ("b",))
    pool, _ = exchange(pool, 2.1, said(client("a", 50, held=8)))
    assert exchange(pool, 2.2, said(client("b", 50)))[1].grant == 8


def test_what_a_killed_client_held_is_free_after_its_lease_and_what_one_that_left_held_at_once() -> None:
    pool, _ = exchange(Pool(), 0.0, said(client("a", 50, held=16)))
    assert exchange(pool, LEASE_S - 0.1, said(client("b", 50)))[1].grant == 0
    assert exchange(pool, LEASE_S + 0.1, said(client("b", 50)))[1].grant == 16
    assert exchange(pool.without("a/0/e"), 0.1, said(client("b", 50)))[1].grant == 16


def test_an_outage_of_what_keeps_the_pool_counts_as_no_ones_silence() -> None:
    pool, _ = exchange(Pool(), 0.0, said(client("a", 50, held=8)))
    pool, _ = exchange(pool, 5.0, said(client("b", 50, held=8)))
    back = pool.excused(45.0)
    assert set(back.live(45.0)) == {"a/0/e", "b/0/e"}
    assert set(pool.excused(6.9).live(11.0)) == {"b/0/e"}
    assert pool.excused(3600.0).live(3600.0) == {}
    assert Pool().excused(5.0) == Pool()


def test_who_resumes_a_run_has_at_once_what_its_killed_client_held() -> None:
    pool, _ = exchange(Pool(), 0.0, said(client("a", 50, held=16, number=1)))
    resumed = dataclasses.replace(said(client("a", 50, number=1)), key="later")
    assert exchange(pool, 1.0, resumed)[1].grant == 0
    assert exchange(pool, 1.0, dataclasses.replace(resumed, takes_over=True))[1].grant == 16
    other_part = said(client("a", 50, number=2), takes_over=True)
    assert exchange(pool, 1.0, other_part)[1].grant == 0, "what a part holds is not another one's"


def test_parts_with_limits_of_their_own_have_all_of_them_together() -> None:
    parts = [client("a", 50, ceiling=4, number=n, of=4, rpm=15) for n in (1, 2, 3, 4)]
    pool, shares = settled(parts)
    assert [share.grant for share in shares.values()] == [4, 4, 4, 4]
    assert exchange(pool, 0.0, said(parts[0]))[1].rates == Rates(60, None)
    assert grants(parts[:1]) == [4]
    beside = [*parts, client("b", 50, rpm=30)]
    pool, shares = settled(beside)
    assert sum(share.grant for share in shares.values()) == 16
    assert exchange(pool, 0.0, said(parts[0]))[1].rates == Rates(30, None)


def test_a_429_to_one_run_halves_the_limit_of_all_and_cools_all() -> None:
    pool, _ = settled([client("a", 50), client("b", 50)])
    pool, _ = exchange(pool, 1.0, said(client("a", 50, held=8), EndpointFeedback(throttled=True, retry_after_s=20.0)))
    _, share = exchange(pool, 2.0, said(client("b", 50, held=8)))
    assert (share.level.limit, share.level.cool_until, share.grant) == (8.0, 21.0, 0)


def test_a_level_is_forgotten_with_the_last_run_but_not_the_pause() -> None:
    pool, _ = exchange(Pool(), 0.0, said(client("a"), EndpointFeedback(throttled=True, retry_after_s=50.0)))
    _, share = exchange(pool, LEASE_S + 1, said(client("b", ceiling=40)))
    assert (share.level.limit, share.level.cool_until) == (40.0, 50.0)


def test_a_larger_ceiling_counts_at_once_unless_429s_said_otherwise() -> None:
    pool, _ = exchange(Pool(), 0.0, said(client("a", ceiling=4)))
    assert exchange(pool, 1.0, said(client("b", ceiling=16)))[1].level.limit == 16.0
    pool, _ = exchange(pool, 1.0, said(client("a", ceiling=4), EndpointFeedback(throttled=True)))
    assert exchange(pool, 2.0, said(client("b", ceiling=16)))[1].level.limit == 2.0


def test_the_smallest_rate_holds_for_all_runs_while_one_that_names_it_lives() -> None:
    pool, share = exchange(Pool(), 0.0, said(client("a", rpm=60, tpm=9000)))
    assert share.rates == Rates(60, 9000)
    pool, share = exchange(pool, 1.0, said(client("b", rpm=120), ask=RateRequest(waiting=(1.0,))))
    assert share.rates == Rates(60, 9000)
    assert len(share.slots) == 1
    assert exchange(pool, LEASE_S + 1, said(client("b", rpm=120)))[1].rates == Rates(120, None)


def test_no_moment_is_given_within_a_pause() -> None:
    pool, _ = exchange(Pool(), 0.0, said(client("a", rpm=600), EndpointFeedback(throttled=True, retry_after_s=30.0)))
    _, share = exchange(pool, 1.0, said(client("b"), ask=RateRequest(waiting=(0.0, 0.0))))
    assert share.slots[0].due >= 30.0


@pytest.mark.parametrize("now", [-1e9, 0.0, 1e9])
def test_clocks_that_jump_keep_nobody_waiting(now: float) -> None:
    pool, _ = exchange(
        Pool(), 1e5, said(client("a", 50, held=16, rpm=60), EndpointFeedback(throttled=True, retry_after_s=60.0))
    )
    _, share = exchange(pool, now, said(client("b", 50)))
    assert share.grant == 16
    assert share.level.cool_until <= max(now, 0.0) + 60


def test_a_rate_that_no_plan_can_name_is_refused_when_it_is_read() -> None:
    pool, _ = exchange(Pool(), 0.0, said(client("a", rpm=60)))
    with pytest.raises(ValueError, match="less than or equal"):
        Pool.model_validate_json(pool.model_dump_json().replace('"rpm":60', f'"rpm":1{"0" * 400}'))


@given(
    st.text(max_size=40).filter(lambda text: "{" not in text) | st.just('{"level": {"limit": NaN, "cool_until": 1}}')
)
def test_a_pool_that_is_not_one_is_refused_when_it_is_read(text: str) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Pool.model_validate_json(text)


class Sharing(RuleBasedStateMachine):
    """Clients of several runs that come, want, use, tell at any time and leave; they never have more than there is."""

    @initialize(ceiling=st.integers(1, 12))
    def begin(self, ceiling: int) -> None:
        self.ceiling, self.now, self.pool = ceiling, 0.0, Pool()
        self.capacity: dict[tuple[str, int], int] = {}
        self.used: dict[tuple[str, int], int] = {}

    @rule(run=st.sampled_from("abc"), number=st.integers(1, 2), demand=st.integers(0, 20))
    def tell(self, run: str, number: int, demand: int) -> None:
        if not hasattr(self, "pool"):
            return
        self.now += 0.01
        key = run, number
        used = self.used.setdefault(key, 0)
        held = max(used, self.capacity.get(key, 0))
        one = client(run, used + demand, held, self.ceiling, number)
        self.pool, share = exchange(self.pool, self.now, said(one))
        self.capacity[key] = share.grant

    @rule(run=st.sampled_from("abc"), number=st.integers(1, 2), change=st.integers(-5, 5))
    def play(self, run: str, number: int, change: int) -> None:
        key = run, number
        if key in getattr(self, "used", {}):
            room = max(self.used[key], self.capacity[key])
            self.used[key] = min(max(0, self.used[key] + change), room)

    @rule(run=st.sampled_from("abc"), number=st.integers(1, 2))
    def leave(self, run: str, number: int) -> None:
        if (run, number) in getattr(self, "used", {}):
            del self.used[run, number], self.capacity[run, number]
            self.pool = self.pool.without(f"{run}/{number}/e")

    @rule()
    def settle(self) -> None:
        """Once nothing is in use and demands stand still, a few rounds give everybody all that there is."""
        if not getattr(self, "used", {}):
            return
        self.used = dict.fromkeys(self.used, 0)
        for run, number in 4 * list(self.used):
            self.tell(run, number, 20)
        assert sum(self.capacity.values()) == self.ceiling

    @invariant()
    def nobody_exceeds_the_limit(self) -> None:
        if hasattr(self, "used"):
            assert sum(max(self.used[key], self.capacity[key]) for key in self.used) <= self.ceiling


TestSharing = Sharing.TestCase


def test_a_pool_is_idle_once_nothing_would_be_lost_with_it() -> None:
    pool, _ = exchange(Pool(), 0.0, said(client("a", rpm=60), ask=RateRequest(waiting=(0.0,) * 3)))
    assert not pool.idle(1.0)
    left = pool.without("a/0/e")
    assert not left.idle(0.0)
    assert left.idle(math.ceil(left.pace.requests_at))
