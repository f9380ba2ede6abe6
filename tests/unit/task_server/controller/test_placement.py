"""Where sessions go, what is lost, and that the controller's view follows from the latest heartbeats alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from task_server.controller.placement import Placement
from task_server.wire.errors import (
    DigestDiffers,
    NoCapacity,
    NotReady,
    TurnConflict,
    UnknownSession,
    UnknownTask,
    WorkerLost,
)
from task_server.wire.messages import TaskCapacity, TaskList
from task_server.wire.worker_messages import Heartbeat

A, B, C = ("a" * 32, "b" * 32, "c" * 32)


def beat(
    worker: str = "w1",
    *,
    free: int = 4,
    total: int = 4,
    sessions: tuple[str, ...] = (),
    sequence: int = 1,
    boot: str = "boot1",
    draining: bool = False,
    waiting: str | None = None,
    digest: str | None = "d",
    url: str = "",
) -> Heartbeat:
    standing = TaskCapacity(name="os", environment="os", total=total, free=free, waiting=waiting, digest=digest)
    return Heartbeat(
        worker=worker,
        boot=boot,
        url=url or f"http://{worker}",
        sequence=sequence,
        draining=draining,
        tasks=(standing,),
        sessions=sessions,
    )


def placement(*beats: Heartbeat, now: float = 0.0) -> Placement:
    placement = Placement(lease_s=10.0)
    for heard in beats:
        placement.heartbeat(heard, now)
    return placement


def taken(view: Placement, heard: Heartbeat, now: float) -> bool:
    try:
        view.heartbeat(heard, now)
    except TurnConflict:
        return False
    return True


def test_a_session_goes_to_the_least_loaded_share() -> None:
    view = placement(beat("w1", free=2, total=4), beat("w2", free=8, total=20), beat("w3", free=3, total=4))
    assert view.place(A, "os", now=1.0).worker == "w3"


def test_placements_since_the_last_heartbeat_count_and_later_ones_do_not() -> None:
    view = placement(beat(free=2, total=2))
    view.place(A, "os", now=1.0)
    view.place(B, "os", now=1.0)
    with pytest.raises(NoCapacity):
        view.place(C, "os", now=1.0)
    view.heartbeat(beat(free=2, total=2, sequence=2), now=2.0)  # both are over already
    assert view.place(C, "os", now=2.0).worker == "w1"


def test_a_repeated_start_goes_to_the_same_worker_before_any_heartbeat_lists_it() -> None:
    view = placement(beat("w1"), beat("w2"))
    first = view.place(A, "os", now=1.0)
    view.place(B, "os", now=1.0)
    assert view.place(A, "os", now=1.1) == first
    assert view.holder(A) == first
    view.heartbeat(beat(first.worker, sequence=2), now=1.2)  # sent before the start arrived
    assert view.holder(A) == first


def test_a_repeated_start_goes_to_the_worker_that_lists_it_even_while_that_drains() -> None:
    view = placement(beat("w1", free=0, sessions=(A,), draining=True), beat("w2"))
    assert view.place(A, "os", now=1.0).worker == "w1"
    assert view.place(B, "os", now=1.0).worker == "w2"


def test_a_refused_session_goes_elsewhere_and_takes_no_room() -> None:
    view = placement(beat("w1"), beat("w2"))
    first = view.place(A, "os", now=1.0)
    view.refused(A, first.worker)
    assert free_now(view) == 8
    second = view.place(A, "os", now=1.0, avoiding={first.worker})
    assert second.worker != first.worker
    with pytest.raises(NoCapacity):
        view.place(B, "os", now=1.0, avoiding={"w1", "w2"})


def test_a_worker_that_is_started_again_is_lost_once_though_it_was_never_silent() -> None:
    view = placement(beat(boot="one"), beat(boot="two"), beat("w2", url="http://w1"))
    assert [(last.worker, last.boot) for last, _ in view.tick(now=1.0)] == [("w1", "one"), ("w1", "two")]
    assert view.tick(now=1.0) == ()


def test_a_silent_worker_is_lost_after_its_lease_with_its_sessions() -> None:
    view = placement(beat("w1", sessions=(A,)))
    view.place(B, "os", now=1.0)
    assert view.tick(now=9.9) == ()
    assert [(last.worker, cause) for last, cause in view.tick(now=10.0)] == [("w1", "no heartbeat for 10 s")]
    for session in (A, B):
        with pytest.raises(WorkerLost):
            view.holder(session)
    with pytest.raises(UnknownSession):
        view.holder(C)
    with pytest.raises(NotReady, match="no live worker"):
        view.place(C, "os", now=11.0)
    view.tick(now=700.0)
    with pytest.raises(UnknownSession):
        view.holder(A)


def test_a_lost_worker_that_speaks_again_has_its_sessions_again() -> None:
    view = placement(beat("w1", sessions=(A,)))
    view.tick(now=20.0)
    view.heartbeat(beat("w1", sessions=(A,), sequence=9), now=21.0)
    assert view.holder(A).worker == "w1"


def test_a_session_whose_worker_was_lost_begins_nowhere_else() -> None:
    view = placement(beat("w1", sessions=(A,)))
    view.tick(now=20.0)
    view.heartbeat(beat("w2"), now=20.0)
    with pytest.raises(WorkerLost):
        view.place(A, "os", now=20.0)
    assert view.place(B, "os", now=20.0).worker == "w2"
    view.heartbeat(beat("w1", sessions=(A,), sequence=9), now=21.0)
    assert view.place(A, "os", now=22.0).worker == "w1"


def test_a_worker_that_comes_back_gives_up_what_a_new_controller_placed_elsewhere() -> None:
    view = placement(beat("w2"))
    assert view.place(A, "os", now=20.0).worker == "w2"
    for sequence in (9, 10):
        assert view.heartbeat(beat("w1", sessions=(A, B), sequence=sequence), now=21.0) == (A,)  # a zombie lists it too
    assert view.holder(A).worker == "w2"
    assert view.holder(B).worker == "w1"
    assert view.heartbeat(beat("w2", sessions=(A,), sequence=2), now=21.0) == ()
    assert view.heartbeat(beat("w1", sessions=(A, B), sequence=11), now=22.0) == (A,)
    assert view.holder(A).worker == "w2"


def test_late_heartbeats_and_those_of_an_old_boot_change_nothing() -> None:
    view = placement(beat(sequence=5, sessions=(A,)))
    view.heartbeat(beat(sequence=4), now=1.0)
    assert view.holder(A).worker == "w1"
    view.heartbeat(beat(boot="boot2", sequence=1), now=2.0)
    with pytest.raises(WorkerLost):
        view.holder(A)
    assert not taken(view, beat(boot="boot1", sequence=6, sessions=(A,)), now=3.0)
    with pytest.raises(WorkerLost):
        view.holder(A)


def test_a_late_heartbeat_of_a_process_that_was_lost_changes_nothing_for_its_successor() -> None:
    view = placement(beat(boot="dead", sequence=1))
    view.tick(10.0)
    assert taken(view, beat(boot="living", sequence=1), 11.0)
    assert not taken(view, beat(boot="dead", sequence=2), 12.0)
    assert taken(view, beat(boot="living", sequence=2), 13.0)


def test_a_late_heartbeat_of_a_process_never_heard_keeps_its_successor_out_for_a_lease_at_most() -> None:
    view = placement(beat(boot="living", sequence=1), now=11.0)
    assert taken(view, beat(boot="dead", sequence=2), 12.0)
    assert not taken(view, beat(boot="living", sequence=2), 13.0)
    view.tick(22.0)
    assert taken(view, beat(boot="living", sequence=3), 22.5)
    assert view.place(A, "os", 23.0).boot == "living"


def test_all_earlier_boots_of_a_living_worker_are_refused() -> None:
    view = placement(beat(boot="first"), beat(boot="second"), beat(boot="third"))
    assert [taken(view, beat(boot=boot, sequence=9), 1.0) for boot in ("first", "second", "third")] == [
        False,
        False,
        True,
    ]


def test_a_new_worker_at_an_old_address_replaces_the_old_one_at_once() -> None:
    view = placement(beat("w1", url="http://h:1", sessions=(A,)))
    view.heartbeat(beat("w2", url="http://h:1", boot="other"), now=1.0)
    assert [worker.worker for worker in view.workers()] == ["w2"]
    with pytest.raises(WorkerLost):
        view.holder(A)


def test_a_worker_that_has_moved_is_not_replaced_by_the_next_one_at_its_old_address() -> None:
    view = placement(beat("w1", url="http://h:1", sessions=(A,)))
    view.heartbeat(beat("w1", url="http://h:2", sessions=(A,), sequence=2), now=1.0)
    view.heartbeat(beat("w2", url="http://h:1", boot="other"), now=1.0)
    assert [worker.worker for worker in view.workers()] == ["w1", "w2"]
    assert view.holder(A).url == "http://h:2"


def test_forgetting_spares_a_worker_that_came_back_meanwhile() -> None:
    view = placement(beat("w1"))
    ref = view.place(A, "os", now=0.0)
    view.heartbeat(beat("w1", boot="boot2"), now=1.0)
    view.forget(ref, now=2.0, cause="gone")
    assert len(view.workers()) == 1


def test_a_task_says_why_nothing_can_start() -> None:
    with pytest.raises(UnknownTask, match="known: os"):
        placement(beat()).place(A, "db", now=0.0)
    with pytest.raises(NotReady, match="no Docker"):
        placement(beat(free=0, waiting="no Docker")).place(A, "os", now=0.0)
    with pytest.raises(NotReady, match="no live worker"):
        placement(beat(draining=True)).place(A, "os", now=0.0)
    with pytest.raises(NoCapacity):
        placement(beat("w1", free=0), beat("w2", free=0, waiting="no Docker")).place(A, "os", now=0.0)


def test_workers_that_differ_in_data_serve_no_task_together() -> None:
    view = placement(beat("w1", digest="d1"), beat("w2", digest="d2"))
    with pytest.raises(NotReady, match=r"differ in data .*\(d1: w1; d2: w2\)"):
        view.place(A, "os", now=0.0)
    with pytest.raises(NotReady, match="differ in data"):
        view.any_holding("os")
    view.heartbeat(beat("w1", digest="d1", draining=True, sequence=2), now=1.0)
    assert view.place(A, "os", now=1.0).worker == "w2"
    assert view.any_holding("os").worker == "w2"


def test_of_workers_that_differ_those_serve_a_run_that_are_as_it_began() -> None:
    odd = beat("w0", digest="bogus", free=9, total=9)
    view = placement(odd, beat("w1", free=0), beat("w2", free=1), beat("w3", digest="d", waiting="no Docker", free=0))
    assert view.place(A, "os", now=0.0, digest="d").worker == "w2"
    with pytest.raises(NoCapacity):
        view.place(B, "os", now=0.0, digest="d")
    with pytest.raises(DigestDiffers, match=r"began with digest other, its workers have bogus: w0; d: w1, w2, w3"):
        view.place(B, "os", now=0.0, digest="other")
    assert view.any_holding("os", "d").worker in {"w1", "w2", "w3"}
    assert view.any_holding("os", "bogus").worker == "w0"
    listed = TaskList(version="1", tasks=view.capacities())
    expected = {"bogus": ("bogus", 9, 9, None), "d": ("d", 12, 0, None)}
    for digest, (_, total, free, waiting) in expected.items():
        found = listed.find("os", digest)
        assert found is not None
        assert (found.digest, found.total, found.free, found.waiting) == (digest, total, free, waiting)
    for unknown in (None, "other"):
        found = listed.find("os", unknown)
        assert found is not None
        assert (found.digest, found.free) == (None, 0)
        assert "bogus: w0; d: w1, w2, w3" in str(found.waiting)
    assert listed.find("db", "d") is None


def test_a_digest_that_no_worker_has_yet_is_waited_for() -> None:
    starting = placement(beat(digest=None, free=0, waiting="starting"))
    with pytest.raises(NotReady, match="starting"):
        starting.place(A, "os", now=0.0, digest="d")
    gone = placement(beat(draining=True))
    with pytest.raises(NotReady, match="no live worker"):
        gone.place(A, "os", now=0.0, digest="d")


class _Counted(str):
    """A session's id that counts how often it is looked up."""

    looked_up = 0

    def __hash__(self) -> int:
        type(self).looked_up += 1
        return super().__hash__()


def test_a_heartbeat_of_many_unknown_sessions_costs_no_more_for_many_workers() -> None:
    several = 50
    view = placement(*(beat(f"w{n}", sessions=(f"{n:032}",)) for n in range(several)))
    bogus = tuple(_Counted(f"{n:032x}") for n in range(1_000, 3_000))
    odd = beat("odd").model_copy(update={"sessions": (A, *bogus)})  # as it is: validation would make them plain
    assert view.place(A, "os", now=0.0).worker == "w0"
    assert view.heartbeat(odd, now=0.0) == (A,)
    assert _Counted.looked_up < 10 * len(bogus)


@given(st.lists(st.tuples(st.sampled_from(["w1", "w2", "w3"]), st.integers(0, 4), st.booleans()), max_size=30))
def test_the_standing_is_a_function_of_the_latest_heartbeats(heard: list[tuple[str, int, bool]]) -> None:
    view, latest = Placement(lease_s=10.0), {}
    for sequence, (worker, slots, places) in enumerate(heard, start=1):
        latest[worker] = beat(worker, free=slots, sequence=sequence)
        if places and free_now(view) > 0:
            view.place(f"{sequence:032x}", "os", now=float(sequence) / 100)
        view.heartbeat(latest[worker], now=float(sequence) / 100 + 0.005)
    for last in latest.values():
        view.heartbeat(last.model_copy(update={"sequence": 1000}), now=5.0)
    assert free_now(view) == sum(last.tasks[0].free for last in latest.values())


def free_now(view: Placement) -> int:
    return sum(standing.free for standing in view.capacities())


def test_a_worker_that_has_not_read_its_data_can_say_nothing_about_a_task() -> None:
    with pytest.raises(NotReady, match="not read yet"):
        placement(beat(digest=None)).any_holding("os")


def test_a_worker_that_claims_more_free_slots_than_it_has_breaks_nothing() -> None:
    assert placement(beat(free=3, total=0)).place(A, "os", now=0.0).worker == "w1"


def test_a_session_that_its_worker_refused_again_is_told_to_be_elsewhere_once_another_has_it() -> None:
    view = placement(beat("w1", sessions=(A,)), beat("w2"))
    assert view.place(A, "os", now=1.0, avoiding={"w1"}).worker == "w2"
    assert view.holder(A).worker == "w2"
    assert view.heartbeat(beat("w1", sessions=(A,), sequence=2), now=2.0) == (A,)
    assert view.heartbeat(beat("w1", sessions=(A,), sequence=3), now=2.1) == (A,), "until it has ended the session"
    assert view.holder(A).worker == "w2"


def test_a_heartbeat_that_repeats_the_last_one_keeps_the_worker_and_frees_what_was_placed_since() -> None:
    view = placement(beat("w1", free=1, sessions=(A,)))
    view.place(B, "os", now=1.0)
    assert free_now(view) == 0
    view.heartbeat(beat("w1", free=1, sessions=(A,), sequence=2), now=6.0)
    assert free_now(view) == 1
    view.heartbeat(beat("w1", free=1, sessions=(A,), sequence=3), now=12.0)
    assert view.tick(now=15.0) == ()
    assert view.holder(A).worker == "w1"
