"""Several clients on one run in PostgreSQL: killed, stopped beyond their lease, their database restarted in mid-run."""

import contextlib
import math
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from eval_client.core.limits.pool import Pool
from eval_client.store.pools.rows import SALT
from eval_client.store.tables import endpoint_table, run_table, shard_table, trial_table
from tests.database_servers import DatabaseServer, postgresql
from tests.e2e.proctor import TOKEN, Server
from tests.e2e.scripted import reply
from tests.faults.parts.farm import Farm, farm
from tests.faults.parts.invariants import rows_of
from tests.faults.parts.proxy import Fault
from tests.pace import slowly, until

pytestmark = pytest.mark.postgresql

SLOW_DOWN = reply(429, b'{"error": {"message": "slow down"}}', f"Retry-After: {math.ceil(slowly(8))}")
IN_FLIGHT = 8
"""Over all clients together: two agents of concurrency 4."""


@pytest.fixture
def database(parts: Farm) -> Iterator[DatabaseServer]:
    with postgresql() as server:
        parts.store = server.url
        yield server


def shards(parts: Farm, *states: str) -> int:
    """How many clients of the run are in one of these states, `live`, `lost` and `left`, at one moment."""
    engine = sa.create_engine(parts.store_url())
    with engine.connect() as connection:
        counted = sa.select(sa.func.count()).where(shard_table.c.state.in_(states))
        count = int(connection.execute(counted).scalar_one())
    engine.dispose()
    return count


def until_joined(parts: Farm, count: int, newest: "subprocess.Popen[str]") -> None:
    """Come back once so many clients of the run live or were lost; the newest of them must not have ended."""
    until(lambda: newest.poll() is not None or shards(parts, "live", "lost") >= count)
    assert newest.poll() is None, newest.communicate()


def level(parts: Farm) -> float:
    """What the endpoint bears at once, by what all clients know."""
    engine = sa.create_engine(parts.store_url())
    with engine.connect() as connection:
        pools = sa.select(endpoint_table.c.state).where(endpoint_table.c.id != SALT)
        level = Pool.model_validate_json(connection.execute(pools).scalar_one()).level
    engine.dispose()
    assert level is not None
    return level.limit


def three_clients(parts: Farm, slow_s: float) -> "list[subprocess.Popen[str]]":
    """A run under way, and three clients at it; from now on a model call takes up to so long."""
    parts.start(deadline_s=slowly(60))
    return begun_by_three(parts, slow_s)


def begun_by_three(parts: Farm, slow_s: float) -> "list[subprocess.Popen[str]]":
    """Like `three_clients`, of servers that are there."""
    with parts.at_most(IN_FLIGHT):  # it is not through before all have come
        clients = [parts.begin()]
        until(lambda: parts.calls() > 0 or clients[0].poll() is not None)
        assert clients[0].poll() is None, clients[0].communicate()
        clients += [parts.begin("join") for _ in range(2)]
        until(lambda: shards(parts, "live") == 3)
        parts.slow(slow_s)
    return clients


@contextlib.contextmanager
def three_under_way(parts: Farm, calls: int, slow_s: float = 0.5) -> "Iterator[list[subprocess.Popen[str]]]":
    """Three clients that have begun so many model calls together; the run does not end inside."""
    parts.start(deadline_s=slowly(60))
    with parts.at_most(40):  # of 120 calls
        clients = begun_by_three(parts, slow_s)
        parts.until_calls(calls)
        yield clients


def test_three_clients_play_one_run_and_all_report_it(parts: Farm, database: DatabaseServer) -> None:
    clients = three_clients(parts, slow_s=0.3)
    reports = [parts.completed(client).partition("run:")[0] for client in clients]
    assert len(set(reports)) == 1
    parts.verify()
    assert set(parts.attempts()) == {1}


def test_one_of_three_clients_killed_loses_nothing(parts: Farm, database: DatabaseServer) -> None:
    with three_under_way(parts, calls=10) as clients:
        clients[0].kill()
        clients[0].communicate()
    parts.completed(clients[1])
    parts.completed(clients[2])
    assert shards(parts, "lost") == 1
    parts.verify(paid_twice=IN_FLIGHT)


def test_what_a_client_says_that_was_taken_for_lost_is_refused(parts: Farm, database: DatabaseServer) -> None:
    with three_under_way(parts, calls=6) as clients:
        clients[0].send_signal(signal.SIGSTOP)
    until(lambda: shards(parts, "lost") == 1)
    clients[0].send_signal(signal.SIGCONT)
    _, errors = clients[0].communicate(timeout=slowly(60))
    assert (clients[0].returncode, "declared this one lost" in errors) == (2, True), errors
    parts.completed(clients[1])
    parts.completed(clients[2])
    parts.verify(clients=2, paid_twice=IN_FLIGHT)


def test_postgresql_restarted_beneath_three_clients_is_waited_for(parts: Farm, database: DatabaseServer) -> None:
    with three_under_way(parts, calls=6) as clients:
        database.stop()
    parts.until_stalled(2.0)
    database.start()
    for client in clients:
        parts.completed(client)
    assert shards(parts, "lost") == 0
    parts.verify()
    assert set(parts.attempts()) == {1}


def test_a_429_to_one_client_slows_all_of_them(parts: Farm, database: DatabaseServer) -> None:
    refusal = Fault("answer", "POST", body=SLOW_DOWN, left=1)
    with three_under_way(parts, calls=6, slow_s=0.3) as clients:
        parts.link("agents").faults.insert(0, refusal)
    until(lambda: refusal.left == 0)
    until(lambda: 8 <= level(parts) < 9)
    parts.until_stalled(4.0)
    assert [client.poll() for client in clients] == [None, None, None]
    assert parts.turns() < 2 * parts.world.count * parts.world.turns
    for client in clients:
        parts.completed(client)
    parts.verify()


def joined_by_a_way_of_its_own(parts: Farm) -> "subprocess.Popen[str]":
    """A client that reaches the controller by the link `own`."""
    own = parts.ways.link("own", parts.link("client").upstream)
    client = parts.begin("join", f"--controller={own.url}", PROCTOR_LOCAL_TOKEN=TOKEN)
    until(lambda: shards(parts, "live") == 2)
    return client


def test_a_client_that_alone_can_not_reach_the_controller_leaves_its_trials_to_the_others(
    parts: Farm, database: DatabaseServer
) -> None:
    parts.start(patience_s=slowly(4), concurrency=2)
    parts.slow(1.5)
    with parts.at_most(IN_FLIGHT):
        first = parts.begin()
        parts.until_calls(1)
        cut_off = joined_by_a_way_of_its_own(parts)
    until(lambda: any(call.link == "own" and call.target == "POST /sessions" for call in parts.ways.calls))
    parts.link("own").faults.append(Fault("drop"))
    reports = [parts.completed(client).partition("run:")[0] for client in (first, cut_off)]
    assert reports[0] == reports[1]
    parts.verify()


def test_a_task_that_no_client_can_reach_is_given_up_by_all(parts: Farm, database: DatabaseServer) -> None:
    patience_s = slowly(4)  # longer than a controller that was just started settles
    parts.start(patience_s=patience_s)
    with parts.at_most(IN_FLIGHT):
        clients = [parts.begin()]
        parts.until_calls(1)
        clients.append(joined_by_a_way_of_its_own(parts))
        assert parts.controller is not None
        parts.controller.kill()
    for client in clients:
        assert f"waited {patience_s:g} s for task ledger" in parts.completed(client, 1)


def state(parts: Farm) -> str:
    """What the run is."""
    engine = sa.create_engine(parts.store_url())
    with engine.connect() as connection:
        found = str(connection.execute(sa.select(run_table.c.state)).scalar_one())
    engine.dispose()
    return found


def test_a_run_is_not_closed_over_a_client_that_has_just_joined(parts: Farm, database: DatabaseServer) -> None:
    parts.start()
    parts.slow(1.0)
    with parts.under_way(1) as first:
        parts.link("client").faults.append(Fault("drop", "/summary"))
        first.send_signal(signal.SIGINT)
    until(lambda: any(call.target.endswith("/summary") for call in parts.ways.calls))
    second = joined_by_a_way_of_its_own(parts)
    parts.link("client").faults.clear()
    parts.completed(first, 130)
    parts.completed(second)
    assert state(parts) == "finished"
    parts.verify()


def held(parts: Farm, shard: int) -> dict[bool, int]:
    """How many trials a client holds, by whether they were begun."""
    rows = [row for row in rows_of(parts.store_url(), "r", trial_table) if row["holder"] == shard]
    return Counter(row["attempts"] > 0 for row in rows)


def test_what_a_client_holds_that_is_told_to_end_the_others_play(parts: Farm, database: DatabaseServer) -> None:
    clients = three_clients(parts, slow_s=2.0)
    until(lambda: set(held(parts, shard=1)) == {True, False})
    clients[0].send_signal(signal.SIGTERM)
    until(lambda: set(held(parts, shard=1)) == {True})
    parts.completed(clients[0], 130)
    assert (shards(parts, "left"), shards(parts, "lost"), state(parts)) == (1, 0, "running")
    parts.completed(clients[1])
    parts.completed(clients[2])
    parts.verify()
    assert set(parts.attempts()) == {1}


def test_the_sessions_of_a_client_that_is_told_to_end_at_once_are_ended(parts: Farm, database: DatabaseServer) -> None:
    parts.start()
    parts.slow(4.0)
    client = parts.begin()
    parts.until_calls(IN_FLIGHT)
    client.send_signal(signal.SIGTERM)
    assert client.stderr is not None
    while "draining" not in client.stderr.readline():
        assert client.poll() is None
    client.send_signal(signal.SIGTERM)
    parts.completed(client, 130)
    assert parts.workers["w1"].metric("proctor_sessions_live") == 0
    assert state(parts) == "interrupted"


def test_clients_killed_ten_times_at_random_moments_while_others_join(tmp_path: Path, agents: Server) -> None:
    chance = random.Random(5)
    with farm(tmp_path, agents, turns=24) as parts, postgresql() as database:
        parts.store = database.url
        clients = three_clients(parts, slow_s=0.6)
        with parts.at_most(max(0, 300 - parts.calls())) as gate:  # of 480 calls
            for joined in range(4, 14):
                parts.until_calls(chance.randrange(1, 12), unless=lambda: gate.spared == 0)
                victim = clients.pop(chance.randrange(len(clients)))
                assert victim.poll() is None, victim.communicate()
                victim.kill()
                victim.communicate()
                clients.append(parts.begin("join"))
                until_joined(parts, joined, clients[-1])
        parts.link("agents").faults.clear()
        for client in clients:
            parts.completed(client)
        parts.verify(clients=13, paid_twice=10 * IN_FLIGHT)
