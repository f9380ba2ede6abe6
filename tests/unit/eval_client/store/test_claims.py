"""How many trials a client holds unbegun: enough to stay busy, few towards the end."""

from hypothesis import given
from hypothesis import strategies as st

from eval_client.store.claims import batch


@given(st.integers(0, 200), st.integers(1, 10_000), st.integers(1, 16))
def test_a_batch_leaves_work_for_the_others_and_takes_some_wherever_there_is_room(
    room: int, free: int, shards: int
) -> None:
    taken = batch(room, free, shards)
    assert taken <= free
    assert taken <= 2 * room
    assert (taken > 0) == (room > 0)
    if shards > 1 and free >= shards:
        assert shards * taken <= free


def test_the_last_trials_are_claimed_one_at_a_time() -> None:
    assert [batch(50, free, 4) for free in (1000, 100, 16, 8, 3, 1)] == [100, 13, 2, 1, 1, 1]
