"""A store's file on a read-only file system, damaged after a kill, or replaced in mid-run."""

import contextlib
import csv
import functools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.gates import ENDLESS, gate
from tests.e2e.proctor import Server, begin, completed, environment, exits, proctor, server
from tests.pace import slowly, until

TASK = "{name: db-own, environment: db, parameters: {engine: sqlite}}"
AGENTS = f"tasks: [{TASK}]\nagents: [{{name: reference, kind: reference, latency_s: 0.3}}]\n"
CALLS = "proctor_agent_requests_total"
IN_FLIGHT = 2
KEY = {"OPENAI_API_KEY": "token-of-the-tests"}
WRITE = """\
import asyncio, os, signal, sys
from pathlib import Path
from eval_client.plan.plan import Plan
from eval_client.own_runs import list_run
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.journal import Cost, Journal
from eval_client.store.records import Manifest, TaskRecord, Trial, Turn
from eval_client.store.store import Store
from proctor.session.kept_replies import KeptReply, ModelReply
from proctor.types import Action, Finish, FinishReason, Usage
from task_server.wire.messages import Act

PLAN = {
    "agents": [{"name": "a", "endpoint": "http://127.0.0.1:1/v1", "model": "m"}],
    "tasks": [{"name": "t", "environment": "ltp"}],
}


async def write(folder):
    folder.mkdir(parents=True)
    trials = [Trial(id=n, agent="a", task="t", sample=f"s{n}", epoch=0) for n in range(10)]
    store = Store(connect(sqlite_url(folder)), folder.name)
    plan = Plan.model_validate(PLAN)
    tasks = {"t": TaskRecord(environment="ltp", digest="d", samples=10)}
    recorded, identity = plan.model_dump(mode="json"), plan.identity()
    manifest = Manifest(version="1", plan_path="p", plan=recorded, identity=identity, tasks=tasks)
    list_run(folder.name, manifest)
    store.create(manifest, trials)
    journal = Journal(store, store.take_over())
    for trial in trials[:9]:
        await journal.begin(trial, 1, 0, f"{trial.id:032}")
        for n in range(1, 6):
            act = Act(action=Action(content="x" * 2000))
            await journal.turn(trial, 0, Turn(turn=n, digest="d", observation="{}", reply=act))
        said = ModelReply(text="yes\\0", model="judge", prompt_tokens=9)
        await journal.replies(trial, 0, [KeptReply(key="0" * 40, reply=said, bought=True)] * 3)
        await journal.finish(trial, 1, "w", Finish(reason=FinishReason.COMPLETED, score=1.0), Cost(5, Usage(), 1.0))
    if "killed" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    await journal.close()
    store.engine.dispose()


asyncio.run(write(Path(sys.argv[1])))
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")


Write = Callable[[Path, str], Path]


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Copies a run with 45 turns and nine results to `runs/r` of a folder; its client was `killed` or `closed`."""

    @functools.cache
    def written(how: str) -> Path:
        run = tmp_path_factory.mktemp(how) / "r"
        command = [sys.executable, "-c", WRITE, str(run), how]
        subprocess.run(command, check=how == "closed", env=environment(), timeout=slowly(60))
        return run

    def copied(folder: Path, how: str) -> Path:
        return shutil.copytree(written(how), folder / "runs" / "r") / "run.sqlite"

    return copied


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder that is a file system which can't be written to."""
    subprocess.run(["mount", "--bind", str(folder), str(folder)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(folder)], check=True)
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@as_root
@pytest.mark.parametrize("how", ["closed", "killed"])
def test_a_run_on_a_read_only_file_system_can_be_read(how: str, tmp_path: Path, write: Write) -> None:
    store = write(tmp_path, how)
    (tmp_path / "runs" / "r" / "run.sqlite.r.lock").touch()
    assert Path(f"{store}-wal").exists() == (how == "killed")
    with read_only(tmp_path / "runs"):
        status = proctor("status", "latest", cwd=tmp_path)
        assert "9/10 trials scored" in status.stdout, status.stderr
        assert "9/10" in proctor("report", "r", cwd=tmp_path).stdout
        assert "r: stopped, 9/10 trials scored" in proctor("ls", cwd=tmp_path).stdout
        export = proctor("export", "r", "--what", "turns", "--to", "turns.jsonl", cwd=tmp_path)
        assert "45 turns" in export.stdout, export.stderr
        inside = proctor("export", "r", cwd=tmp_path)
        assert (inside.returncode, "choose another place with --to" in inside.stderr) == (2, True)
        resumed = exits(2, "resume", "r", cwd=tmp_path)
        assert "its folder can't be written to" in resumed.stderr


@as_root
def test_a_log_that_cannot_be_read_on_a_read_only_file_system_is_told_with_what_to_do(
    tmp_path: Path, write: Write
) -> None:
    store = write(tmp_path, "killed")
    Path(f"{store}-shm").unlink()
    with read_only(tmp_path / "runs"):
        told = proctor("status", "r", cwd=tmp_path)
        assert (told.returncode, "run.sqlite-wal" in told.stderr) == (2, True), told.stderr
        assert "copy the run's folder" in told.stderr
        assert "r: unreadable" in proctor("ls", cwd=tmp_path).stdout
    shutil.copytree(tmp_path / "runs", tmp_path / "copied")
    assert "9/10 trials scored" in proctor("status", "r", "-o", "copied", cwd=tmp_path).stdout


def overwrite(path: Path, at: float) -> None:
    """Other bytes at the head of a page, so far into a file."""
    with path.open("r+b") as file:
        file.seek(int(path.stat().st_size * at) // 4096 * 4096)
        file.write(b"\xa5" * 100)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


BREAKERS: dict[str, Callable[[Path], None]] = {
    "a page of it": lambda path: overwrite(path, 0.5),
    "its head": lambda path: overwrite(path, 0.0),
    "its length": cut,
    "all of it": Path.unlink,
}


@pytest.mark.parametrize("index", ["kept", "gone"])
@pytest.mark.parametrize("what", BREAKERS)
def test_a_damaged_log_is_told_before_anything_is_paid_again(
    what: str, index: str, tmp_path: Path, write: Write
) -> None:
    store = write(tmp_path, "killed")
    BREAKERS[what](Path(f"{store}-wal"))
    if index == "gone":
        Path(f"{store}-shm").unlink()
    proctor("status", "r", cwd=tmp_path)  # SQLite reads what it can and deletes the log
    assert not Path(f"{store}-wal").exists()
    resumed = exits(2, "resume", "r", cwd=tmp_path)
    assert "run.sqlite" in resumed.stderr
    assert "are lost" in resumed.stderr


def test_an_undamaged_log_of_a_killed_client_is_no_damage(tmp_path: Path, write: Write) -> None:
    write(tmp_path, "killed")
    found = json.loads(proctor("doctor", "--run", "r", "--json", cwd=tmp_path).stdout)["findings"]
    assert [each["what"] for each in found if each["id"] == "run"] == ["run r: its store is whole"]
    assert "damaged" not in proctor("resume", "r", cwd=tmp_path).stderr


def test_a_clean_end_leaves_nothing_to_compare_with(tmp_path: Path, write: Write) -> None:
    store = write(tmp_path, "closed")
    assert sorted(path.name for path in store.parent.iterdir()) == ["run.sqlite"]
    assert "are lost" not in proctor("resume", "r", cwd=tmp_path).stderr


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_what_judges_said_can_be_exported(form: str, tmp_path: Path, write: Write) -> None:
    write(tmp_path, "closed")
    export = proctor("export", "r", "--what", "replies", "--as", form, "--to", "replies", cwd=tmp_path)
    assert "27 replies" in export.stdout, export.stderr
    with (tmp_path / "replies").open(newline="") as file:
        found = [json.loads(line) for line in file] if form == "jsonl" else list(csv.DictReader(file))
    told = [(row["sample"], int(row["number"]), row["text"], int(row["prompt_tokens"]), row["model"]) for row in found]
    assert told == [(f"s{n}", number, "yes\0", 9, "judge") for n in range(9) for number in range(3)]


@pytest.mark.parametrize("state", ["interrupted", "running"])
def test_an_index_that_differs_from_its_table_is_told_before_a_resume(state: str, tmp_path: Path, write: Write) -> None:
    store = write(tmp_path, "closed")
    with contextlib.closing(sqlite3.connect(store)) as database, database:
        database.execute("UPDATE proctor_run SET state = ?", (state,))
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'proctor_trial_sums'"
        page, size = (database.execute(each).fetchone()[0] for each in (query, "PRAGMA page_size"))
    with store.open("r+b") as file:
        file.seek((page - 1) * size)
        place = file.read(size).index(b"s3")
        file.seek((page - 1) * size + place)
        file.write(b"s7")
    with contextlib.closing(sqlite3.connect(store)) as database:
        assert database.execute("PRAGMA quick_check").fetchall() == [("ok",)], "pages that are whole by themselves"
    told = proctor("resume", "r", cwd=tmp_path)
    assert (told.returncode, "is damaged" in told.stderr) == (2, True), told.stderr
    assert "proctor_trial_sums" in told.stderr
    assert "restore it from a copy" in told.stderr


def test_a_damaged_page_is_told_before_a_resume(tmp_path: Path, write: Write) -> None:
    store = write(tmp_path, "closed")
    overwrite(store, 0.4)
    resumed = exits(2, "resume", "r", cwd=tmp_path)
    assert "run.sqlite" in resumed.stderr
    assert "damaged" in resumed.stderr


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "agents.yaml").write_text(AGENTS)
    with server("agents", "--config", "agents.yaml", cwd=tmp_path) as running:
        agent = f'{{name: reference, builtin: reference, endpoint: "{running.url}", concurrency: 2}}'
        (tmp_path / "plan.yaml").write_text(f"name: files\nagents: [{agent}]\ntasks: [{TASK}]\n")
        yield running


def removed(store: Path) -> None:
    store.unlink()


def replaced(store: Path) -> None:
    shutil.copy(store, store.with_name("copy"))
    store.with_name("copy").replace(store)


def emptied(store: Path) -> None:
    os.truncate(store, 0)


def overwritten(store: Path) -> None:
    with store.open("r+b") as file:
        file.write(os.urandom(store.stat().st_size))


@pytest.mark.parametrize("how", [removed, replaced, emptied, overwritten])
def test_a_store_that_is_lost_under_a_live_client_is_not_finished(
    how: Callable[[Path], None], tmp_path: Path, agents: Server
) -> None:
    client = begin("run", "plan.yaml", "--name", "r", "-q", *ENDLESS, cwd=tmp_path, **KEY)
    until(lambda: agents.metric(CALLS) >= 6)
    store = tmp_path / "runs" / "r" / "run.sqlite"
    with contextlib.closing(sqlite3.connect(store)) as connection:  # now the log alone no longer makes it whole again
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    how(store)
    errors = completed(client, 2, within_s=120)
    assert "run.sqlite" in errors
    assert "was removed or replaced" in errors or "damaged" in errors, errors


def test_a_damaged_log_of_a_run_can_be_accepted_and_the_run_goes_on(tmp_path: Path, agents: Server) -> None:
    with gate(tmp_path / "plan.yaml", agents.url) as way:
        way.shut(spared=12)
        client = begin("run", "plan.yaml", "--name", "r", "-q", cwd=tmp_path, **KEY)
        until(lambda: way.calls == 12 + IN_FLIGHT)
        client.send_signal(signal.SIGKILL)
        client.communicate()
        way.open()
        store = tmp_path / "runs" / "r" / "run.sqlite"
        overwrite(Path(f"{store}-wal"), 0.8)
        told = exits(2, "resume", "r", "-q", cwd=tmp_path, **KEY)
        assert "are lost" in told.stderr
        assert way.calls == 12 + IN_FLIGHT
        note = Path(f"{store}.lost")
        assert f"delete {note}" in told.stderr
        note.unlink()
        assert proctor("resume", "r", "-q", cwd=tmp_path, **KEY).returncode == 0
