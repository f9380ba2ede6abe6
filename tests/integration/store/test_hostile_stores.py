"""Stores, and folders of runs, that somebody else made: each reader ends in time, with figures or with one line."""

import contextlib
import itertools
import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from eval_client.cli.main import proctor
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.records import Manifest, TaskRecord, Trial
from eval_client.store.store import Store
from eval_client.store.tables import metadata
from proctor.types import Action, Finish, FinishReason, Message, Observation, Summary
from task_server.wire.messages import Act
from tests.pace import slowly

ANY = ("--owner", "any")
WITHIN_S = 5
PLAN = {"agents": [{"name": "a", "builtin": "naive"}], "tasks": [{"name": "t", "environment": "ltp"}]}
HUGE, LARGE = 2**63 - 1, 100 << 20
UNDECODABLE, INFINITE = "CAST(x'ff80' AS TEXT)", "9e999"
VALUES = {
    "a text": "'no'",
    "bytes": "x'ff00'",
    "no UTF-8": UNDECODABLE,
    "infinity": INFINITE,
    "a huge integer": str(HUGE),
    "NULL": "NULL",
    "deep JSON": f"'{'[' * 100_000}{']' * 100_000}'",
    "nested JSON": f"'{'[' * 900}{']' * 900}'",
    "NaN in JSON": """'{"a": NaN}'""",
    "half a character": """'{"a": "\\ud800"}'""",
    "controls": "'\x1b[31m' || char(10, 0, 8238)",
    "100 MB": f"CAST(zeroblob({LARGE}) AS TEXT)",
}
READERS = (
    ("status", "r"),
    ("report", "r"),
    ("compare", "r:a", "good:a"),
    ("show", "r", "1"),
    ("show", "r", "1", "--json"),
    ("export", "r", "--to", "rows.csv", "--as", "csv"),
    ("export", "r", "--to", "turns", "--what", "turns"),
    ("export", "r", "--to", "replies", "--what", "replies"),
    ("export", "r", "--to", "logs", "--as", "inspect"),
)
COLUMNS = [column for table in metadata.tables.values() for column in table.columns]
CASES = [
    *zip(COLUMNS, itertools.cycle(VALUES), strict=False),
    *((column, value) for column in COLUMNS if column.name in ("observation", "reply", "text") for value in VALUES),
]
"""Each column with a value, each value in some eight columns; and all of them in conversations."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of runs: `good` and `r`, alike."""
    folder = tmp_path_factory.mktemp("made")
    for name in ("good", "r"):
        (folder / "runs" / name).mkdir(parents=True)
        store = Store(connect(sqlite_url(folder / "runs" / name)), name)
        _fill(store)
        store.engine.dispose()
    return folder


def _fill(store: Store) -> None:
    tasks = {"t": TaskRecord(environment="ltp", digest="d", samples=3)}
    manifest = Manifest(version="1", plan_path="p", plan=PLAN, identity={}, tasks=tasks)
    store.create(manifest, [Trial(id=n, agent="a", task="t", sample=f"s{n}", epoch=0, attempts=1) for n in range(3)])
    store.take_over()
    observed = Observation(messages=(Message(role="user", content="2 + 2?"),))
    turn = {"digest": observed.digest(), "observation": observed.model_dump_json(), "prompt_tokens": 3}
    turn |= {"reply": Act(action=Action(content="4")).model_dump_json(), "completion_tokens": 1}
    reply = {"key": "0" * 40, "text": '"yes"', "model": "judge", "prompt_tokens": 9, "completion_tokens": 1}
    finish = Finish(reason=FinishReason.COMPLETED, score=1.0, detail={"answer": 4}).model_dump_json()
    t = metadata.tables
    with store.engine.begin() as connection:
        for trial in range(3):
            mine = {"run": store.run, "trial": trial}
            attempt = {"number": 1, "journal": 0, "session": "s", "outcome": "finished"}
            attempt |= {"started_at": "2026-11-01T10:00:00+00:00"}
            connection.execute(t["proctor_attempt"].insert(), {**mine, **attempt})
            rest = {"journal": 0, "turn": 1, "model_seconds": 1.0, "tries": 1}
            connection.execute(t["proctor_turn"].insert(), {**mine, **turn, **rest})
            kept = {"number": 0, "tries": 1, "bought": True, "usable": True}
            connection.execute(t["proctor_reply"].insert(), {**mine, **reply, **kept})
        ended = {"reason": "completed", "score": 1.0, "finish": finish, "turns": 1, "seconds": 1.0, "cut_answers": 0}
        connection.execute(t["proctor_trial"].update().values(**ended, holder=-1))
        begun = f"2026-11-0{1 + (store.run == 'good')}T10:00:00+00:00"
        connection.execute(t["proctor_run"].update().values(state="finished", created_at=begun))
    store.write_summary("a", "t", 3, Summary(primary="mean_score", metrics={"mean_score": 1.0}))


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made / "runs", tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def change(folder: Path, *statements: str) -> None:
    """Changes the run `r`; its own limits on values are lifted."""
    with contextlib.closing(sqlite3.connect(folder / "runs" / "r" / "run.sqlite", isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


def without_limits(folder: Path) -> None:
    """Columns take NULL."""
    change(
        folder,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '') WHERE type = 'table'",
    )


def read(*arguments: str) -> tuple[int, str, str]:
    """A command's exit code, output and errors. Fails on an exception, and where it takes too long."""
    begun = time.monotonic()
    ended = CliRunner().invoke(proctor, list(arguments))
    assert ended.exception is None or isinstance(ended.exception, SystemExit), (arguments, ended.exc_info)
    assert time.monotonic() - begun < slowly(WITHIN_S), arguments
    return ended.exit_code, ended.stdout, ended.stderr


def the_others_are_listed() -> None:
    code, listed, _ = read("ls", *ANY)
    assert (code, "good: finished, 3/3 trials scored" in listed) == (0, True), listed


@pytest.mark.thorough
@pytest.mark.parametrize(("column", "value"), CASES, ids=str)
def test_a_value_of_any_kind_anywhere_ends_no_reader_but_with_a_line_that_names_it(
    column: "sa.Column[object]", value: str, folder: Path
) -> None:
    table = column.table.name
    without_limits(folder)
    change(folder, f"UPDATE {table} SET {column.name} = {VALUES[value]} WHERE rowid = (SELECT max(rowid) FROM {table})")
    for reader in READERS:
        code, _, errors = read(*reader)
        assert code in (0, 2), (reader, errors)
        if code == 2:
            (line,) = errors.splitlines()
            of_key = column.primary_key and ("has no " in line or "no run" in line or "in common" in line)
            named = f"{table}.{column.name}" if value != "100 MB" else table  # SQLite doesn't say in which column
            assert of_key or named in line or "in common" in line, line
    the_others_are_listed()


@pytest.mark.parametrize("column", ["score", "prompt_tokens", "seconds", "turns"])
@pytest.mark.parametrize("value", ["'no'", "x'00'", INFINITE])
def test_no_figure_is_added_up_from_what_is_no_number(column: str, value: str, folder: Path) -> None:
    change(folder, f"UPDATE proctor_trial SET {column} = {value} WHERE id = 1")
    for reader in ("status", "report"):
        code, _, errors = read(reader, "r")
        assert (code, f"proctor_trial.{column}" in errors) == (2, True)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT"
STRUCTURES = {
    "an endless view": (
        "ALTER TABLE proctor_run RENAME TO kept",
        f"CREATE VIEW proctor_run AS {ENDLESS} i AS id FROM n",
    ),
    "a trigger": ("CREATE TRIGGER t AFTER UPDATE ON proctor_run BEGIN DELETE FROM proctor_turn; END",),
    "a virtual table": (
        "DROP TABLE proctor_summary",
        "CREATE VIRTUAL TABLE proctor_summary USING fts5(run, agent, task, scored, summary)",
    ),
    "a computed column": ("ALTER TABLE proctor_trial ADD COLUMN extra TEXT GENERATED ALWAYS AS (hex(agent)) VIRTUAL",),
    "a missing column": ("DROP INDEX proctor_trial_sums", "ALTER TABLE proctor_trial DROP COLUMN score"),
    "a missing column of texts": ("ALTER TABLE proctor_trial DROP COLUMN finish",),
    "a missing table": ("DROP TABLE proctor_turn",),
    "no trials": ("DROP TABLE proctor_trial",),
}


@pytest.mark.parametrize("what", STRUCTURES)
def test_tables_that_are_none_of_ours_end_each_reader_with_one_line(what: str, folder: Path) -> None:
    change(folder, *STRUCTURES[what])
    refused = 0
    for reader in READERS:
        code, _, errors = read(*reader)
        assert code in (0, 2), (reader, errors)
        refused += code == 2
        assert code == 0 or (len(errors.splitlines()) == 1 and "proctor_" in errors), errors
    assert refused
    the_others_are_listed()


def pipe(run: Path) -> None:
    (run / "run.sqlite").unlink()
    os.mkfifo(run / "run.sqlite")


def pipe_as_lock(run: Path) -> None:
    os.mkfifo(run / f"run.sqlite.{run.name}.lock")
    with contextlib.closing(sqlite3.connect(run / "run.sqlite")) as database, database:
        database.execute("UPDATE proctor_run SET state = 'running'")


def device(run: Path) -> None:
    (run / "run.sqlite").unlink()
    (run / "run.sqlite").symlink_to("/dev/zero")


def directory(run: Path) -> None:
    (run / "run.sqlite").unlink()
    (run / "run.sqlite").mkdir()


def garbage(run: Path) -> None:
    (run / "run.sqlite").write_bytes(b"no database" * 1000)


def link_to_nothing(run: Path) -> None:
    shutil.rmtree(run)
    run.symlink_to("nowhere")


def renamed(name: bytes) -> Callable[[Path], None]:
    return lambda run: os.rename(os.fsencode(run), os.path.join(os.fsencode(run.parent), name))


FOLDERS = {
    "a pipe": pipe,
    "a pipe as its lock": pipe_as_lock,
    "a device": device,
    "a folder in its place": directory,
    "no database": garbage,
    "a link to nothing": link_to_nothing,
    "no UTF-8": renamed(b"r\xff\xfe"),
    "a line end": renamed(b"r\nError: all is well"),
    "an escape": renamed(b"r\x1b]0;title\x07\x1b[2J"),
    "words of a URL": renamed(b"r?mode=memory&x=%00#y"),
}


@pytest.mark.parametrize("what", FOLDERS)
def test_a_folder_of_any_name_and_kind_leaves_the_others_listed(what: str, folder: Path) -> None:
    FOLDERS[what](folder / "runs" / "r")
    the_others_are_listed()
    assert read("rm", "--older-than", "1h", *ANY)[0] == 2  # it asks first, and there is no terminal
    for arguments in (("ls", *ANY), ("status", "latest")):
        code, out, errors = read(*arguments)
        assert code == 0, errors
        assert "good" in out
        assert "\x1b" not in out
        assert "all is well" not in out.splitlines()
    for name in sorted(os.listdir(folder / "runs")):
        code, _, errors = read("report", f"runs/{name}")
        assert code in (0, 2)
        assert code == 0 or len(errors.splitlines()) == 1, errors


@pytest.mark.parametrize("name", ["../aside", "..", ".", "/tmp/aside", "a/../../aside"])
def test_no_command_follows_the_id_of_a_run_out_of_its_folder(name: str, folder: Path) -> None:
    (folder / "aside" / "logs").mkdir(parents=True)
    (folder / "aside" / "logs" / "kept").touch()
    change(folder, f"UPDATE proctor_run SET id = '{name}'", *(
        f"UPDATE {table} SET run = '{name}'" for table in metadata.tables if table != "proctor_run"
    ))  # fmt: skip
    store = ("--store", f"sqlite:///{folder}/runs/r/run.sqlite")
    before = _files(folder)
    for arguments in (
        ("rm", name, "--yes"),
        ("rm", "latest", "--yes"),
        ("rm", "--older-than", "1h", "--yes", *ANY),
        ("export", "latest"),
    ):
        code, _, _ = read(*arguments, *store, "-o", "runs/inner")
        assert code == 2 or arguments[1] == "--older-than", arguments
    assert read("ls", *ANY, *store)[0] == 0
    assert _files(folder) == before


def _files(folder: Path) -> list[Path]:
    """All but the store's own, such as its log."""
    return sorted(path for path in folder.rglob("*") if path.parent != folder / "runs" / "r")
