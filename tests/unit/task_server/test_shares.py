"""Who may take a free slot: the one that holds least, by user and then by run; offers pass on; nothing stays idle."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.config.tokens import Token
from task_server.controller.placement import Placement
from task_server.shares import OFFER_S, QUIET_S, Shares, holder_of
from task_server.wire.errors import NoCapacity
from task_server.wire.messages import Sender, TaskCapacity, TasksQuery
from task_server.wire.worker_messages import Heartbeat, Hold


def run(number: int, user: str = "") -> Sender:
    return Sender(f"{number:032x}", f"run-{number}", user)


def want(shares: Shares, sender: Sender, wants: int, now: float = 0.0) -> None:
    client = sender.run or f"{wants:032x}"
    shares.record(TasksQuery(client=client, wants=f"t:{wants}", wait_s=60.0), sender, now)


def capacity(free: int) -> tuple[TaskCapacity, ...]:
    return (TaskCapacity(name="t", environment="e", total=100, free=free),)


def test_the_largest_runs_have_metrics_of_what_they_hold_and_want() -> None:
    shares = Shares()
    for number in range(30):
        want(shares, run(number, "ann" if number == 29 else ""), 40)
        shares.hold("t", holder_of(run(number, "ann" if number == 29 else "")), number)
    twin = Sender("f" * 32, "run-29", "ann")
    want(shares, twin, 5)
    shares.hold("t", holder_of(twin), 25)
    _, sessions, demand = ({tuple(s.labels.values()): s.value for s in each.samples} for each in shares.metrics(0.0))
    assert sessions.keys() == demand.keys()
    assert {name for name, _, _ in sessions} == {f"run-{number}" for number in range(11, 30)}
    assert sessions["run-29", "ann", "t"] == 29 + 25
    assert demand["run-29", "ann", "t"] == 45
    assert sessions["run-28", "", "t"] == 28


def open_to(shares: Shares, sender: Sender, free: int, now: float = 0.0) -> int:
    shares.offer(capacity(free), now)
    return shares.seen_by(holder_of(sender), capacity(free))[0].free


def takes(shares: Shares, sender: Sender, free: int, now: float = 0.0) -> bool:
    try:
        shares.take("t", holder_of(sender), free, now)
    except NoCapacity:
        return False
    return True


def held(shares: Shares, *holding: tuple[Sender, int]) -> None:
    for sender, sessions in holding:
        shares.hold("t", holder_of(sender), sessions)


def shared_out(shares: Shares, senders: list[Sender], slots: int) -> list[int]:
    """Free slots come one at a time, and each is tried for by all; how many each got."""
    got = dict.fromkeys(senders, 0)
    for _ in range(slots):
        winner = next(sender for sender in senders if takes(shares, sender, 1))
        got[winner] += 1
    return list(got.values())


def test_a_free_slot_goes_to_the_run_that_holds_the_least() -> None:
    shares, flood, quick = Shares(), run(1), run(2)
    held(shares, (flood, 48))
    want(shares, flood, 105)
    want(shares, quick, 3)
    assert [open_to(shares, flood, 1), open_to(shares, quick, 1)] == [0, 1]
    assert shared_out(shares, [flood, quick], 6) == [3, 3]


def test_where_all_wants_fit_every_free_slot_is_open_to_all() -> None:
    shares = Shares()
    want(shares, run(1), 3)
    want(shares, run(2), 2)
    assert [open_to(shares, run(1), 5), open_to(shares, run(2), 5), open_to(shares, run(3), 5)] == [5, 5, 5]


def test_users_share_first_then_their_runs() -> None:
    shares, anns, bobs = Shares(), [run(1, "ann"), run(2, "ann"), run(3, "ann")], run(4, "bob")
    for sender in (*anns, bobs):
        want(shares, sender, 50)
    assert shared_out(shares, [*anns, bobs], 12) == [2, 2, 2, 6]


def test_weights_and_caps_are_users() -> None:
    shares = Shares({"ann": Token("", weight=3.0), "bob": Token("", cap=2)})
    for sender in (run(1, "ann"), run(2, "bob")):
        want(shares, sender, 50)
    assert shared_out(shares, [run(1, "ann"), run(2, "bob")], 12) == [10, 2]
    assert not takes(shares, run(3, "bob"), 10)


def test_an_offer_that_is_not_taken_passes_on_and_its_run_goes_last() -> None:
    shares, idle, busy = Shares(), run(1), run(2)
    held(shares, (busy, 5))
    want(shares, idle, 10)
    want(shares, busy, 10)
    assert open_to(shares, busy, 1) == 0
    assert open_to(shares, busy, 1, OFFER_S) == 1
    assert takes(shares, busy, 1, OFFER_S)
    # The second lapse: from then on it wants nothing.
    assert open_to(shares, idle, 1, OFFER_S) == 0, "the slot is offered to the other one first"
    assert not takes(shares, idle, 1, OFFER_S)


def test_after_two_lapses_a_run_wants_nothing_until_it_starts_or_a_minute_has_passed() -> None:
    shares, idle, other = Shares(), run(1), run(2)
    want(shares, idle, 10)
    want(shares, other, 10)
    held(shares, (other, 3))
    for lapse in range(2):
        assert open_to(shares, idle, 2, lapse * OFFER_S) >= 1
    now = 2 * OFFER_S
    assert open_to(shares, other, 2, now) == 2, "nothing is kept for it any more"
    assert open_to(shares, other, 1, now + QUIET_S) in (0, 1)
    assert takes(shares, idle, 2, now), "but it may take what nobody else was offered"


def test_clients_that_name_no_run_are_one_run() -> None:
    shares, named = Shares(), run(1)
    for client in ("a" * 32, "b" * 32, "c" * 32):
        shares.record(TasksQuery(client=client, wants="t:50", wait_s=60.0), Sender(), 0.0)
    want(shares, named, 50)
    assert shared_out(shares, [Sender(), named], 10) == [5, 5]


def test_a_silent_client_keeps_nothing_from_others() -> None:
    shares = Shares()
    shares.record(TasksQuery(client=run(1).run, wants="t:50"), run(1), 0.0)
    want(shares, run(2), 50, 31.0)
    shares.forget_silent(31.0)
    assert open_to(shares, run(2), 7, 31.0) == 7


def beat(free: int, *, holds: tuple[Hold, ...] = (), sequence: int = 1) -> Heartbeat:
    slots = TaskCapacity(name="t", environment="e", total=4, free=free, digest="d")
    return Heartbeat(worker="w", boot="b", url="http://w", sequence=sequence, tasks=(slots,), sessions=(), holds=holds)


def test_a_restarted_controller_knows_who_holds_sessions() -> None:
    placement, flood, quick = Placement(lease_s=10.0), run(1), run(2)
    of_flood = Hold(task="t", run=flood.run, user=flood.run, sessions=3)
    placement.heartbeat(beat(1, holds=(of_flood,)), 0.0)
    want(placement.shares, flood, 50)
    want(placement.shares, quick, 50)
    with pytest.raises(NoCapacity, match="others that hold less come first"):
        placement.place("a" * 32, "t", 0.0, sender=flood)
    placement.place("b" * 32, "t", 0.0, sender=quick)
    placement.heartbeat(beat(0, holds=(of_flood,), sequence=2), 1.0)
    assert {claim.run: claim.held for claim in placement.shares.claims(1.0)} == {flood.run: 3, quick.run: 0}
    placement.tick(11.0)
    assert {claim.held for claim in placement.shares.claims(11.0)} == {0}


@given(st.data())
def test_no_more_is_offered_than_is_free_and_nothing_wanted_stays_closed(data: st.DataObject) -> None:
    shares, senders = Shares(), [run(number, user) for number, user in enumerate(("ann", "ann", "bob", ""), 1)]
    now, free = 0.0, data.draw(st.integers(0, 8))
    for _ in range(data.draw(st.integers(1, 30))):
        sender = data.draw(st.sampled_from(senders))
        match data.draw(st.sampled_from(["want", "take", "pass", "free"])):
            case "want":
                want(shares, sender, data.draw(st.integers(0, 12)), now)
            case "take":
                free -= takes(shares, sender, free, now) if free else 0
            case "pass":
                now += data.draw(st.sampled_from([0.5, OFFER_S, QUIET_S / 2]))
            case "free":
                free += 1
        shares.offer(capacity(free), now)
        *opened, others = (shares.seen_by(holder_of(each), capacity(free))[0].free for each in (*senders, run(99)))
        offered = [mine - others for mine in opened]
        assert min(offered) >= 0
        assert sum(offered) <= free
        if free:
            assert any(opened)
