"""Why a run makes no progress."""

import pytest

from eval_client.core.stall import MAX_REASONS, StallDetector, StallReasons
from task_server.client.client import Call


def test_a_standstill_lasts_since_the_last_turn_or_final_row() -> None:
    stall = StallDetector((0, 0), 100.0)
    assert stall.lasts_s((0, 0), 104.0) == 4.0
    assert stall.lasts_s((1, 0), 105.0) == 0.0
    assert stall.lasts_s((1, 0), 112.0) == 7.0
    assert stall.lasts_s((1, 1), 112.5) == 0.0


def test_every_cause_is_named_with_whom_it_concerns_and_for_how_long() -> None:
    waits = StallReasons(
        now=100.0,
        tasks={"db": "no live worker holds it"},
        cooling={"mine": 12.4, "other": 0.0},
        models=[Call("gpt", 30.0), Call("gpt", 35.0), Call("llama", 33.0)],
        failures={"llama": "status 500"},
        server=[Call("a session of os", 92.0, "every worker of task 'os' is full")],
        store_since=91.0,
    )
    assert waits.reasons() == (
        "task db waits: no live worker holds it",
        "the store has not confirmed a write for 9 s",
        "endpoint mine pauses for another 12 s after a 429",
        "model of agent gpt: 2 requests without an answer for 70 s",
        "model of agent llama: a request without an answer for 67 s (status 500)",
        "task server, a session of os: a request without an answer for 8 s (every worker of task 'os' is full)",
    )


ASKED = [Call("gpt", 41.0), Call("llama", 45.0)]


@pytest.mark.parametrize(
    ("waits", "reasons"),
    [
        (StallReasons(now=100.0, models=ASKED, slots={"endpoint": 3}), ()),
        (StallReasons(now=101.0, models=ASKED), ("model of agent gpt: a request without an answer for 60 s",)),
        (StallReasons(now=200.0, models=ASKED, down=True), ()),
        (StallReasons(now=100.0, store_since=99.9), ("trials pause before they are tried again",)),
        (
            StallReasons(now=0.0, slots={"endpoint": 3, "agent": 1}),
            ("1 trial without a slot of the agent", "3 trials without a slot of the endpoint"),
        ),
        (StallReasons(now=0.0, quiet=True), ("all trials are over; the last results are being stored",)),
    ],
    ids=["a minute", "longer", "endpoint down", "a write just under way", "slots", "last results"],
)
def test_what_is_named_where_little_is_asked_for(waits: StallReasons, reasons: tuple[str, ...]) -> None:
    assert waits.reasons() == reasons


def test_many_causes_are_cut_short() -> None:
    reasons = StallReasons(now=0.0, tasks={f"t{n}": "starting" for n in range(MAX_REASONS + 3)}).reasons()
    assert len(reasons) == MAX_REASONS + 1
    assert reasons[-1] == "and 3 more"
