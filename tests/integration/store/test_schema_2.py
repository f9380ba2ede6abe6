"""Runs that an earlier version wrote (schema 2): read as they are, and given their new columns by a resume."""

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from eval_client.cli.manage.ls import ls
from eval_client.cli.results.compare import compare
from eval_client.cli.results.export import export
from eval_client.cli.results.report import report
from eval_client.cli.results.show import show
from eval_client.cli.results.status import status
from eval_client.python.results import Run
from eval_client.store.connection import StoreError, connect, sqlite_url
from eval_client.store.journal import Cost, Journal
from eval_client.store.lock import sole_client, taken_over
from eval_client.store.records import Turn
from eval_client.store.runs import connect_read_only, run_moment
from eval_client.store.store import Store
from eval_client.store.tables import SCHEMA_VERSION, attempt_table, run_table
from eval_client.store.trials.rows import SORTS
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import OneRun
from proctor.types import Action, Finish, FinishReason, Message, Observation, Usage
from task_server.wire.messages import VERSION, Act
from tests.support import unscored

TABLES = (
    "proctor_run (id VARCHAR(64) NOT NULL, schema_version INTEGER NOT NULL, created_at VARCHAR(32) NOT NULL, "
    "manifest TEXT NOT NULL, fence INTEGER NOT NULL, state VARCHAR(32) NOT NULL, levels TEXT NOT NULL, "
    "PRIMARY KEY (id))",
    "proctor_shard (run VARCHAR(64) NOT NULL, shard INTEGER NOT NULL, state VARCHAR(32) NOT NULL, "
    "beats INTEGER NOT NULL, standing TEXT NOT NULL, PRIMARY KEY (run, shard))",
    "proctor_trial (run VARCHAR(64) NOT NULL, id INTEGER NOT NULL, agent VARCHAR(64) NOT NULL, "
    "task VARCHAR(64) NOT NULL, sample VARCHAR(255) NOT NULL, epoch INTEGER NOT NULL, attempts INTEGER NOT NULL, "
    "reason VARCHAR(32), score DOUBLE PRECISION, cause TEXT, finish TEXT, turns INTEGER, prompt_tokens BIGINT, "
    "completion_tokens BIGINT, seconds DOUBLE PRECISION, holder INTEGER DEFAULT '0' NOT NULL, PRIMARY KEY (run, id))",
    "proctor_attempt (run VARCHAR(64) NOT NULL, trial INTEGER NOT NULL, number INTEGER NOT NULL, "
    "journal INTEGER NOT NULL, session VARCHAR(32) NOT NULL, outcome VARCHAR(32), cause TEXT, worker VARCHAR(255), "
    "started_at VARCHAR(32) NOT NULL, PRIMARY KEY (run, trial, number))",
    "proctor_turn (run VARCHAR(64) NOT NULL, trial INTEGER NOT NULL, journal INTEGER NOT NULL, "
    "turn INTEGER NOT NULL, digest VARCHAR(16) NOT NULL, observation TEXT NOT NULL, reply TEXT NOT NULL, "
    "prompt_tokens BIGINT NOT NULL, completion_tokens BIGINT NOT NULL, model_seconds DOUBLE PRECISION NOT NULL, "
    "tries INTEGER NOT NULL, PRIMARY KEY (run, trial, journal, turn))",
    "proctor_summary (run VARCHAR(64) NOT NULL, agent VARCHAR(64) NOT NULL, task VARCHAR(64) NOT NULL, "
    "scored INTEGER NOT NULL, summary TEXT NOT NULL, PRIMARY KEY (run, agent, task))",
)
"""The tables of schema 2 as its code made them, but for the replies of judges, which the first version had not."""
PLAN = {
    "agents": [{"name": "a", "model": "m", "price": {"input": 2.0, "output": 10.0}}],
    "tasks": [{"name": "t", "environment": "ltp"}],
}
OBSERVATION = Observation(messages=(Message(role="user", content="2 + 2?"),))
REPLY = Act(action=Action(content="4"))
NEW = {
    "proctor_trial": {"cluster", "cached_tokens", "reasoning_tokens", "ended_at", "cut_answers"},
    "proctor_attempt": {"digest", "version", "ended_at"},
    "proctor_turn": {
        *("cached_tokens", "reasoning_tokens", "world_seconds", "stop", "model", "metered", "ended_at"),
    },
}
SCORED, PENDING = 0, 1


@pytest.fixture
def store(database_url: str, tmp_path: Path) -> Iterator[Store]:
    """A run of schema 2: a scored trial, and one with a turn whose client was killed."""
    if database_url.startswith("sqlite"):
        (tmp_path / "old").mkdir()
        made = Store(connect(sqlite_url(tmp_path / "old")), "old")
    else:
        made = Store(_database(database_url), "old")
    _write(made)
    yield made
    made.engine.dispose()


def _database(url: str) -> sa.Engine:
    """A database of its own, since other stores of a server share their tables."""
    name, engine = f"old_{secrets.token_hex(4)}", connect(url)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return connect(engine.url.set(database=name).render_as_string(hide_password=False))


def _write(store: Store) -> None:
    tasks = {"t": {"environment": "ltp", "digest": "d", "samples": 2, "comparable": None}}
    manifest = {"version": "0.1.0", "plan_path": "p", "plan": PLAN, "identity": {}, "tasks": tasks}
    run = {"id": store.run, "schema_version": 2, "created_at": "2026-11-01T10:00:00+00:00", "state": "running"}
    trial = {"run": store.run, "agent": "a", "task": "t", "epoch": 0, "attempts": 1}
    scored = {"reason": "completed", "score": 1.0, "turns": 1, "prompt_tokens": 1_000_000, "seconds": 2.0}
    finish = Finish(reason=FinishReason.COMPLETED, score=1.0).model_dump_json()
    attempt = {"run": store.run, "number": 1, "journal": 0, "started_at": "2026-11-01T10:00:01+00:00"}
    turn = {"run": store.run, "journal": 0, "turn": 1, "digest": OBSERVATION.digest(), "model_seconds": 1.0, "tries": 1}
    turn |= {"observation": OBSERVATION.model_dump_json(), "reply": REPLY.model_dump_json()}
    turn |= {"prompt_tokens": 1_000_000, "completion_tokens": 100_000}
    with store.engine.begin() as connection:
        for table in TABLES:
            connection.execute(sa.text(f"CREATE TABLE {table}"))
        rows = [
            ("proctor_run", {**run, "manifest": json.dumps(manifest), "fence": 1, "levels": "{}"}),
            (
                "proctor_trial",
                {**trial, "id": SCORED, "sample": "s0", **scored, "completion_tokens": 100_000, "finish": finish},
            ),
            ("proctor_trial", {**trial, "id": PENDING, "sample": "s1"}),
            ("proctor_attempt", {**attempt, "trial": SCORED, "session": "0" * 32, "outcome": "finished"}),
            ("proctor_attempt", {**attempt, "trial": PENDING, "session": "1" * 32}),
            ("proctor_turn", {**turn, "trial": SCORED}),
            ("proctor_turn", {**turn, "trial": PENDING}),
        ]
        for table, row in rows:
            names = (", ".join(row), ", ".join(f":{name}" for name in row))
            connection.execute(sa.text(f"INSERT INTO {table} ({names[0]}) VALUES ({names[1]})"), row)


def columns(store: Store) -> dict[str, set[str]]:
    """The new columns that each table has."""
    inspector = sa.inspect(store.engine)
    return {table: {column["name"] for column in inspector.get_columns(table)} & names for table, names in NEW.items()}


def version(store: Store) -> int:
    with store.engine.connect() as connection:
        return int(connection.execute(sa.select(run_table.c.schema_version)).scalar_one())


NONE: dict[str, set[str]] = {table: set() for table in NEW}


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Closes the connections of commands, which leave that to the end of their process."""
    made: list[sa.Engine] = []
    create = sa.create_engine

    def noted(*arguments: Any, **options: Any) -> sa.Engine:
        made.append(create(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(sa, "create_engine", noted)
    yield
    for engine in made:
        engine.dispose()


@pytest.mark.usefixtures("closed")
def test_it_is_read_by_every_command_and_not_altered(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    server = store.engine.dialect.name != "sqlite"
    where = ["--output", str(tmp_path)]
    where += ["--store", store.engine.url.render_as_string(hide_password=False)] if server else []
    runner = CliRunner()

    listed = runner.invoke(ls, where)
    assert (listed.exit_code, "old: stopped, 1/2 trials scored" in listed.output) == (0, True), listed.output
    shown = runner.invoke(status, ["old", *where, "--json"])
    assert shown.exit_code == 0, shown.output
    conversation = runner.invoke(show, ["old", "0", *where])
    assert (conversation.exit_code, "2 + 2?" in conversation.output) == (0, True), conversation.output
    (pair,) = json.loads(shown.stdout)["pairs"]
    assert (pair["prompt_tokens"], pair["cached_tokens"], pair["reasoning_tokens"]) == (1_000_000, None, None)

    told = runner.invoke(report, ["old", *where, "--json"])
    assert told.exit_code == 0, told.output
    (pair,) = json.loads(told.stdout)["pairs"]
    assert (pair["value"], pair["money"], pair["cached_tokens"], pair["protocol"]) == (1.0, 3.0, None, "text")
    text = runner.invoke(report, ["old", *where]).output
    costs = text.partition("costs of the finished trials")[2].splitlines()
    shown_costs = [line.split()[-6:-2] for line in costs if "1,000,000" in line]
    assert shown_costs == [["1,000,000", "-", "100,000", "-"]] * 2, "what it lacks is a dash, never a 0"

    page = tmp_path / "old.html"
    written = runner.invoke(report, ["old", *where, "--html", str(page), "--samples"])
    assert written.exit_code == 0, written.output

    compared = runner.invoke(compare, ["old:a", "old:a", *where, "--json"])
    assert compared.exit_code == 0, compared.output
    (task,) = json.loads(compared.stdout)["tasks"]
    assert (task["samples"], task["clusters"], task["difference"]) == (1, 1, 0.0)

    for what, count in (("trials", 2), ("turns", 2), ("replies", 0)):
        done = runner.invoke(export, ["old", *where, "--what", what, "--to", str(path)])
        assert done.exit_code == 0, done.output
        rows = [json.loads(row) for row in path.read_text().splitlines()]
        assert len(rows) == count
        assert all(not NEW[f"proctor_{what[:-1]}"] - {"stop"} & row.keys() for row in rows)
    for form in ("inspect", "atif", "sft", "every-eval-ever"):
        done = runner.invoke(export, ["old", *where, "--as", form, "--to", str(tmp_path / form)])
        assert done.exit_code == 0, done.output
        assert done.stdout.startswith("1 ")
    assert columns(store) == NONE
    assert version(store) == 2
    assert run_moment(store.engine, "old")[2:] == (0, "")


def test_python_reads_it_too(store: Store, tmp_path: Path) -> None:
    def resume(run: Run, *_: object) -> Run:
        return run

    run = Run(store, tmp_path, resume)
    trial, _ = run.trials()
    turn, _ = run.turns()
    assert (trial.prompt_tokens, trial.cached_tokens, turn.cached_tokens, turn.reasoning_tokens) == (1_000_000, 0, 0, 0)
    assert columns(store) == NONE


async def test_a_client_without_the_runs_lock_does_not_alter_it(store: Store) -> None:
    store.check()
    with sole_client(store), pytest.raises(StoreError, match="another client"):
        async with taken_over(store):
            raise AssertionError("two clients hold the run")
    assert columns(store) == NONE


async def test_a_resume_adds_the_columns_under_the_lock_and_plays_on(store: Store) -> None:
    async with taken_over(store) as fence:
        assert columns(store) == NEW
        assert version(store) == SCHEMA_VERSION
        assert run_moment(store.engine, "old")[1:] == (fence, 0, "")
        (trial,) = unscored(store)
        assert (trial.id, trial.cluster) == (PENDING, None)
        number, turns, paid = store.journal(PENDING)
        assert (number, [turn.reply for turn in turns], paid) == (0, [REPLY], Usage())
        assert (turns[0].prompt_tokens, turns[0].completion_tokens) == (1_000_000, 100_000)
        assert store.spent(store.pair_totals()) == {"a": Usage(2_000_000, 200_000)}

        journal = Journal(store, fence)
        await journal.begin(trial, 2, 0, "2" * 32, "d")
        await journal.turn(trial, 0, later(2))
        finish = Finish(reason=FinishReason.COMPLETED, score=0.5)
        await journal.finish(trial, 2, "w", finish, Cost(2, Usage(1_000_010, 100_004, 6, 3), 3.0, 1))
        await journal.close()
    (old, new), turn_rows = store.trial_rows(), list(store.turn_rows())
    assert (old["cached_tokens"], old["reasoning_tokens"], old["ended_at"], old["cluster"]) == (0, 0, None, None)
    assert (new["cached_tokens"], new["reasoning_tokens"], new["cluster"]) == (6, 3, None)
    assert new["ended_at"]
    assert (old["cut_answers"], new["cut_answers"]) == (None, 1)
    read = Run(store, Path("old"), lambda run, *_: run)
    assert [told.cut_answers for told in read.trials()] == [None, 1]
    assert [pair.cut_answers for pair in store.pair_totals()] == [None], "not all of its trials tell"
    first, last = turn_rows[1:]
    assert (first["world_seconds"], first["metered"], first["model"], first["finish_reason"]) == (None,) * 4
    assert (last["world_seconds"], last["metered"], last["model"]) == (0.25, True, "m-1")
    assert (last["finish_reason"], last["stop"], last["cached_tokens"]) == ("length", None, 6)
    assert [pair.cached_tokens for pair in store.pair_totals()] == [6]
    a = attempt_table.c
    query = sa.select(a.number, a.digest, a.version).where(a.trial == PENDING).order_by(a.number)
    with store.engine.connect() as connection:
        assert connection.execute(query).all() == [(1, None, None), (2, "d", VERSION)]


def later(number: int) -> Turn:
    """A turn as this version journals it."""
    return Turn(
        turn=number,
        digest=OBSERVATION.digest(),
        observation=OBSERVATION.model_dump_json(),
        reply=REPLY,
        prompt_tokens=10,
        completion_tokens=4,
        cached_tokens=6,
        reasoning_tokens=3,
        model_seconds=0.5,
        tries=1,
        world_seconds=0.25,
        stop="length",
        model="m-1",
        metered=True,
    )


@pytest.mark.parametrize("schema", [1, SCHEMA_VERSION + 1])
def test_other_schemas_are_refused(store: Store, schema: int) -> None:
    with store.engine.begin() as connection:
        connection.execute(run_table.update().values(schema_version=schema))
    with pytest.raises(StoreError, match=rf"another version \(schema {schema}\)"):
        store.manifest()


async def test_its_pages_open_in_the_viewer_which_writes_nothing(store: Store) -> None:
    """A dash stands where schema 2 has no column; sessions at a database server can't write."""
    url = store.engine.url.render_as_string(hide_password=False)
    transport = httpx.ASGITransport(build_app(viewed := OneRun(url, "old"), ViewAccess()))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as viewer:
        for page in ("/runs/old", "/runs/old/trials/0", "/runs/old/sample?task=t&sample=s0", "/api/v1/runs"):
            answer = await viewer.get(page)
            assert answer.status_code == 200, answer.text
        table = (await viewer.get("/runs/old/trials?agent=a&columns=sample,world_seconds,ended_at")).text
        assert table.count('<td class="left time">-</td>') == 2, "neither trial has a time at which it ended"
        assert table.count("<td>-</td>") >= 2, "nor has the environment's time been measured"
        trial = (await viewer.get("/api/v1/runs/old/trials/0")).json()
        (turn,) = trial["turns"]["items"]
        assert [turn[name] for name in ("world_seconds", "model", "finish", "metered")] == [None] * 4
        assert [attempt["ended_at"] for attempt in trial["attempts"]] == [None]
        found = (await viewer.get("/api/v1/runs/old/trials?text=2%20%2B%202&score=1")).json()
        assert ([item["id"] for item in found["items"]], found["searched"], found["next"]) == ([SCORED], 1, None)
        rows = (await viewer.get("/runs/old/trials.csv?sort=-ended_at")).text.splitlines()
        assert len(rows) == 3
        for sort in SORTS:
            for minus in ("", "-"):
                first = (await viewer.get(f"/api/v1/runs/old/trials?size=1&sort={minus}{sort}")).json()
                rest = await viewer.get(f"/api/v1/runs/old/trials?sort={minus}{sort}&after={first['next']}")
                ids = [item["id"] for item in (*first["items"], *rest.json()["items"])]
                assert sorted(ids) == [SCORED, PENDING]
                assert first["items"][0]["ended_at"] is None
    viewed.open("old").engine.dispose()
    engine = connect_read_only(url)
    with pytest.raises(sa.exc.SQLAlchemyError, match=r"(?i)read.?only"), engine.begin() as connection:
        connection.execute(run_table.update().values(state="changed"))
    engine.dispose()
    assert store.state() == "running"
