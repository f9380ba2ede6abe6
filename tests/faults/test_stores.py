"""The store full, locked and restarted in mid-run: writers wait, nothing is lost, nobody else's rows are touched."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.database_servers import mariadb, postgresql
from tests.e2e.proctor import exits
from tests.faults.parts.farm import Farm
from tests.faults.parts.proxy import Fault
from tests.pace import slowly, until

IN_FLIGHT = 8
HOLD = """\
import sqlite3, sys
store = sqlite3.connect(sys.argv[1], isolation_level=None)
store.execute("PRAGMA busy_timeout=30000")
store.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
sys.stdin.read()
"""
BUSY_S = 5.0
"""How long SQLite itself waits for a lock, before the journal has to."""


@contextlib.contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A file system of its own at a folder."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """A file that takes what is left of a file system."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while True:
            file.write(b"x" * 4096)
    return filler


@contextlib.contextmanager
def full_disk(parts: Farm) -> "Iterator[tuple[subprocess.Popen[str], Path]]":
    """A client whose run's disk has become full, and the file that has filled it."""
    with small_disk(parts.folder / "runs", "2m"):
        parts.start()
        parts.slow(0.3)
        with parts.under_way(16) as client:
            filler = fill(parts.folder / "runs")
        parts.until_stalled(2.0)
        yield client, filler


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_holds_the_run_up_until_there_is_room_again(parts: Farm) -> None:
    with full_disk(parts) as (client, filler):
        assert client.poll() is None
        assert parts.turns() < 2 * parts.world.count * parts.world.turns
        filler.unlink()
        parts.completed(client)
        parts.verify()
        assert set(parts.attempts()) == {1}


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_sigterm_on_a_full_disk_ends_the_client_soon_and_says_what_is_not_stored(parts: Farm) -> None:
    with full_disk(parts) as (client, filler):
        client.send_signal(signal.SIGTERM)
        _, errors = client.communicate(timeout=max(slowly(15), 30))
        assert client.returncode == 130, errors
        assert "the store can't be written to" in errors
        assert f"not stored: {IN_FLIGHT} turns" in errors
        filler.unlink()
        parts.completed(parts.begin("resume"))
        parts.verify(clients=2, paid_twice=IN_FLIGHT)


READERS = (
    "status",
    "report",
    "show r 1",
    "export r --to {out}/turns.jsonl",
    "report r --html {out}/r.html",
    "ls",
)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_every_command_that_reads_works_on_a_full_disk(parts: Farm, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Beside the client, after kill -9, and after a clean end; and what can't be written there is one line."""
    out = tmp_path_factory.mktemp("out")

    def read() -> None:
        for reader in READERS:
            done = exits(0, *reader.format(out=out).split(), cwd=parts.folder)
            assert "unreadable" not in done.stdout
        assert (out / "turns.jsonl").stat().st_size > 0

    with full_disk(parts) as (client, filler):
        read()
        client.kill()
        client.communicate()
        read()
        refused = exits(2, "resume", "r", cwd=parts.folder)
        assert len(refused.stderr.splitlines()) == 1, refused.stderr
        filler.unlink()
        parts.completed(parts.begin("resume"))
        parts.verify(clients=2, paid_twice=IN_FLIGHT)
        fill(parts.folder / "runs")
        read()


def test_a_store_locked_by_another_process_holds_the_run_up_until_it_is_free(parts: Farm) -> None:
    parts.start()
    parts.slow(0.3)
    command = [sys.executable, "-c", HOLD, str(parts.folder / "runs" / "r" / "run.sqlite")]
    with parts.under_way(16) as client:
        holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
    with holder:
        parts.until_stalled(BUSY_S + 2.0)
        holder.communicate("")
    parts.completed(client)
    parts.verify()
    assert set(parts.attempts()) == {1}


@pytest.mark.postgresql
def test_postgresql_restarted_in_mid_run_is_waited_for(parts: Farm) -> None:
    with postgresql() as database:
        parts.store = database.url
        parts.start()
        parts.slow(0.3)
        with parts.under_way(16) as client:
            database.stop()
        parts.until_stalled(2.0)
        database.start()
        parts.completed(client)
        parts.verify()
        assert set(parts.attempts()) == {1}


@pytest.mark.mariadb
def test_a_client_whose_lock_a_restart_took_writes_nothing_once_another_has_taken_over(parts: Farm) -> None:
    with mariadb() as database:
        parts.store = database.url
        parts.start()
        parts.slow(0.1)
        parts.link("w1").faults.append(Fault("latency", "/turns", seconds=1.0))  # what most trials will wait for
        with parts.under_way(16) as first:
            first.send_signal(19)  # SIGSTOP: it is to find out late
        database.stop()
        database.start()
        second = parts.begin("resume")
        until(lambda: parts.fence() == 2)
        parts.until_calls(3 * IN_FLIGHT)  # the second one is past the turns that the first one was at
        first.send_signal(18)
        _, errors = first.communicate(timeout=slowly(100))
        assert (first.returncode, "another client" in errors) == (2, True), errors  # the store's word, or a worker's
        parts.completed(second)
        parts.verify(clients=2, paid_twice=2 * IN_FLIGHT, asked_late=IN_FLIGHT)
