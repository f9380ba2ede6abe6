"""Who is lost: only a shard whose counter stood while the onlooker itself kept looking."""

from hypothesis import given
from hypothesis import strategies as st

from eval_client.core.failure_detector import BEAT_S, LEASE_S, LONGEST_LOOK_S, FailureDetector


def test_a_shard_whose_counter_stands_for_a_lease_is_lost() -> None:
    failure_detector = FailureDetector()
    lost = [failure_detector.look(float(second), {1: second, 2: 7}) for second in range(12)]
    assert lost == [[]] * int(LEASE_S) + [[2]] * (12 - int(LEASE_S))


def test_a_beat_at_the_last_moment_counts() -> None:
    failure_detector = FailureDetector()
    for second in range(int(LEASE_S)):
        assert failure_detector.look(float(second), {2: 7}) == []
    assert failure_detector.look(LEASE_S, {2: 8}) == []


def test_an_onlooker_that_stood_still_itself_takes_nobody_for_lost() -> None:
    failure_detector = FailureDetector()
    failure_detector.look(0.0, {1: 5, 2: 7})
    assert failure_detector.look(1000.0, {1: 5, 2: 7}) == []
    assert failure_detector.look(1001.0, {1: 6, 2: 8}) == []


def test_nobody_is_lost_while_the_onlookers_own_beats_do_not_get_through() -> None:
    failure_detector = FailureDetector(own=1)
    assert all(failure_detector.look(float(second), {1: 5, 2: 7}) == [] for second in range(100))
    assert failure_detector.look(100.0, {1: 6, 2: 7}) == []
    assert failure_detector.look(101.0, {1: 7, 2: 8}) == []


@given(st.lists(st.tuples(st.floats(0.01, 300.0), st.integers(0, 1)), max_size=60))
def test_silence_is_never_counted_longer_than_it_was_watched(looks: list[tuple[float, int]]) -> None:
    failure_detector, now, count, watched_s = FailureDetector(), 0.0, 0, 0.0
    failure_detector.look(now, {1: count})
    for passed_s, beat in looks:
        now, count = now + passed_s, count + beat
        watched_s = 0.0 if beat else watched_s + min(passed_s, LONGEST_LOOK_S)
        assert bool(failure_detector.look(now, {1: count})) == (watched_s >= LEASE_S)


def test_a_lease_is_several_beats() -> None:
    assert LEASE_S >= 5 * BEAT_S
