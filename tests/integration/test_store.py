"""The store and its writer: durable before acknowledged, fenced, held up by trouble but never losing anything."""

import asyncio
import contextlib
import fcntl
import gc
import secrets
import sqlite3
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from eval_client.cli.doctor import machine
from eval_client.plan.plan import Plan
from eval_client.store import journal as journal_module
from eval_client.store import lock
from eval_client.store.connection import Fenced, StoreError, connect, runs, sqlite_url
from eval_client.store.journal import Cost, Journal, JournalClosed, WriteRefused
from eval_client.store.lock import is_worked_on, sole_client
from eval_client.store.planned_trials import PlannedTrials
from eval_client.store.records import Manifest, TaskRecord, Trial, Turn
from eval_client.store.store import Store
from eval_client.store.tables import SETTLED, attempt_table, trial_table
from eval_client.store.trials.scores import trial_facts
from proctor.types import Action, Finish, FinishReason, Message, Observation, Usage
from task_server.wire.messages import Act
from tests.database_servers import DatabaseServer, mariadb, postgresql
from tests.pace import slowly
from tests.support import unscored

OBSERVATION = Observation(messages=(Message(role="user", content="2 + 2?"),))


def turn(number: int, tokens: int = 10) -> Turn:
    return Turn(
        turn=number,
        digest=OBSERVATION.digest(),
        observation=OBSERVATION.model_dump_json(),
        reply=Act(action=Action(content=f"answer {number}")),
        prompt_tokens=tokens,
        completion_tokens=1,
        tries=1,
    )


def trials(count: int) -> list[Trial]:
    return [Trial(id=n, agent="a" if n % 2 else "b", task="t", sample=f"s{n}", epoch=0) for n in range(count)]


def new_store(url: str) -> Store:
    made = Store(connect(url), f"run-{secrets.token_hex(4)}")
    record = TaskRecord(environment="e", digest="d", samples=4)
    made.create(Manifest(version="1", plan_path="p", plan={}, identity={}, tasks={"t": record}), trials(4))
    return made


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    made = new_store(database_url)
    yield made
    made.engine.dispose()


def test_runs_of_the_same_second_are_listed_in_the_order_in_which_they_began(database_url: str) -> None:
    stores = [new_store(database_url) for _ in range(6)]
    mine = [store.run for store in stores]
    listed = [name for name, _, _ in runs(stores[0].engine)]
    for store in stores:
        store.engine.dispose()
    assert [name for name in listed if name in mine] == mine


def test_the_trials_of_every_pair_are_written_with_ids_that_rise(database_url: str) -> None:
    agents = [{"name": name, "builtin": "naive"} for name in "abc"]
    assignments = [{"agents": ["a", "b"], "tasks": ["t", "u"]}, {"agents": ["c"], "tasks": ["u"]}]
    tasks = [{"name": name, "environment": "db"} for name in "tu"]
    plan = Plan.model_validate({"epochs": 2, "agents": agents, "tasks": tasks, "assignments": assignments})
    planned = PlannedTrials(plan, {"t": {"x": "w", "y": "w"}, "u": {"z": "z"}})
    store = Store(connect(database_url), f"run-{secrets.token_hex(4)}")
    manifest = Manifest(version="1", plan_path="p", plan={}, identity={})
    store.create(manifest, planned)
    assert list(store.trials()) == list(planned)
    assert [trial.id for trial in planned] == list(range(14))
    waiting = {pair: len(ids) for pair, ids in store.pending().items()}
    assert waiting == Counter((trial.agent, trial.task) for trial in planned)
    store.engine.dispose()


def test_trials_are_written_by_the_batch_whatever_their_names_are(database_url: str) -> None:
    store = Store(connect(database_url), f"run-{secrets.token_hex(4)}")
    names = ("it's", 'a "b"', "back\\slash", "\\u0041", "Größe 漢字 🙂", "%s %(x)s :y $1", "[{", "null", " ")
    planned = [
        Trial(id=number, agent=name, task=name[::-1], sample=name, epoch=number, attempts=2, cluster=cluster)
        for number, (name, cluster) in enumerate((name, cluster) for name in names for cluster in (None, name))
    ]
    row_by_row = []
    sa.event.listen(store.engine, "before_cursor_execute", lambda *told: row_by_row.append(told[-1]))
    store.create(Manifest(version="1", plan_path="p", plan={}, identity={}), planned)
    assert list(store.trials()) == planned
    assert store.engine.dialect.name != "postgresql" or not any(row_by_row), "its driver sends each row by itself"
    store.engine.dispose()


def test_the_pending_trials_of_a_pair_begin_with_those_that_have_attempts(database_url: str) -> None:
    store = Store(connect(database_url), f"run-{secrets.token_hex(4)}")
    planned = [trial.model_copy(update={"attempts": int(trial.id in (5, 9, 14))}) for trial in trials(20)]
    store.create(Manifest(version="1", plan_path="p", plan={}, identity={}), planned)
    t = trial_table.c
    with store.engine.begin() as connection:
        mine = trial_table.update().where(t.run == store.run)
        connection.execute(mine.where(t.id == 3).values(score=1.0))
        connection.execute(mine.where(t.id.in_([2, 4])).values(holder=SETTLED))
        connection.execute(mine.where(t.id == 0).values(reason=FinishReason.AGENT_ERROR.value))
    found = {pair: list(ids) for pair, ids in store.pending().items()}
    assert found == {("a", "t"): [5, 9, 1, 7, 11, 13, 15, 17, 19], ("b", "t"): [14, 6, 8, 10, 12, 16, 18, 0]}
    assert list(found) == [("b", "t"), ("a", "t")]
    assert store.trial(14) == planned[14]
    store.engine.dispose()


def test_any_number_of_trials_is_played_again_and_read(database_url: str) -> None:
    store, many = (
        Store(connect(database_url), f"run-{secrets.token_hex(4)}"),
        70_000,
    )  # a statement of PostgreSQL has 65,535 values
    store.create(Manifest(version="1", plan_path="p", plan={}, identity={}), trials(many))
    store.play_again(range(1, many), store.take_over())
    assert sum(map(len, store.pending().values())) == many - 1
    assert [trial.id for trial in store.trials()] == list(range(many))
    store.engine.dispose()


@pytest.fixture
async def journal(store: Store) -> AsyncIterator[Journal]:
    made = Journal(store, store.take_over())
    yield made
    await made.close()


def scored(score: float) -> Finish:
    return Finish(reason=FinishReason.COMPLETED, score=score)


async def test_what_is_acknowledged_can_be_read_from_another_connection(store: Store, journal: Journal) -> None:
    trial = unscored(store)[0]
    await journal.begin(trial, 1, 0, "f" * 32)
    await journal.turn(trial, 0, turn(1))
    elsewhere = Store(connect(store.engine.url.render_as_string(hide_password=False)), store.run)
    assert elsewhere.journal(trial.id) == (0, [turn(1)], Usage())
    assert elsewhere.last_session(trial.id) == "f" * 32
    assert {trial.id for trial in unscored(elsewhere) if trial.attempts} == {trial.id}
    elsewhere.engine.dispose()


async def test_a_score_is_kept_to_its_last_digit(store: Store, journal: Journal) -> None:
    trial = unscored(store)[0]
    await journal.finish(trial, 1, "w", scored(1 / 6), Cost(1, Usage(1, 1), 1 / 7))
    (row,) = (row for row in store.trial_rows() if row["id"] == trial.id)
    assert (row["score"], row["seconds"]) == (1 / 6, 1 / 7)


async def test_a_scored_trial_is_settled_and_an_unscored_one_is_owed_again(store: Store, journal: Journal) -> None:
    first, second, *_ = unscored(store)
    for trial, finish in ((first, scored(1.0)), (second, Finish.fault(FinishReason.TASK_ERROR, "gone"))):
        await journal.begin(trial, 1, 0, "0" * 32)
        await journal.finish(trial, 1, "w", finish, Cost(2, Usage(20, 2), 0.5))
    assert [trial.id for trial in unscored(store)] == [1, 2, 3]
    assert store.last_session(first.id) is None
    assert store.causes() == {(second.agent, "t"): {"gone": 1}}


async def test_each_sample_counts_once_in_the_means_and_only_shared_clusters_are_named(store: Store) -> None:
    own = [Trial(id=n, agent="a", task="own", sample=f"s{n}", epoch=0, cluster=f"s{n}") for n in range(10, 14)]
    tied = [Trial(id=20 + n, agent="a", task="tied", sample=f"s{n // 2}", epoch=n % 2, cluster="c") for n in range(6)]
    scores = dict(
        zip([trial.id for trial in own + tied], (0.1, 0.7, None, 0.2, 0.1, 0.2, None, 0.3, None, None), strict=True)
    )
    with store.engine.begin() as connection:
        connection.execute(trial_table.insert(), [{"run": store.run, **trial.model_dump()} for trial in own + tied])
        for trial, score in scores.items():
            connection.execute(trial_table.update().where(trial_table.c.id == trial).values(score=score))
    means = store.sample_means()
    assert means.keys() == {("a", "own"), ("a", "tied")}
    assert sorted(means["a", "own"].means) == [0.1, 0.2, 0.7]
    assert means["a", "own"].clusters == []
    assert means["a", "tied"] == ([pytest.approx(0.15), 0.3], ["c", "c"], [(2, 0), (1, 0)])


async def test_a_final_row_is_never_overwritten(store: Store, journal: Journal) -> None:
    trial = unscored(store)[0]
    await journal.begin(trial, 1, 0, "0" * 32)
    await journal.finish(trial, 1, "w", scored(1.0), Cost(1, Usage(1, 1), 1.0))
    await journal.finish(trial, 1, "w", scored(0.0), Cost(9, Usage(9, 9), 9.0))
    assert [row["score"] for row in store.trial_rows() if row["id"] == trial.id] == [1.0]


async def test_a_journal_begun_anew_counts_what_the_old_one_paid(store: Store, journal: Journal) -> None:
    trial = unscored(store)[0]
    await journal.begin(trial, 1, 0, "0" * 32)
    await journal.turn(trial, 0, turn(1))
    await journal.turn(trial, 0, turn(2))
    await journal.end(trial, 1, "diverged", "why", "w")
    await journal.begin(trial, 2, 1, "1" * 32)
    await journal.turn(trial, 1, turn(1))
    assert store.journal(trial.id) == (1, [turn(1)], Usage(20, 2))
    assert store.spent(store.pair_totals()) == {trial.agent: Usage(30, 3)}


async def test_a_diverged_attempt_that_was_the_last_leaves_a_new_journal_to_resume_with(
    store: Store, journal: Journal
) -> None:
    ended, given_up, *_ = unscored(store)
    fault = Finish.fault(FinishReason.TASK_ERROR, "why")
    for trial in (ended, given_up):
        await journal.begin(trial, 1, 0, f"{trial.id:032}")
        await journal.turn(trial, 0, turn(1))
    await journal.finish(ended, 1, "w", fault, Cost(1, Usage(10, 1), 1.0), outcome="diverged")
    await journal.end(given_up, 1, "diverged", "why", "w")
    await journal.finish(given_up, 1, None, fault, Cost(1, Usage(10, 1), 1.0))
    assert store.journal(ended.id) == store.journal(given_up.id) == (1, [], Usage(10, 1))


async def test_the_same_turn_is_journalled_once(store: Store, journal: Journal) -> None:
    trial = unscored(store)[0]
    await journal.begin(trial, 1, 0, "0" * 32)
    await journal.turn(trial, 0, turn(1))
    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        await journal.turn(trial, 0, turn(1))


async def test_one_bad_write_does_not_take_its_group_down(store: Store, journal: Journal) -> None:
    first, second, *_ = unscored(store)
    await journal.begin(first, 1, 0, "0" * 32)
    await journal.turn(first, 0, turn(1))
    outcomes = await asyncio.gather(
        journal.turn(first, 0, turn(1)), journal.turn(second, 0, turn(1)), return_exceptions=True
    )
    assert isinstance(outcomes[0], Exception)
    assert outcomes[1] is None
    assert len(store.journal(second.id)[1]) == 1


async def test_counts_of_any_size_are_stored_and_added_up(store: Store, journal: Journal) -> None:
    trial, other, *_ = unscored(store)
    await journal.begin(trial, 1, 0, "0" * 32)
    await asyncio.gather(*(journal.turn(trial, 0, turn(number, 2**53)) for number in range(1, 1026)))
    await journal.begin(other, 1, 0, "1" * 32)
    await journal.turn(other, 0, turn(1, 3 * 10**9))
    assert store.spent(store.pair_totals()) == {
        trial.agent: Usage(1025 * 2**53, 1025),
        other.agent: Usage(3 * 10**9, 1),
    }
    await journal.finish(trial, 1, "w", scored(1.0), Cost(1025, Usage(1025 * 2**53, 1025), 1.0))
    assert next(pair for pair in store.pair_totals() if pair.agent == trial.agent).prompt_tokens == 2**63


async def test_what_was_cached_and_thought_is_added_up_over_journals_and_trials(store: Store, journal: Journal) -> None:
    diverged, over, *_ = unscored(store)
    told = turn(1).model_copy(update={"cached_tokens": 6, "reasoning_tokens": 1})
    await journal.begin(diverged, 1, 0, "0" * 32)
    await journal.turn(diverged, 0, told)
    await journal.end(diverged, 1, "diverged", "why", "w")
    await journal.begin(diverged, 2, 1, "1" * 32)
    await journal.turn(diverged, 1, told)
    paid = Usage(100, 10, 60, 7, billed_tokens=110, billed_money=0.5)
    await journal.finish(over, 1, "w", scored(1.0), Cost(1, paid, 1.0))
    assert store.journal(diverged.id) == (1, [told], Usage(10, 1, 6, 1))
    assert store.spent(store.pair_totals()) == {
        diverged.agent: Usage(20, 2, 12, 2),
        over.agent: paid,
    }
    assert [pair.tokens() for pair in store.pair_totals() if pair.agent == over.agent] == [paid]
    assert [trial.tokens for trial in trial_facts(store)[over.agent, "t"] if trial.score is not None] == [paid]


async def test_trials_and_attempts_keep_their_end(store: Store, journal: Journal) -> None:
    lost, over, *_ = unscored(store)
    for trial in (lost, over):
        await journal.begin(trial, 1, 0, f"{trial.id:032}")
    await journal.end(lost, 1, "lost", "why", "w")
    await journal.finish(over, 1, "w", scored(1.0), Cost(1, Usage(1, 1), 1.0))
    ended = {row["id"]: row["ended_at"] for row in store.trial_rows()}
    assert [trial for trial, at in ended.items() if at] == [over.id]
    query = sa.select(attempt_table.c.started_at, attempt_table.c.ended_at).where(attempt_table.c.run == store.run)
    with store.engine.connect() as connection:
        rows = connection.execute(query).all()
    assert len(rows) == 2
    assert all(datetime.fromisoformat(row.started_at) <= datetime.fromisoformat(row.ended_at) for row in rows)


async def test_whatever_else_a_write_raises_reaches_its_writer_and_later_writes_are_made(
    store: Store, journal: Journal
) -> None:
    first, second, *_ = unscored(store)
    await journal.begin(first, 1, 0, "0" * 32)
    with pytest.raises((OverflowError, WriteRefused)):
        await asyncio.wait_for(journal.turn(first, 0, turn(1, 10**23)), slowly(10))
    await asyncio.wait_for(journal.begin(second, 1, 0, "1" * 32), slowly(10))


@pytest.mark.mariadb
async def test_a_row_that_is_larger_than_the_server_takes_is_refused_with_the_variable(mariadb_url: str) -> None:
    store = new_store(mariadb_url)
    with store.engine.connect() as connection:
        usual = connection.exec_driver_sql("SELECT @@GLOBAL.max_allowed_packet").scalar_one()
        connection.exec_driver_sql("SET GLOBAL max_allowed_packet = 1048576")
    store.engine.dispose()
    assert machine.store(mariadb_url).id == "store-rows"
    journal = Journal(store, store.take_over())
    first, second, *_ = unscored(store)
    await journal.begin(first, 1, 0, "0" * 32)
    large = turn(1).model_copy(update={"reply": Act(action=Action(content='"' * 700_000))})
    written = asyncio.gather(
        journal.turn(first, 0, large), journal.begin(second, 1, 0, "1" * 32), return_exceptions=True
    )
    refused, begun = await asyncio.wait_for(written, slowly(20))
    assert isinstance(refused, WriteRefused)
    assert "max_allowed_packet of the server is 1,048,576: raise that variable" in str(refused)
    assert begun is None
    await asyncio.wait_for(journal.turn(first, 0, turn(1)), slowly(20))
    await journal.close()
    with store.engine.connect() as connection:
        connection.exec_driver_sql(f"SET GLOBAL max_allowed_packet = {usual}")
    store.engine.dispose()
    assert machine.store(mariadb_url).id == "store"


def test_several_clients_may_give_a_store_its_new_columns_at_once(store: Store) -> None:
    with store.engine.begin() as connection:
        for column in ("digest", "version"):
            connection.execute(sa.text(f"ALTER TABLE proctor_attempt DROP COLUMN {column}"))
    url = store.engine.url.render_as_string(hide_password=False)
    others = [Store(connect(url), store.run) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(Store.upgrade, others))
    for other in others:
        other.engine.dispose()


async def test_a_client_that_was_taken_over_writes_nothing_more(store: Store, journal: Journal) -> None:
    trial = unscored(store)[0]
    store.take_over()
    with pytest.raises(Fenced):
        await journal.begin(trial, 1, 0, "0" * 32)
    assert {trial.id for trial in unscored(store) if trial.attempts} == set()


async def test_a_locked_store_holds_writers_up_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_store(sqlite_url(tmp_path))
    monkeypatch.setattr(journal_module, "RETRY_S", 0.01)
    troubles: list[str | None] = []
    told = asyncio.Event()

    def trouble(what: str | None) -> None:
        troubles.append(what)
        told.set()

    blocker = sqlite3.connect(tmp_path / "run.sqlite", isolation_level=None)
    store.engine.dispose()
    impatient = Store(connect(str(store.engine.url) + "?timeout=0.01"), store.run)
    with impatient.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout=10")
    journal = Journal(impatient, impatient.take_over(), trouble)
    blocker.execute("BEGIN IMMEDIATE")
    writing = asyncio.create_task(journal.begin(unscored(store)[0], 1, 0, "0" * 32))
    await asyncio.wait_for(told.wait(), slowly(10))
    assert not writing.done()
    blocker.execute("ROLLBACK")
    blocker.close()
    await asyncio.wait_for(writing, slowly(10))
    await journal.close()
    assert "locked" in str(troubles[0])
    assert troubles[-1] is None
    assert {trial.id for trial in unscored(store) if trial.attempts} == {0}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # PyMySQL leaves refused sockets open
@pytest.mark.parametrize(
    "serve",
    [
        pytest.param(postgresql, marks=pytest.mark.postgresql),
        pytest.param(mariadb, marks=pytest.mark.mariadb),
    ],
)
async def test_a_killed_server_holds_writers_up_and_loses_nothing(
    serve: Callable[[], contextlib.AbstractContextManager[DatabaseServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "RETRY_S", 0.05)
    with serve() as server:
        store = new_store(server.url)
        journal = Journal(store, store.take_over())
        trial = unscored(store)[0]
        await journal.begin(trial, 1, 0, "0" * 32)
        writing = [asyncio.create_task(journal.turn(trial, 0, turn(number))) for number in range(1, 1501)]
        await writing[0]
        server.kill()
        await asyncio.to_thread(server.start)
        await asyncio.wait_for(asyncio.gather(*writing), slowly(60))
        assert [kept.turn for kept in store.journal(trial.id)[1]] == list(range(1, 1501))
        await journal.close()
        store.engine.dispose()
    gc.collect()  # else the sockets are found in the middle of a later test


async def test_a_closed_journal_refuses_writes(store: Store) -> None:
    journal = Journal(store, store.take_over())
    await journal.close()
    with pytest.raises(JournalClosed):
        await journal.begin(unscored(store)[0], 1, 0, "0" * 32)


async def test_standing_and_summaries_come_from_rows_not_transcripts(store: Store, journal: Journal) -> None:
    for trial, score in zip(unscored(store), (1.0, 0.0, 0.5, None), strict=True):
        await journal.begin(trial, 1, 0, "0" * 32)
        finish = Finish.fault(FinishReason.AGENT_ERROR, "away") if score is None else scored(score)
        await journal.finish(trial, 1, "w", finish, Cost(3, Usage(30, 3), 1.5))
    b, a = store.pair_totals()
    assert (b.agent, b.planned, b.scored, b.unscored, b.mean) == ("b", 2, 2, 0, 0.75)
    assert (a.agent, a.scored, a.unscored, a.mean, a.turns) == ("a", 1, 1, 0.0, 6)
    assert a.reasons == {"completed": 1, "agent_error": 1}


def test_a_run_is_created_once(store: Store) -> None:
    with pytest.raises(StoreError, match="exists already"):
        store.create(store.manifest(), [])
    assert store.run in [name for name, _, _ in runs(store.engine)]


def test_a_second_client_is_refused_while_the_first_works(store: Store) -> None:
    with sole_client(store), pytest.raises(StoreError, match="another client"), sole_client(store):
        pass
    with sole_client(store):
        pass


def test_a_look_at_the_lock_of_a_file_keeps_no_client_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A viewer that looks whether a run is played holds the lock for a moment."""
    monkeypatch.setattr(lock, "PROBE_S", slowly(30))
    store = Store(connect(sqlite_url(tmp_path)), "run")
    with sole_client(store):
        assert is_worked_on(store)
    assert not is_worked_on(store)
    looking = tmp_path.joinpath("run.sqlite.run.lock").open()
    fcntl.flock(looking, fcntl.LOCK_EX)
    end = threading.Timer(0.1, looking.close)
    end.start()
    with sole_client(store):
        end.join()


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    (tmp_path / "run.sqlite").write_bytes(b"this is not a database at all, not even a little" * 100)
    with pytest.raises(StoreError, match="can't be read"):
        Store(connect(sqlite_url(tmp_path)), "run").manifest()


def test_a_run_stopped_before_it_began_is_told(tmp_path: Path) -> None:
    (tmp_path / "run.sqlite").touch()
    with pytest.raises(StoreError, match="before it began"):
        Store(connect(sqlite_url(tmp_path)), "run").manifest()
