"""The acceptance list of the database environment, one test a line under its number, and its table of bad inputs."""

import asyncio
import contextlib
import hashlib
import json
import os
import select
import subprocess
import sys
import tempfile
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from environments.database import dataset, errata, scoring
from environments.database.dataset import Table, TableEntry
from environments.database.engines import mysql_client, mysql_connection
from environments.database.engines.base import INTERRUPTED, DatabaseSession
from environments.database.engines.mysql import MySqlEngine
from environments.database.engines.mysql_client import Account
from environments.database.engines.mysql_connection import Admin, Connection
from environments.database.engines.private_server import PrivateServer
from environments.database.environment import Database
from environments.database.policies import answer, operation
from environments.database.reply import Malformed, SqlAnswer, SqlOperation, read
from environments.database.session import OUT_OF_SYNC, StatementRunner
from environments.database.table_hash import of_rows
from proctor.environment import Agent, ContextLimitExceeded
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, Finish, FinishReason, Message, Observation
from tests.pace import in_time, slowly
from tests.scripted_agent import Scripted
from tests.support import ROOT, SHARED_DATA

pytestmark = [pytest.mark.mariadb, pytest.mark.shared, pytest.mark.asyncio(loop_scope="module")]

DEV = SHARED_DATA / "db" / "dev.jsonl"
PEOPLE = Table(name="people", columns=("name", "age"), rows=(("Ada", "36"), ("Kurt", "71")))
Play = Callable[[str], Agent]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server() -> AsyncIterator[PrivateServer]:
    server = PrivateServer()
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def admin(server: PrivateServer) -> AsyncIterator[Admin]:
    admin = Admin(await server.address())
    yield admin
    admin.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(server: PrivateServer) -> AsyncIterator[MySqlEngine]:
    """Sessions on the module's server, with a short limit for statements."""
    engine = MySqlEngine(await server.address(), statement_limit_s=slowly(1.0))
    async with engine.lifespan():
        yield engine


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def dev(server: PrivateServer) -> AsyncIterator[Database]:
    async with configured(server) as database:
        yield database


@asynccontextmanager
async def configured(server: PrivateServer, **fields: Any) -> AsyncIterator[Database]:
    """The dev split on the module's server."""
    socket = (await server.address()).socket
    database = Database(data=DEV, server=f"mysql://root@localhost/?unix_socket={socket}", **fields)
    async with database.lifespan():
        yield database


async def play_all(database: Database, agent: Play, samples: Sequence[str] = (), workers: int = 4) -> list[Finish]:
    slots = asyncio.Semaphore(workers)

    async def play(sample: str) -> Finish:
        async with slots:
            return await play_to_finish(database, sample, agent(sample))

    return list(await asyncio.gather(*map(play, samples or database.samples())))


def oracle(database: Database) -> Play:
    return lambda sample: PolicyAgent(database.reference(sample))


def entries() -> tuple[TableEntry, ...]:
    return dataset.load(DEV)


def changes() -> list[TableEntry]:
    return [entry for entry in entries() if entry.table_hash]


async def leftovers(admin: Admin) -> list[object]:
    databases = await asyncio.to_thread(admin.run, r"SHOW DATABASES LIKE 'proctor\_%'")
    users = await asyncio.to_thread(admin.run, r"SELECT User FROM mysql.user WHERE User LIKE 'proctor\_%'")
    return [*databases, *users]


async def test_01_the_loader_returns_60_samples_of_the_published_types() -> None:
    assert [entry.id for entry in entries()] == [f"dev-{index:05d}" for index in range(60)]
    assert Counter(entry.category for entry in entries()) == {"SELECT": 20, "INSERT": 20, "UPDATE": 20}
    assert Counter(entry.kind for entry in entries() if entry.category == "SELECT") == {
        "other": 4,
        "comparison": 4,
        "counting": 3,
        "ranking": 3,
        "aggregation-SUM": 2,
        "aggregation-MAX": 2,
        "aggregation-MIN": 1,
        "aggregation-AVG": 1,
    }


async def test_02_every_label_statement_gives_the_published_hash_in_sql_and_in_python(engine: MySqlEngine) -> None:
    for entry in changes():
        async with engine.session(entry.table) as session:
            await session.run(entry.label[0])
            changed = await session.table_hash()
        assert (changed.sql, changed.python) == (entry.table_hash, entry.table_hash), entry.id


async def test_03_no_untouched_table_has_the_published_hash(engine: MySqlEngine) -> None:
    for entry in changes():
        async with engine.session(entry.table) as session:
            untouched = await session.table_hash()
        assert untouched.sql == untouched.python == of_rows(entry.table.rows) != entry.table_hash, entry.id


async def test_04_all_tables_but_one_can_be_created_and_all_with_the_errata(server: PrivateServer) -> None:
    for profile, failed in (("compat", ["dev-00005"]), ("errata", [])):
        async with configured(server, profile=profile) as database:
            finishes = await play_all(database, lambda _: Scripted(answer([])))
        setups = zip(database.samples(), finishes, strict=True)
        assert [sample for sample, finish in setups if finish.detail["setup_failed"]] == failed


async def test_05_the_oracle_solves_everything_in_compat_and_errata(server: PrivateServer) -> None:
    for profile in ("compat", "errata"):
        async with configured(server, profile=profile) as database:
            summary = database.summarize(await play_all(database, oracle(database)))
        assert summary.metrics["overall_cat_accuracy"] == 1.0
        assert summary.metrics["scored"] == 60


async def test_05_the_oracle_meets_one_fault_in_strict(server: PrivateServer) -> None:
    async with configured(server, profile="strict") as database:
        finishes = await play_all(database, oracle(database))
    figures = database.summarize(finishes).metrics
    faults = [sample for sample, finish in zip(database.samples(), finishes, strict=True) if finish.score is None]
    assert faults == ["dev-00005"]
    assert (figures["SELECT_scored"], figures["SELECT_requested"], figures["SELECT_accuracy"]) == (19, 20, 1.0)
    of_requested = [
        figures[f"{name}_accuracy"] * figures[f"{name}_scored"] / figures[f"{name}_requested"]
        for name in ("SELECT", "INSERT", "UPDATE")
    ]
    assert sum(of_requested) / 3 == pytest.approx(0.983, abs=0.001)


async def test_05_an_empty_answer_scores_nothing(dev: Database) -> None:
    finishes = await play_all(dev, lambda _: Scripted(answer([])))
    assert {finish.score for finish in finishes} == {0.0}
    assert {finish.reason for finish in finishes} == {FinishReason.COMPLETED}


async def test_05_a_looper_gives_16_replies_and_reaches_the_turn_limit(dev: Database) -> None:
    loopers: dict[str, Scripted] = {}

    def looper(sample: str) -> Agent:
        return loopers.setdefault(sample, Scripted(operation("SELECT 1")))

    finishes = await play_all(dev, looper)
    assert {(finish.reason, finish.score) for finish in finishes} == {(FinishReason.TURN_LIMIT, 0.0)}
    assert {len(agent.seen) for agent in loopers.values()} == {16}


async def test_05_a_final_answer_on_the_first_line_is_invalid_format(dev: Database) -> None:
    agents = {entry.id: Scripted(f"Final Answer: {json.dumps(entry.label)}") for entry in entries()}
    finishes = await play_all(dev, agents.__getitem__)
    assert {(finish.reason, finish.score) for finish in finishes} == {(FinishReason.INVALID_FORMAT, 0.0)}


async def test_05_the_published_queries_solve_few_select_samples(dev: Database) -> None:
    asked = [entry for entry in entries() if entry.query]

    def sql_oracle(sample: str) -> Agent:
        query = next(entry.query or "" for entry in asked if entry.id == sample)
        return PolicyAgent(lambda _, transcript: _run_then_repeat(query, transcript))

    finishes = await play_all(dev, sql_oracle, [entry.id for entry in asked])
    assert 3 <= sum(finish.score or 0.0 for finish in finishes) <= 5


def _run_then_repeat(query: str, transcript: Sequence[Message]) -> Action:
    if len(transcript) == 3:
        return operation(query)
    rows = scoring.strict_items(transcript[-1].content)
    return answer([row.strip("(),'") for row in rows])


PROOFS = {
    "dev-00011": "SELECT Name FROM `table` ORDER BY REPLACE(`Area (km²)`, ',', '') + 0 DESC LIMIT 1",
    "dev-00013": "SELECT Crowd FROM `Australian Rules Football Matches` WHERE `Home team score` = '13.17 (95)'",
    "dev-00015": "SELECT FORMAT(SUM(`Try bonus`), 0) FROM `Rugby Club Standings` WHERE Points = '51'",
    "dev-00016": "SELECT MIN(Round) FROM `Race Results` WHERE `Fastest Lap` = 'Takashi Kogure'",
    "dev-00018": "SELECT MAX(Attendance) FROM `Baseball Team Record` WHERE Record = '15-28'",
}


async def test_05_what_the_errata_correct_is_wrong_without_and_right_with_them(server: PrivateServer) -> None:
    assert PROOFS.keys() == errata.load(errata.SHIPPED).keys()
    for profile, score in (("compat", 0.0), ("errata", 1.0)):
        async with configured(server, profile=profile) as database:
            finishes = await play_all(
                database,
                lambda sample: PolicyAgent(lambda _, transcript: _run_then_repeat(PROOFS[sample], transcript)),
                list(PROOFS),
            )
        assert {finish.score for finish in finishes} == {score}


ANSWERS: list[tuple[str, list[str]]] = [
    (" __import__('os').getcwd()", [os.getcwd()]),
    (" [__import__('os').getpid()]", [str(os.getpid())]),
    ("[" * 100000, ["5"]),
    ("[" * 1000 + "5" + "]" * 1000, ["5"]),
    (" [" + '"a", ' * 200000 + '"a"]', ["a"]),
    (" " + "9" * 5000, ["5"]),
]
"""Answers that are right in neither profile; the others are in tests/unit/environments/tables/database.jsonl."""


@pytest.mark.parametrize(("text", "label"), ANSWERS, ids=[case[0].strip()[:30] for case in ANSWERS])
async def test_06_what_is_no_literal_or_far_too_long_is_wrong(text: str, label: list[str]) -> None:
    assert (scoring.compat(text, label), scoring.strict(text, label)) == (False, False)


async def test_06_compat_judges_every_recorded_answer_as_the_published_code_does() -> None:
    rows = [json.loads(line) for line in (SHARED_DATA / "db" / "published_answers.jsonl").read_text().splitlines()]
    differing = [row for row in rows if scoring.compat(row["answer"], row["label"]) is not row["published"]]
    assert (len(rows), differing) == (700, [])


async def test_06_every_recorded_reply_is_read_as_the_published_expressions_read_it() -> None:
    rows = [json.loads(line) for line in (SHARED_DATA / "db" / "published_replies.jsonl").read_text().splitlines()]
    assert len(rows) == 400
    for row in rows:
        match read(row["reply"], may_operate=True):
            case SqlOperation(sql):
                found = {"kind": "operation", "sql": sql}
            case SqlAnswer(text):
                found = {"kind": "answer", "text": text}
            case Malformed():
                found = {"kind": "invalid"}
        assert found == row["published"], row["reply"]


async def test_07_a_result_of_801_characters_is_cut_to_800_and_the_marker(engine: MySqlEngine) -> None:
    frame = len("[('',)]")
    async with engine.session(PEOPLE) as session:
        assert await session.run("SELECT name, age FROM people") == "[('Ada', '36'), ('Kurt', '71')]"
        whole = await session.run(f"SELECT REPEAT('x', {800 - frame})")
        assert (len(whole), whole[-3:]) == (800, ",)]")
        assert await session.run(f"SELECT REPEAT('x', {801 - frame})") == f"[('{'x' * (801 - frame)}',)" + "[TRUNCATED]"
        assert await session.run("UPDATE people SET age = '37' WHERE name = 'Ada'") == "[]"
        assert await session.run("SELECT NULL, 1.50, DATE '2020-02-29', x'ff'") == (
            "[(None, Decimal('1.50'), datetime.date(2020, 2, 29), b'\\xff')]"
        )


async def test_07_an_error_text_starts_with_the_number_and_state_of_the_server(engine: MySqlEngine) -> None:
    async with engine.session(PEOPLE) as session:
        assert (await session.run("SELEC 1")).startswith("1064 (42000): You have an error in your SQL syntax")
        assert (await session.run("SELECT * FROM nowhere")).startswith("1146 (42S02): Table ")


async def test_08_two_samples_with_one_table_name_run_at_the_same_time(engine: MySqlEngine) -> None:
    first, second = [entry for entry in changes() if entry.table.name == "game_results"]
    async with engine.session(first.table) as one, engine.session(second.table) as other:
        await asyncio.gather(one.run(first.label[0]), other.run(second.label[0]))
        hashes = await asyncio.gather(one.table_hash(), other.table_hash())
    assert [changed.sql for changed in hashes] == [first.table_hash, second.table_hash]


async def test_09_60_oracle_samples_with_4_workers_take_less_than_30_s_and_leave_nothing(
    server: PrivateServer, admin: Admin
) -> None:
    started = time.monotonic()
    async with configured(server) as database:
        finishes = await play_all(database, oracle(database), workers=4)
    assert time.monotonic() - started < slowly(30)
    assert {finish.score for finish in finishes} == {1.0}
    assert await leftovers(admin) == []


async def test_10_the_same_replies_give_the_same_trajectory_twice(dev: Database) -> None:
    replies = (
        operation("SELECT DATABASE(), USER()"),
        operation("SHOW DATABASES"),
        operation("SELECT * FROM nowhere"),
        operation("SELECT * FROM mysql.user"),
        operation("SELECT * FROM game_results"),
        answer(["x"]),
    )

    async def trajectory() -> str:
        agent = Scripted(*replies)
        await play_to_finish(dev, "dev-00038", agent)
        actions = [reply.model_dump_json() for reply in replies]
        return hashlib.blake2b("\n".join(agent.digests + actions).encode()).hexdigest()

    assert await trajectory() == await trajectory()


FORBIDDEN = [
    "SELECT * FROM mysql.user",
    "SELECT 1 INTO OUTFILE '/tmp/proctor-stolen'",
    "SELECT 1 INTO DUMPFILE '/tmp/proctor-stolen'",
    "LOAD DATA INFILE '/etc/passwd' INTO TABLE people",
    "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE people",
    "SHUTDOWN",
    "CREATE USER intruder",
    "CREATE DATABASE elsewhere",
    "GRANT ALL ON *.* TO CURRENT_USER()",
    "SET GLOBAL max_connections = 1",
    "DROP DATABASE mysql",
    "USE mysql",
    "INSTALL SONAME 'ha_spider'",
]


async def test_11_a_user_has_no_rights_outside_of_its_database(engine: MySqlEngine) -> None:
    async with engine.session(PEOPLE) as session:
        for sql in FORBIDDEN:
            refusal = await session.run(sql)
            assert refusal[:4].isdigit(), f"{sql}: {refusal}"
        assert await session.run("SELECT LOAD_FILE('/etc/passwd')") == "[(None,)]"
        assert await session.run("SELECT COUNT(*) FROM people") == "[(2,)]"
    assert not Path("/tmp/proctor-stolen").exists()


async def test_a_connection_in_use_while_its_administrator_closes_is_closed_after_use(
    server: PrivateServer, admin: Admin
) -> None:
    closing = Admin(await server.address())
    with contextlib.closing(admin.dedicated()) as holder, holder.cursor() as lock:
        lock.execute("DO GET_LOCK('held', 0)")
        used = asyncio.create_task(asyncio.to_thread(closing.run, "SELECT CONNECTION_ID(), GET_LOCK('held', 60)"))
        await in_time(lambda: bool(admin.run("SELECT 1 FROM information_schema.processlist WHERE state = 'User lock'")))
        closing.close()
        lock.execute("DO RELEASE_LOCK('held')")
        ((connection, locked),) = await used
    assert locked == 1
    await in_time(lambda: not admin.run(f"SELECT 1 FROM information_schema.processlist WHERE id = {connection}"))


async def test_11_a_user_sees_no_other_sample(engine: MySqlEngine, admin: Admin) -> None:
    async with engine.session(PEOPLE) as session, engine.session(PEOPLE):
        names = [str(row[0]) for row in await asyncio.to_thread(admin.run, r"SHOW DATABASES LIKE 'proctor\_%'")]
        assert len(names) == 2
        results = [await session.run(f"SELECT name FROM {name}.people") for name in names]
        assert sorted(result[:4] for result in results) == ["1142", "[('A"]
        assert await session.run("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME = 'people'") == (
            "[(1,)]"
        )


@pytest.mark.parametrize(
    "table",
    [
        Table(name="t", columns=("a", "A"), rows=(("1", "2"),)),
        Table(name="t", columns=("a", "b"), rows=(("1", "2"), ("3",))),
        Table(name="t", columns=("a",), rows=(("1", "2"),)),
        Table(name="t" * 70, columns=("a",), rows=(("1",),)),
    ],
)
async def test_a_table_mysql_refuses_is_not_there_and_the_session_goes_on(engine: MySqlEngine, table: Table) -> None:
    async with engine.session(table) as session:
        assert session.setup_error
        assert session.setup_error[:4].isdigit()
        assert await session.run("SHOW TABLES") == "[]"
        assert (await session.table_hash()).sql is None


async def test_two_statements_in_a_block_are_one_error(engine: MySqlEngine) -> None:
    async with engine.session(PEOPLE) as session:
        assert (await session.run("SELECT 1; SELECT 2")).startswith("1064 (42000)")
        assert await session.run("SELECT 3") == "[(3,)]"


async def test_several_results_of_a_compound_statement_leave_the_connection_usable(engine: MySqlEngine) -> None:
    async with engine.session(PEOPLE) as session:
        assert await session.run("BEGIN NOT ATOMIC SELECT 1; SELECT 2; END") == "[(1,)]"
        assert await session.run("SELECT 3") == "[(3,)]"


async def test_comment_semicolon_and_newline_are_accepted(dev: Database) -> None:
    agent = Scripted(operation("-- how many?\nSELECT 1"), operation("SELECT /* now */\n 1;"), answer([]))
    await play_to_finish(dev, "dev-00038", agent)
    assert agent.told[1:] == ["[]", "[(1,)]"]


@pytest.mark.parametrize("profile", ["strict", "errata"])
async def test_a_comment_ends_with_its_line_where_the_reading_is_not_the_published_one(
    server: PrivateServer, profile: str
) -> None:
    agent = Scripted(operation("-- how many?\nSELECT 1 # one\n + 1 -- and one\n + 1;\n-- that is all"), answer([]))
    async with configured(server, profile=profile) as database:
        await play_to_finish(database, "dev-00038", agent)
    assert agent.told[1] == "[(3,)]"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SLEEP(1000)",
        "SELECT COUNT(*) FROM seq_1_to_100000 a, seq_1_to_100000 b, seq_1_to_100000 c",
        "WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i FROM n) SELECT COUNT(*) FROM n",
        "SET STATEMENT max_statement_time = 0 FOR SELECT BENCHMARK(1000000000000, MD5('x'))",
        "BEGIN NOT ATOMIC WHILE TRUE DO SELECT 1; END WHILE; END",
    ],
)
async def test_an_endless_statement_is_killed_and_the_agent_goes_on(engine: MySqlEngine, sql: str) -> None:
    async with engine.session(PEOPLE) as session:
        await session.run("SET max_recursive_iterations = 4294967295")
        started = time.monotonic()
        text = await session.run(sql)
        assert time.monotonic() - started < slowly(10)
        assert text == ("[(1,)]" if sql.startswith("BEGIN") else INTERRUPTED)
        assert await session.run("SELECT name FROM people LIMIT 1") == "[('Ada',)]"


async def test_a_result_of_a_million_rows_takes_no_memory_and_the_session_goes_on(engine: MySqlEngine) -> None:
    async with engine.session(PEOPLE) as session:
        await session.run("CREATE TEMPORARY TABLE kept AS SELECT 7 AS seven")
        tracemalloc.start()
        text = await session.run("SELECT seq, REPEAT('x', 500) FROM seq_1_to_1000000")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert text.endswith("[TRUNCATED]")
        assert peak < 5_000_000
        assert await session.run("SELECT seven FROM kept") == "[(7,)]"


async def test_a_dropped_table_is_wrong_and_no_fault(dev: Database) -> None:
    finish = await play_to_finish(dev, "dev-00038", Scripted(operation("DROP TABLE game_results"), answer([])))
    assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 0.0)


async def test_a_dropped_database_is_wrong_and_no_fault(dev: Database, admin: Admin) -> None:
    drop = operation("DROP DATABASE proctor_session_of_this_agent")
    finish = await play_to_finish(dev, "dev-00038", Scripted(drop, operation("SHOW TABLES"), answer([])))
    assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 0.0)
    assert await leftovers(admin) == []


@pytest.mark.parametrize(
    "sql",
    [
        ("START TRANSACTION", "UPDATE people SET age = '1'"),
        ("SET autocommit = 0", "UPDATE people SET age = '1'"),
        ("LOCK TABLES people WRITE",),
        ("FLUSH TABLES WITH READ LOCK",),
        ("XA START 'x'", "UPDATE people SET age = '1'", "XA END 'x'", "XA PREPARE 'x'"),
        ("SELECT GET_LOCK('mine', 1)",),
        ("SET PASSWORD = PASSWORD('mine')",),
        ("SET NAMES latin1", "SELECT 'é', x'e9'"),
        ("KILL CONNECTION_ID()",),
        ("CREATE OR REPLACE VIEW v AS SELECT SLEEP(100)", "RENAME TABLE people TO gone", "RENAME TABLE v TO people"),
    ],
)
async def test_what_a_sample_leaves_open_touches_no_other(
    engine: MySqlEngine, admin: Admin, sql: tuple[str, ...]
) -> None:
    before = await leftovers(admin)
    async with engine.session(PEOPLE) as other:
        async with engine.session(PEOPLE) as session:
            for statement in sql:
                await session.run(statement)
            await session.run("SELECT 1")
            await session.table_hash()
        assert await other.run("UPDATE people SET age = '2' WHERE name = 'Ada'") == "[]"
        assert (await other.table_hash()).sql is not None
    assert await leftovers(admin) == before


@pytest.mark.parametrize("text", ["🏔 \U0001f9ea", "naïve 雪", "a'b\"c`d\\e%s", "\ud83d alone"])
async def test_any_text_is_stored_and_hashed_as_utf8mb4(engine: MySqlEngine, text: str) -> None:
    clean = text.encode(errors="replace").decode()
    quoted = text.replace("\\", "\\\\").replace("'", "''")
    async with engine.session(PEOPLE) as session:
        await session.run(f"INSERT INTO people VALUES ('{quoted}', NULL)")
        changed = await session.table_hash()
    assert changed.sql == changed.python == of_rows([*PEOPLE.rows, (clean, None)])


async def test_a_killed_server_is_a_fault_and_the_next_sample_works() -> None:
    before = _servers()
    database = Database(data=DEV)
    async with database.lifespan():
        (pid,) = _servers() - before

        class Killer(Scripted):
            async def act(self, observation: Observation) -> Action:
                os.kill(pid, 9)
                return operation("SELECT 1")

        finish = await play_to_finish(database, "dev-00038", Killer(""))
        assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)
        finish = await play_to_finish(database, "dev-00038", oracle(database)("dev-00038"))
        assert finish.score == 1.0
    assert _servers() == before


async def test_8_samples_at_once_score_as_one_at_a_time(dev: Database) -> None:
    def naive(sample: str) -> Agent:
        return PolicyAgent(dev.naive(sample))

    at_once = await play_all(dev, naive, workers=8)
    assert at_once == await play_all(dev, naive, workers=1)
    assert 0 < sum(finish.score or 0 for finish in at_once) < 12


async def test_a_full_context_still_lets_the_hash_decide_in_compat_only(dev: Database) -> None:
    entry = next(entry for entry in entries() if entry.id == "dev-00038")
    finish = await play_to_finish(dev, entry.id, Scripted(operation(entry.label[0]), ContextLimitExceeded()))
    assert (finish.reason, finish.score, finish.metrics["strict"]) == (FinishReason.CONTEXT_LIMIT, 1.0, 0.0)
    finish = await play_to_finish(dev, "dev-00011", Scripted(ContextLimitExceeded()))
    assert (finish.reason, finish.score) == (FinishReason.CONTEXT_LIMIT, 0.0)


async def test_a_cancelled_session_frees_what_it_holds(engine: MySqlEngine, admin: Admin) -> None:
    before = await leftovers(admin)
    running = asyncio.Event()

    async def hold() -> None:
        async with engine.session(PEOPLE) as session:
            running.set()
            await session.run("SELECT SLEEP(1000)")

    task = asyncio.create_task(hold())
    begun = asyncio.create_task(running.wait())
    await asyncio.wait({task, begun}, return_when=asyncio.FIRST_COMPLETED)
    begun.cancel()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await leftovers(admin) == before


async def test_a_session_that_ends_while_its_statement_is_about_to_begin_ends_it_too(
    engine: MySqlEngine, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = await leftovers(admin)
    about_to_begin, killed = threading.Event(), threading.Event()

    def is_alive(connection: Connection) -> bool:
        about_to_begin.set()
        killed.wait(slowly(20))
        return mysql_connection.is_alive(connection)

    def kill(account: Account, what: str) -> None:
        whole_kill(account, what)
        killed.set()

    whole_kill = Account.kill
    monkeypatch.setattr(mysql_client, "is_alive", is_alive)
    monkeypatch.setattr(Account, "kill", kill)

    async def hold() -> None:
        async with engine.session(PEOPLE) as session:
            await session.run("SELECT SLEEP(1000)")

    task = asyncio.create_task(hold())
    assert await asyncio.to_thread(about_to_begin.wait, slowly(20))
    task.cancel()
    async with asyncio.timeout(slowly(30)):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await leftovers(admin) == before


async def test_what_a_dead_worker_left_is_removed_and_what_a_living_one_has_is_kept(
    server: PrivateServer, admin: Admin
) -> None:
    async with configured(server) as living, living_session(server) as session:
        await asyncio.to_thread(
            admin.run, "CREATE DATABASE proctor_0000dead_000000000000", "CREATE USER 'proctor_0000dead_000000000000'"
        )
        async with configured(server) as database:
            names = await leftovers(admin)
            assert [name for name in names if "dead" in str(name)] == []
            assert (await play_to_finish(database, "dev-00038", oracle(database)("dev-00038"))).score == 1.0
        assert await session.run("SELECT COUNT(*) FROM people") == "[(2,)]"
        assert living.samples()


@asynccontextmanager
async def living_session(server: PrivateServer) -> AsyncIterator[DatabaseSession]:
    engine = MySqlEngine(await server.address(), statement_limit_s=slowly(5.0))
    async with engine.lifespan(), engine.session(PEOPLE) as session:
        yield session


_CHILD = """
import asyncio
from environments.database.engines.private_server import PrivateServer

async def main():
    server = PrivateServer()
    await server.start()
    print(server.pid, (await server.address()).socket, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture
def own_tmp(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for temporary files in which nobody else's server looks for what the dead left."""
    with tempfile.TemporaryDirectory(prefix="pdb-", dir="/tmp") as folder:
        Path(folder).chmod(0o1777)  # the server runs under an account of its own
        monkeypatch.setenv("TMPDIR", folder)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        yield


async def test_a_private_server_ends_with_the_process_that_started_it(own_tmp: None) -> None:
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", _CHILD, stdout=pipe, cwd=ROOT)
    assert child.stdout
    pid, socket = (await child.stdout.readline()).decode().split()
    handle = os.pidfd_open(int(pid))
    child.kill()
    await child.wait()
    ended, _, _ = await asyncio.to_thread(select.select, [handle], [], [], slowly(20))
    os.close(handle)
    assert ended
    folder = Path(socket).parents[1]
    assert folder.exists()
    server = PrivateServer()
    await server.start()
    await server.stop()
    assert not folder.exists()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def confined() -> AsyncIterator[PrivateServer]:
    """A server that is begun where the folder for temporary files lets another account create nothing."""
    with tempfile.TemporaryDirectory(prefix="pdb-", dir="/tmp") as folder:
        Path(folder).chmod(0o711)
        server = PrivateServer()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TMPDIR", folder)
            patch.setattr(tempfile, "tempdir", folder)
            await server.start()
        yield server
        await server.stop()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs the server under another account")
async def test_a_private_server_is_set_up_without_the_systems_folder_for_temporary_files(
    confined: PrivateServer,
) -> None:
    """Servers that start remove each other's temporary tables in a folder that they share."""
    assert confined.pid is not None


async def test_a_private_server_that_is_ending_is_waited_for_and_started_anew(confined: PrivateServer) -> None:
    running = confined._process
    assert running is not None
    running.kill()
    running.wait()
    confined._process = ending = _sleeper()  # as a killed server whose threads still end
    async with MySqlEngine(confined, statement_limit_s=slowly(5.0)).session(PEOPLE) as session:
        assert "2" in await session.run("SELECT 1 + 1")
    assert ending.poll() is not None


def _sleeper() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "infinity"])


def _servers() -> set[int]:
    """The process ids of this process's mariadbd children."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = status.read_text().partition(") ")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if name.endswith("(mariadbd") and state != "Z" and int(parent) == os.getpid():
            found.add(int(status.parent.name))
    return found


async def test_errors_of_several_statements_are_those_of_one_text(engine: MySqlEngine) -> None:
    """As the published clients showed them at this server (mysql-connector 8.0.33 for v0.2, 9.7 for FC)."""
    async with engine.session(PEOPLE) as session:
        v02, fc = (StatementRunner(session, way, "people") for way in ("v0.2", "fc"))
        for runner in (v02, fc):
            assert (await runner.run("SELEC 1; SELECT 2")).endswith("near 'SELEC 1; SELECT 2' at line 1")
            assert (await runner.run("/* ; */; SELECT 2")).startswith("1064 (42000)")
            assert await runner.run("ROLLBACK TO s; SELECT 2") == "1305 (42000): SAVEPOINT s does not exist"
            assert await runner.run(";;") == "1065 (42000): Query was empty"
        assert await v02.run("SELECT 1; SELECT zz") == OUT_OF_SYNC
        assert await fc.run("SELECT 1; SELECT zz") == "1054 (42S22): Unknown column 'zz' in 'SELECT'"
        assert await fc.run("SELECT 1; SELECT 2; SELECT zz") == "[(1,)]"
        change = "UPDATE people SET age = '1'"
        assert await v02.run(f"{change}; UPDATE people SET zz = 1; COMMIT") == OUT_OF_SYNC
        assert await v02.run("SELECT COUNT(*) FROM people.people WHERE age = '1'") == "[(0,)]"
        assert await v02.run(f"START TRANSACTION; {change}; COMMIT") == OUT_OF_SYNC
        assert await v02.run("SELECT COUNT(*) FROM people WHERE age = '1'") == "[(2,)]"
