"""Black holes, and turns that are delayed, doubled, reordered, cut short or lost on their way."""

import time

import pytest

from tests.faults.parts.farm import SHORT_LEASE_S, Farm
from tests.faults.parts.proxy import Cut, Fault, Kind
from tests.pace import slowly, until

EVERYTHING: tuple[Kind, ...] = (
    "latency",
    "hold",
    "duplicate",
    "late_copy",
    "drop",
    "drop_reply",
    "half_close",
    "truncate",
    "throttle",
)


@pytest.mark.parametrize("cut", ["both", "requests", "replies"])
def test_a_worker_that_a_black_hole_hides_from_its_controller_plays_on(parts: Farm, cut: Cut) -> None:
    parts.lease_s = SHORT_LEASE_S
    parts.start(workers=2, deadline_s=slowly(60))
    parts.slow(slowly(2.0))
    with parts.at_most(40):  # of 120 calls
        client = parts.begin()
        parts.until_calls(12)
        beats, worker = parts.link("beats-w1"), parts.workers["w1"]
        beats.cut = cut
        if cut == "replies":  # the controller still hears it
            time.sleep(SHORT_LEASE_S)
        else:
            until(lambda: parts.sees("proctor_workers") == 1)
        assert worker.metric("proctor_sessions_live") > 0
        beats.cut = ""
    parts.link("agents").faults.clear()
    parts.completed(client)
    until(lambda: parts.sees("proctor_workers") == 2)
    parts.verify()
    assert set(parts.attempts()) == {1}


def test_turns_whose_answers_vanish_are_repeated_and_applied_once(parts: Farm) -> None:
    parts.start()
    parts.slow(0.5)
    with parts.under_way(12) as client:
        parts.link("w1").cut = "replies"
    parts.until_stalled(2.0)
    parts.link("w1").cut = ""
    parts.completed(client)
    asked = [(call.target, call.request) for call in parts.ways.calls if call.target.endswith("/turns")]
    assert len(asked) > len(set(asked))
    parts.verify()
    assert set(parts.attempts()) == {1}


def test_doubled_delayed_and_reordered_turns_are_applied_once_and_in_order(parts: Farm) -> None:
    parts.start(workers=2)
    for name in ("w1", "w2", "client"):
        parts.link(name).faults += [
            Fault("duplicate", "POST /sessions", chance=0.3),
            Fault("late_copy", "POST /sessions", chance=0.4),
            Fault("hold", "POST /sessions", chance=0.3, seconds=0.3),
            Fault("latency", "POST /sessions", seconds=0.1),
        ]
    parts.completed(parts.begin())
    copies = [call for call in parts.ways.calls if call.link.endswith("/copy") and call.status]
    assert len(copies) > 40
    assert {call.status for call in copies} <= {200, 404, 409, 429, 503}
    assert any(call.status == 409 for call in copies), "no copy came late"
    parts.verify()
    assert set(parts.attempts()) == {1}


@pytest.mark.parametrize("liar", ["w1", "client"])
def test_whoever_names_another_address_for_a_session_sends_nobody_there(parts: Farm, liar: str) -> None:
    """The worker to the controller, or what answers in the controller's place to the client."""
    parts.start()
    worker = parts.link("w1")
    inside = parts.ways.link("inside", worker.upstream)
    lie = f"{worker.url} {inside.url}".encode()
    parts.link(liar).faults.append(Fault("rewrite", "POST /sessions$", body=lie))
    inside.faults.append(Fault("rewrite", "GET /healthz$", body=lie))
    parts.completed(parts.begin())
    assert [call.target for call in parts.ways.calls if call.link == "inside"] == []
    started = [call.reply for call in parts.ways.calls if (call.link, call.target) == ("client", "POST /sessions")]
    assert any(inside.url.encode() in reply for reply in started) == (liar == "client")
    parts.verify()


@pytest.mark.parametrize(("seed", "route"), [(1, "auto"), (2, "relayed")])
def test_a_storm_on_every_way_at_once_changes_no_score(parts: Farm, seed: int, route: str) -> None:
    parts.lease_s = SHORT_LEASE_S
    parts.start(workers=2, route=route)
    for link in parts.ways.links.values():
        link.chance.seed(seed)
        link.faults += [Fault(kind, "POST|GET /tasks", chance=0.03, seconds=0.3) for kind in EVERYTHING]
    parts.completed(parts.begin())
    for link in parts.ways.links.values():
        link.faults.clear()
    assert {call.outcome for call in parts.ways.calls} == {"ok", "failed", "unknown"}
    parts.verify(attempts=6)
