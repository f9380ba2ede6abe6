"""Names that differ in case, accents or blanks alone are different names on every database, and sort alike."""

import itertools
import logging
import math
import random
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from pydantic import BaseModel

from eval_client.report.report import report
from eval_client.store import migration
from eval_client.store.connection import StoreError, connect, runs, sqlite_url
from eval_client.store.pools import RowPools
from eval_client.store.records import Manifest, TaskRecord, Trial
from eval_client.store.runs import remove_run
from eval_client.store.store import Store
from eval_client.store.tables import endpoint_table, metadata, reply_table, run_table, summary_table, trial_table
from eval_client.store.trials.rows import TrialQuery, neighbours, read_trials
from eval_client.store.trials.scores import planned_scores
from eval_client.store.trials.trajectory import find_trial
from proctor.types import Summary

SETS, TASKS_OF_A_RUN, RUNS_OF_A_NAME = 90, 5, 6
FAMILIES = (
    ("ok", "OK", "Ok", "ok ", "ok  ", " ok", "ók", "o\u0301k", "ok\u200b", "ok\t", "ok\u00a0", "ok\n", "\uff4f\uff4b"),
    ("strasse", "STRASSE", "straße", "STRAẞE", "straſse", "strasse\r", "strasſe"),
    ("i", "I", "ı", "İ", "i\u0307", "í", "ï", "\u2170", "\u2071"),
    ("é", "e\u0301", "É", "e", "E", "ê", "\u0113", "ә"),
    ("\U0001f642", "\U0001f643", "\U0001f642 ", "\U0001f642\ufe0f", "\U0001f469\u200d\U0001f467", "\ufffd", "?"),
    ("שלום", "שָׁלוֹם", "\u200fשלום", "مرحبا", "مرحبًا", "\u202eabc", "abc", "ABC\u202c"),
    ("a" * 255, "A" * 255, "a" * 254 + " ", "a" * 254, "\U0001f642" * 255, "\U0001f642" * 254, "é" * 255, "E" * 255),
    ("\U0001d52c\U0001d528", "\U00010400", "\U00010428", "\U0010ffff", "\uffff", "\ue000", "\U00020000", "漢", "汉"),
    ("", " ", "  ", "\t", "\u3000", "%", "_", "\\", "\\%", "'", '"', "$1", ":x", "%s", "\x01", "\x7f"),
    ("s1", "s01", "S1", "s10", "s2", "s-2", "s_2", "s.2", "s 2", "ｓ2", "s²"),
)
"""Names that some database would take as equal, or sort in another order."""
AGENTS, TASKS = ("ok", "OK", "Ok", "o.k", "o-k", "o_k", "gpt-4", "GPT-4"), ("t", "T", "t1", "T1", "t-1", "t_1")


@pytest.fixture(scope="module")
def engines(
    postgresql_url: str, mariadb_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, sa.Engine]]:
    """A store in each database; PostgreSQL's sorts as a dictionary does."""
    owner = connect(postgresql_url)
    with owner.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        locale = "TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'en-US'"
        connection.execute(sa.text(f"CREATE DATABASE dictionary {locale}"))
    owner.dispose()
    made = {
        "sqlite": connect(sqlite_url(tmp_path_factory.mktemp("names"))),
        "postgresql": connect(owner.url.set(database="dictionary").render_as_string(hide_password=False)),
        "mariadb": connect(mariadb_url),
    }
    yield made
    for engine in made.values():
        engine.dispose()


@pytest.mark.postgresql
@pytest.mark.mariadb
def test_rows_written_at_random_give_equal_reports_on_all_databases(engines: dict[str, sa.Engine]) -> None:
    names = [
        name for number in range(SETS // TASKS_OF_A_RUN // RUNS_OF_A_NAME) for name in _spellings(f"nightly-{number}")
    ]
    told: dict[str, dict[str, Any]] = {name: {} for name in engines}
    for seed, name in enumerate(names):
        for engine in engines.values():
            _write(Store(engine, name), random.Random(seed))
    for name in names:
        for kind, engine in engines.items():
            told[kind][name] = _told(Store(engine, name), random.Random(name))
        assert told["mariadb"][name] == told["sqlite"][name], name
        assert told["postgresql"][name] == told["sqlite"][name], name
    for engine in engines.values():
        with engine.begin() as connection:
            connection.execute(run_table.update().values(created_at="2026-11-01T10:00:00+00:00"))
        assert [name for name, _, _ in runs(engine)] == sorted(names)


def _spellings(name: str) -> list[str]:
    return [
        name,
        name.upper(),
        name.capitalize(),
        name.replace("-", "_"),
        name.replace("-", "."),
        name.swapcase()[::-1],
    ]


def _write(store: Store, chance: random.Random) -> None:
    """A run of some pairs, with trials that have a score, a fault or neither, replies of judges and summaries."""
    agents, tasks = chance.sample(AGENTS, chance.randint(2, 3)), chance.sample(TASKS, TASKS_OF_A_RUN)
    samples = {task: _samples(chance) for task in tasks}
    keys = [
        (agent, task, epoch, sample)
        for task in tasks
        for agent in agents
        for epoch in range(chance.randint(1, 2))
        for sample in samples[task]
    ]
    trials = [
        Trial(id=number, agent=agent, task=task, sample=sample, epoch=epoch, cluster=samples[task][sample])
        for number, (agent, task, epoch, sample) in enumerate(keys)
    ]
    plan = {
        "agents": [{"name": agent, "builtin": "naive"} for agent in agents],
        "tasks": [{"name": task, "environment": "ltp"} for task in tasks],
    }
    records = {task: TaskRecord(environment="ltp", digest="d", samples=len(samples[task])) for task in tasks}
    store.create(Manifest(version="1", plan_path="p", plan=plan, identity={}, tasks=records), trials)
    mine = {"b_run": store.run}
    t = trial_table.c
    result = trial_table.update().where(t.run == sa.bindparam("b_run"), t.id == sa.bindparam("b_id"))
    with store.engine.begin() as connection:
        rows = [{**mine, "b_id": trial.id, **_result(chance)} for trial in trials]
        connection.execute(result.values({name: sa.bindparam(name) for name in _result(chance)}), rows)
        replies = [{"run": store.run, "trial": trial.id, **_reply(chance)} for trial in trials]
        connection.execute(reply_table.insert(), replies)
    for agent, task in itertools.product(agents, tasks):
        if chance.random() < 0.3:
            store.write_summary(agent, task, 1, Summary(primary=agent, metrics={agent: 0.5}))


def _samples(chance: random.Random) -> dict[str, str]:
    """Some samples, mostly alike, with their clusters."""
    ids = {
        *chance.sample(families := chance.choice(FAMILIES), min(len(families), 5)),
        chance.choice(chance.choice(FAMILIES)),
    }
    clusters = chance.choice(FAMILIES)
    return {sample: sample if chance.random() < 0.5 else chance.choice(clusters) or "c" for sample in sorted(ids)}


def _result(chance: random.Random) -> dict[str, Any]:
    kind = chance.choice(("scored", "scored", "fault", "open"))
    cause = chance.choice(("", "why " * 400)) + chance.choice(chance.choice(FAMILIES)) or "none"
    return {
        "attempts": 0 if kind == "open" else 1,
        "reason": {"scored": "completed", "fault": "task_error", "open": None}[kind],
        "score": chance.choice((0.0, 1.0, 0.5, 1 / 3, chance.random())) if kind == "scored" else None,
        "cause": cause if kind == "fault" else None,
        "turns": None if kind == "open" else chance.randint(1, 9),
        "ended_at": chance.choice((None, "2026-11-01T10:00:00+00:00", "2026-11-01T10:00:00.5+00:00")),
    }


def _reply(chance: random.Random) -> dict[str, Any]:
    model = chance.choice(chance.choice(FAMILIES))
    counts = {"number": 0, "prompt_tokens": chance.randint(1, 99), "completion_tokens": 1, "tries": 1}
    return {**counts, "key": "k", "text": '"yes"', "model": model, "bought": True, "usable": True}


def _told(store: Store, chance: random.Random) -> Any:
    """All that reports, the viewer and clients read of a run, but for the order of what has none."""
    trials = list(store.trials())
    tasks, agents = {trial.task: trial.agent for trial in trials}, {trial.agent for trial in trials}
    one = chance.choice(trials)
    assert find_trial(store, one.agent, one.task, one.sample, one.epoch) == one.id
    query = TrialQuery(sort=chance.choice(("", "-")) + chance.choice(("agent", "task", "sample", "ended_at")), size=500)
    whole = [row.id for row in read_trials(store, query).items]
    assert [row.id for row in _pages(store, TrialQuery(sort=query.sort, size=1 + len(trials) // 3))] == whole
    return _rounded(
        {
            "report": report(store).model_dump(exclude={"pairs": {"__all__": {"helpers"}}}),
            "totals": store.pair_totals(),
            "helpers": sorted(store.helper_costs(), key=repr),
            "causes": store.causes(),
            "summaries": store.summaries(),
            "clusters": {task: store.cluster_of(task) for task in tasks},
            "scores": planned_scores(store, list(agents)),
            "means": {
                pair: sorted(zip(found.means, found.clusters or found.means, strict=True))
                for pair, found in store.sample_means().items()
            },
            "pending": store.pending(),
            "rows": list(store.trial_rows()),
            "sorted": whole,
            "beside": neighbours(store, query, one.id),
        }
    )


def _pages(store: Store, query: TrialQuery) -> Iterator[Any]:
    page = read_trials(store, query)
    yield from page.items
    while page.next:
        page = read_trials(store, query.model_copy(update={"after": page.next}))
        yield from page.items


def _rounded(value: Any) -> Any:
    """Without the last digits of sums, which databases add up in another order."""
    match value:
        case float():
            return value if math.isinf(value) else round(value, 12)
        case BaseModel():
            return _rounded(value.model_dump())
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case list() | tuple():
            return [_rounded(each) for each in value]
    return value


@pytest.fixture
def old(mariadb_url: str) -> Iterator[Store]:
    """A run in tables that an earlier version made: they have the server's own collation."""
    name, engine = f"old_{secrets.token_hex(4)}", connect(mariadb_url)
    with engine.begin() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name} COLLATE utf8mb4_general_ci"))
    engine.dispose()
    store = Store(connect(engine.url.set(database=name).render_as_string(hide_password=False)), "nightly")
    metadata.create_all(store.engine)
    with store.engine.begin() as connection:
        for table in metadata.tables:
            change = "CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"
            connection.execute(sa.text(f"ALTER TABLE {table} {change}"))
    trials = [
        {"run": store.run, "id": number, "agent": agent, "task": "t", "sample": sample, "epoch": 0, "attempts": 1}
        for number, (agent, sample) in enumerate((("ok", "a"), ("OK", "a"), ("ok", "A"), ("OK", "a ")))
    ]
    plan = {"agents": [{"name": "ok", "builtin": "naive"}], "tasks": [{"name": "t", "environment": "ltp"}]}
    manifest = Manifest(version="1", plan_path="p", plan=plan, identity={})
    run = {"id": store.run, "schema_version": 3, "created_at": "2026", "state": "finished", "fence": 1}
    with store.engine.begin() as connection:
        connection.execute(run_table.insert(), {**run, "manifest": manifest.model_dump_json()})
        connection.execute(trial_table.insert(), trials)
        connection.execute(
            summary_table.insert(), {"run": store.run, "agent": "ok", "task": "t", "scored": 2, "summary": "{}"}
        )
    yield store
    store.engine.dispose()


@pytest.mark.mariadb
def test_a_store_of_an_earlier_version_is_converted_by_the_next_resume(
    old: Store, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    assert [pair.planned for pair in old.pair_totals()] == [4], "as the earlier version read it"
    old.pair_totals()
    (warning,) = (record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)
    assert "ALTER TABLE proctor_trial CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin" in warning
    other = Store(old.engine, "NIGHTLY")
    assert not other.exists()
    with pytest.raises(StoreError, match="no run 'NIGHTLY'"):
        other.manifest()
    with pytest.raises(StoreError, match="no run 'NIGHTLY'"):
        remove_run(other, tmp_path)
    old.upgrade()
    old.upgrade()
    assert [(pair.agent, pair.planned) for pair in old.pair_totals()] == [("ok", 2), ("OK", 2)]
    assert old.cluster_of("t").keys() == {"a", "A", "a "}
    other.create(old.manifest(), [])
    assert {name for name, _, _ in runs(old.engine)} == {"nightly", "NIGHTLY"}
    with old.engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE proctor_trial DROP COLUMN cluster"))
    old.upgrade()
    assert migration.loose_tables(old.engine) == [], "a column that is added later compares exactly too"


@pytest.mark.mariadb
def test_what_the_statements_of_the_warning_convert_is_whole(old: Store, caplog: pytest.LogCaptureFixture) -> None:
    old.pair_totals()
    statements = caplog.records[-1].getMessage().partition("as their owner: ")[2].split("; ")
    assert len(statements) == len(metadata.tables)
    with old.engine.begin() as connection:
        for statement in statements:
            connection.execute(sa.text(statement))
    assert migration.loose_tables(old.engine) == []


@pytest.mark.mariadb
def test_an_account_that_may_not_convert_it_is_told(old: Store) -> None:
    account = f"u{secrets.token_hex(4)}"
    with old.engine.begin() as connection:
        connection.execute(sa.text(f"CREATE USER {account}@localhost"))
        connection.execute(sa.text(f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON *.* TO {account}@localhost"))
    poor = Store(connect(old.engine.url.set(username=account).render_as_string()), old.run)
    with pytest.raises(StoreError, match=r"let its account .* alter .*proctor_trial.* \(as their owner\)"):
        poor.upgrade()
    poor.engine.dispose()


@pytest.mark.mariadb
def test_every_text_of_every_table_compares_exactly(mariadb_url: str) -> None:
    engine = connect(mariadb_url)
    Store(engine, "any").create(Manifest(version="1", plan_path="p", plan={}, identity={}), [])
    RowPools(engine).change("a", lambda pool, _: pool)
    query = "SELECT DISTINCT collation_name FROM information_schema.columns WHERE table_schema = DATABASE()"
    with engine.connect() as connection:
        found = set(connection.execute(sa.text(query)).scalars())
    assert sa.inspect(engine).has_table(endpoint_table.name)
    assert found - {None} == {"utf8mb4_nopad_bin"}
    engine.dispose()


@pytest.mark.mariadb
def test_tables_have_transactions_whatever_the_servers_default(mariadb_url: str) -> None:
    server, name = connect(mariadb_url), f"engines_{secrets.token_hex(4)}"
    with server.begin() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    url = server.url.set(database=name).update_query_dict({"init_command": "SET default_storage_engine=MyISAM"})
    engine = connect(url.render_as_string(hide_password=False))
    Store(engine, "any").create(Manifest(version="1", plan_path="p", plan={}, identity={}), [])
    RowPools(engine).change("a", lambda pool, _: pool)
    query = "SELECT @@default_storage_engine, engine FROM information_schema.tables WHERE table_schema = DATABASE()"
    with engine.connect() as connection:
        assert set(map(tuple, connection.execute(sa.text(query)))) == {("MyISAM", "InnoDB")}
    engine.dispose()
    server.dispose()


@pytest.mark.mariadb
def test_a_server_without_such_a_collation_is_refused(mariadb_url: str) -> None:
    engine = connect(mariadb_url)
    engine.connect().close()
    engine.dialect.server_version_info = (10, 1, 48)
    with pytest.raises(StoreError, match=r"MariaDB 10\.1\.48 .*use MariaDB 10\.2\.2"):
        Store(engine, "any").upgrade()
    engine.dispose()
