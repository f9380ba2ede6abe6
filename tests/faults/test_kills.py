"""Processes killed, stopped, restarted and drained in mid-run."""

import contextlib
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval_client.store.tables import attempt_table, live_table, trial_table
from task_server.wire.messages import SETTLE_S, VERSION
from tests.e2e.proctor import Server
from tests.e2e.tools_endpoint import killed_again_and_again
from tests.faults.parts.farm import SHORT_LEASE_S, Farm, farm, go_on, stop
from tests.faults.parts.invariants import rows_of
from tests.faults.parts.proxy import Call, Fault
from tests.pace import slowly, until

IN_FLIGHT = 8


def until_calls_or(latest: float, parts: Farm, calls: int) -> None:
    """Come back at so many calls, or at a moment of the monotonic clock."""
    until(lambda: parts.calls() >= calls or time.monotonic() > latest)


def until_moment(moment: float) -> None:
    """By the monotonic clock."""
    until(lambda: time.monotonic() > moment)


def test_a_client_killed_20_times_at_random_moments(tmp_path: Path, agents: Server) -> None:
    chance, kills = random.Random(3), 0
    with farm(tmp_path, agents, turns=24) as parts:
        parts.start()
        parts.slow(0.6)
        with parts.under_way(1) as client:
            pass  # from here on there is a run to resume
        while kills < 20:
            with parts.at_most(20):  # of 480 calls
                calls, latest = parts.calls() + chance.randrange(0, 20), time.monotonic() + chance.random() * 3
                until_calls_or(latest, parts, calls)
                assert client.poll() is None, "the run ended before the 20th kill"
                client.kill()
                client.communicate()
            kills += 1
            client = parts.begin("resume")
        parts.link("agents").faults.clear()
        parts.completed(client)
        parts.verify(clients=21, paid_twice=kills * IN_FLIGHT)


@pytest.mark.parametrize("route", ["auto", "relayed"])
def test_a_controller_killed_and_restarted_every_two_seconds_costs_nothing(
    tmp_path: Path, agents: Server, route: str
) -> None:
    with farm(tmp_path, agents, turns=12) as parts:
        parts.settle_s = SETTLE_S
        parts.start(workers=2, route=route)
        parts.slow(1.0)
        with parts.at_most(200):  # of 240 calls
            client = parts.begin()
            parts.until_calls(4)
            for _ in range(5):
                again = time.monotonic() + 2
                assert parts.controller is not None
                parts.controller.kill()
                parts.start_controller()
                until_moment(again)
            assert client.poll() is None
        parts.link("agents").faults.clear()
        parts.completed(client)
        parts.verify()
        assert _workers_of_lost(parts) <= {""}, "only starts that were under way are made anew"


@pytest.mark.parametrize("route", ["auto", "relayed"])
def test_a_controller_that_is_away_for_longer_than_its_lease_ends_no_session(parts: Farm, route: str) -> None:
    parts.lease_s, parts.settle_s = SHORT_LEASE_S, SETTLE_S
    parts.start(workers=2, route=route)
    parts.slow(slowly(1.0))
    client = parts.begin()
    parts.until_calls(12)
    assert parts.controller is not None
    parts.controller.kill()
    time.sleep(1.2 * parts.lease_s)  # less than a session's own lease, which a relayed client can't renew meanwhile
    parts.start_controller()
    parts.link("agents").faults.clear()
    parts.completed(client)
    parts.verify()
    assert _workers_of_lost(parts) <= {""}, "only starts that were under way are made anew"


def test_one_of_two_workers_killed_under_load_loses_no_turn_that_was_paid(parts: Farm) -> None:
    parts.lease_s = SHORT_LEASE_S
    parts.start(workers=2)
    parts.slow(0.3)
    with parts.under_way(20) as client:
        parts.workers["w1"].kill()
    parts.completed(client)
    assert parts.sees("proctor_workers") == 1
    assert max(parts.attempts()) > 1
    parts.verify()


def test_the_only_worker_killed_is_waited_for(parts: Farm) -> None:
    parts.lease_s = SHORT_LEASE_S
    parts.start()
    parts.slow(0.3)
    with parts.under_way(20) as client:
        parts.workers["w1"].kill()
    until(lambda: parts.sees("proctor_workers") == 0)
    parts.until_stalled(7.0)  # its trials end their attempts one by one, and only then might the task be given up
    parts.start_worker("w1")
    parts.completed(client)
    parts.verify()


def test_a_worker_that_was_stopped_beyond_its_lease_goes_on_where_it_was(parts: Farm) -> None:
    parts.lease_s = SHORT_LEASE_S
    parts.start(workers=2)
    parts.slow(0.3)
    with parts.under_way(20) as client:
        stop(parts.workers["w1"])
    until(lambda: parts.sees("proctor_workers") == 1)
    late = [call for call in parts.ways.calls if call.link == "w1" and call.target.endswith("/turns") and _open(call)]
    assert late
    go_on(parts.workers["w1"])
    parts.completed(client)
    assert {call.status for call in late} == {200}
    parts.verify()
    assert _workers_of_lost(parts) <= {""}, "only starts that were under way are made anew"


def _workers_of_lost(parts: Farm) -> set[str]:
    """Where sessions were that are lost; empty for one that never began."""
    rows = rows_of(parts.store_url(), "r", attempt_table)
    return {row["worker"] for row in rows if row["outcome"] == "lost"}


def _open(call: Call) -> bool:
    return call.outcome == "unknown" and call.status == 0


def test_a_sample_that_kills_its_worker_every_time_is_given_up_and_the_others_are_unharmed(
    tmp_path: Path, agents: Server
) -> None:
    with farm(tmp_path, agents, deadly="s3") as parts:
        parts.lease_s = SHORT_LEASE_S
        parts.start(workers=2)
        parts.slow(0.3)
        over = threading.Event()
        supervisor = threading.Thread(target=_supervise, args=(parts, over))
        supervisor.start()
        try:
            parts.completed(parts.begin(), code=1)
        finally:
            over.set()
            supervisor.join()
        rows = rows_of(parts.store_url(), "r", trial_table)
        assert {row["sample"] for row in rows if row["score"] is None} == {"s3"}
        attempts = {row["attempts"] for row in rows if row["sample"] == "s3"}
        assert attempts <= {3, 4}  # the first that is lost beside another's death may not be one of a trial's own three
        parts.verify(unscored=2, attempts=20)  # those beside it may lose several


def _supervise(parts: Farm, over: threading.Event) -> None:
    """Start a worker again whenever it died."""
    while not over.wait(0.02):
        for name, worker in list(parts.workers.items()):
            if worker.process.poll() is not None:
                parts.start_worker(name)


def test_workers_drained_and_restarted_one_by_one_lose_and_repeat_no_turn(tmp_path: Path, agents: Server) -> None:
    with farm(tmp_path, agents, turns=14) as parts:
        parts.start(workers=2)
        client = parts.begin()
        for name, other in (("w1", "w2"), ("w2", "w1")):
            parts.until_calls(8)
            with held(parts, other):  # so that there is a mid-run still when the worker is back
                drain(parts.workers[name])
                parts.start_worker(name)
        assert client.poll() is None
        parts.completed(client)
        parts.verify()
        assert set(parts.attempts()) == {1}
        assert parts.turns() == 2 * parts.world.count * parts.world.turns


@contextlib.contextmanager
def held(parts: Farm, worker: str) -> Iterator[None]:
    """No turn reaches this worker meanwhile."""
    gate = Fault("gate", "POST .*/turns")
    parts.link(worker).faults.append(gate)
    yield
    parts.link(worker).faults.remove(gate)


def drain(worker: Server) -> None:
    """SIGTERM to a worker, which plays its sessions to their ends first."""
    worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(slowly(60)) == 0


def test_workers_replaced_by_ones_with_other_parameters_play_nothing_of_a_run_under_way(
    tmp_path: Path, agents: Server
) -> None:
    with farm(tmp_path, agents, turns=14) as parts:
        parts.start(workers=2, patience_s=slowly(200))
        client = parts.begin()
        parts.until_calls(8)
        parts.configure(turns=3)
        with held(parts, "w2"):
            drain(parts.workers["w1"])
            parts.start_worker("w1")
        drain(parts.workers["w2"])
        parts.start_worker("w2")
        until(lambda: "changed since the run began" in str(rows_of(parts.store_url(), "r", live_table)), slowly(60))
        assert client.poll() is None
        parts.configure(turns=14)
        drain(parts.workers["w2"])
        parts.start_worker("w2")  # as it was; w1 stays the odd one
        parts.completed(client)
        parts.verify()
        kept = {(row["digest"], row["version"]) for row in rows_of(parts.store_url(), "r", attempt_table)}
        assert kept == {(parts.world.digest(), VERSION)}


def test_of_two_clients_at_once_one_plays_and_the_other_is_refused(parts: Farm) -> None:
    parts.start()
    parts.slow(0.5)
    with parts.under_way(8) as first:
        first.kill()
        first.communicate()
        clients = [parts.begin("resume") for _ in range(3)]
        until(lambda: sum(client.poll() is not None for client in clients) == 2)
    parts.link("agents").faults.clear()
    ended = [client.communicate(timeout=slowly(120))[1] for client in clients]
    assert sorted(client.returncode for client in clients) == [0, 2, 2]
    assert sum("played by another client" in errors for errors in ended) == 2
    parts.verify(clients=2, paid_twice=IN_FLIGHT)


def test_a_client_of_a_run_with_tools_killed_50_times_at_random_places(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, kills=50, samples=14, turns=12)
