"""Two clients of one run: copies of its store, and clients that take over from one that was killed or stopped."""

import contextlib
import shutil
import signal
import sqlite3
from pathlib import Path

import pytest

from eval_client.store.connection import file_url, sqlite_url
from eval_client.store.tables import attempt_table
from task_server.wire.clients import PLAYED_ELSEWHERE, SILENT_S
from tests.e2e.proctor import Server, begin, proctor
from tests.faults.parts.farm import KEY, Farm, farm, put_away
from tests.faults.parts.invariants import rows_of
from tests.faults.test_stores import BUSY_S
from tests.pace import slowly, until

IN_FLIGHT = 8
WHOLE = 24 * IN_FLIGHT
"""Model calls after which all sessions that a run begins with are over."""
BEGUN = 20
"""Model calls before a client is copied, killed or stopped."""


def started(parts: Farm, home: str) -> None:
    """A farm whose plan names its controller, or its only worker."""
    parts.start(deadline_s=slowly(90), max_retry_s=slowly(180))
    if home == "worker":
        plan = parts.folder / "plan.yaml"
        plan.write_text(plan.read_text().replace(parts.link("client").url, parts.link("w1").url))


def copied(parts: Farm) -> Path:
    """A folder with a copy of the run, as `cp -r` makes it while nothing is written."""
    parts.until_stalled(1.0)
    folder = parts.folder / "restored"
    shutil.copytree(parts.folder / "runs", folder / "runs")
    shutil.copy(parts.folder / "plan.yaml", folder)
    return folder


def outcomes(parts: Farm) -> set[str]:
    return {row["outcome"] for row in rows_of(parts.store_url(), "r", attempt_table)}


@pytest.mark.parametrize("home", ["controller", "worker"])
@pytest.mark.parametrize("later", [BEGUN, WHOLE])
def test_a_copy_that_is_resumed_while_the_original_plays_ends_and_costs_it_nothing(
    tmp_path: Path, agents: Server, home: str, later: int
) -> None:
    with farm(tmp_path, agents, turns=24) as parts:
        started(parts, home)
        with parts.under_way(BEGUN) as client:
            folder = copied(parts)
        with parts.at_most(later):
            parts.until_calls(later)
            parts.until_stalled(1.0)
            before = parts.calls()
            copy = begin("resume", "r", "-q", cwd=folder, **KEY)
            parts.stack.callback(put_away, copy)
            _, errors = copy.communicate(timeout=slowly(60))
            assert (copy.returncode, PLAYED_ELSEWHERE in errors) == (2, True), errors
            assert parts.calls() == before
        parts.completed(client)
        assert outcomes(parts) == {"finished"}
        assert set(parts.attempts()) == {1}
        parts.verify()
        assert proctor("report", "r", cwd=folder).returncode == 0


@pytest.mark.parametrize("home", ["controller", "worker"])
@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_the_sessions_of_a_killed_client_are_taken_over(parts: Farm, home: str, where: str) -> None:
    started(parts, home)
    with parts.under_way(BEGUN) as client:
        parts.until_stalled(1.0)
        client.kill()
        client.communicate()
        machine = {} if where == "here" else {"XDG_STATE_HOME": str(parts.folder / "another-machine")}
        before, again = parts.calls(), parts.begin("resume", "--trust-stored-plan", **machine)
        until(lambda: parts.calls() > before, within_s=1.5 * SILENT_S)
    said = parts.completed(again)
    if where == "here":
        assert "waiting until that client is silent" not in said, said
    assert set(parts.attempts()) == {1}
    parts.verify(clients=2, paid_twice=IN_FLIGHT)


@pytest.mark.parametrize("of", ["a copy", "another name of the store"])
def test_a_client_that_was_stopped_while_another_took_over_plays_no_turn(parts: Farm, of: str) -> None:
    started(parts, "controller")
    with parts.under_way(BEGUN) as client:
        folder, options = copied(parts), ["-q"]
        client.send_signal(signal.SIGSTOP)
    if of == "another name of the store":
        alias = parts.folder / "alias.db"
        alias.symlink_to(str(file_url(parts.folder / "runs" / "r").database))
        options += ["--store", f"sqlite:///{alias}"]
    else:
        parts.store = sqlite_url(folder / "runs" / "r")
    applied = parts.turns()
    successor = begin("resume", "r", *options, cwd=folder, **KEY)
    parts.stack.callback(put_away, successor)
    until(lambda: parts.turns() > applied, within_s=2 * SILENT_S)
    client.send_signal(signal.SIGCONT)
    _, errors = client.communicate(timeout=slowly(60))
    assert (client.returncode, "another client" in errors) == (2, True), errors
    parts.completed(successor)
    assert outcomes(parts) == {"finished"}
    assert set(parts.attempts()) == {1}
    parts.verify(clients=2, paid_twice=IN_FLIGHT, asked_late=IN_FLIGHT)


def test_the_sessions_of_a_client_that_cannot_write_to_its_store_are_taken_over_at_once(parts: Farm) -> None:
    started(parts, "controller")
    with parts.under_way(BEGUN) as client:
        folder = copied(parts)
        store = sqlite3.connect(parts.folder / "runs" / "r" / "run.sqlite", isolation_level=None)
        parts.stack.enter_context(contextlib.closing(store)).execute("BEGIN IMMEDIATE")
    parts.until_stalled(BUSY_S + 2.0)
    parts.store, applied = sqlite_url(folder / "runs" / "r"), parts.turns()
    successor = begin("resume", "r", "-q", cwd=folder, **KEY)
    parts.stack.callback(put_away, successor)
    until(lambda: parts.turns() > applied)
    assert client.poll() is None
    store.rollback()
    _, errors = client.communicate(timeout=slowly(60))
    assert (client.returncode, PLAYED_ELSEWHERE in errors) == (2, True), errors
    parts.completed(successor)
    assert set(parts.attempts()) == {1}
    parts.verify(clients=2, paid_twice=IN_FLIGHT, asked_late=IN_FLIGHT)
