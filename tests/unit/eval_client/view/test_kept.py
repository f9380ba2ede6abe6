"""Costly values are used again for a while, by one rule."""

import threading

from eval_client.view.kept import COSTS, LEAST_S, Kept


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_value_is_used_again_for_a_second_or_as_its_cost_allows() -> None:
    clock, made = Clock(), list[float]()
    kept = Kept(clock=clock)

    def make(cost: float) -> int:
        clock.now += cost
        made.append(cost)
        return len(made)

    assert [kept.get("k", lambda: make(0)), kept.get("k", lambda: make(0))] == [1, 1]
    clock.now += LEAST_S
    assert kept.get("k", lambda: make(2)) == 2
    clock.now += 2 * COSTS - 0.1
    assert kept.get("k", lambda: make(2)) == 2
    clock.now += 0.1
    assert kept.get("k", lambda: make(2)) == 3


def test_a_value_with_the_same_stamp_does_not_grow_old_and_one_with_another_does() -> None:
    clock = Clock()
    kept = Kept(clock=clock)
    assert kept.get("k", lambda: 1, stamp="old") == 1
    clock.now += 1_000
    assert kept.get("k", lambda: 2, stamp="old") == 1
    assert kept.get("k", lambda: 3, stamp="new") == 3
    assert kept.get("k", lambda: 4, stamp="newer") == 3, "within its time"


def test_the_oldest_goes_where_there_are_too_many() -> None:
    kept = Kept(most=2, clock=Clock())
    assert [kept.get(key, lambda: 1) for key in "abc"] == [1, 1, 1]
    assert kept.get("c", lambda: 2) == 1
    assert kept.get("a", lambda: 2) == 2


def test_several_requests_make_a_value_once() -> None:
    kept, made, begun = Kept(clock=Clock()), list[int](), threading.Barrier(4)

    def ask() -> None:
        begun.wait()
        kept.get("k", lambda: made.append(1))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [1]
