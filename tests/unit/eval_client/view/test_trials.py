"""The trials that a filter selects: as plain Python selects them, in order, each once."""

import random
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.records import Manifest, Trial
from eval_client.store.store import Store
from eval_client.store.tables import trial_table
from eval_client.store.trials.rows import SORTS, QueryError, TrialQuery, TrialRow, neighbours, read_trials, trial_query

NAMES = ("s%{}_A", "s-{}-A")
REASONS = ("completed", "turn_limit", "task_error", None)


@pytest.fixture
def store(tmp_path: Path, drawn: Path) -> Store:
    """120 trials with drawn columns, many of them equal or empty; the test's own."""
    shutil.copytree(drawn, tmp_path, dirs_exist_ok=True)
    return Store(connect(sqlite_url(tmp_path)), "first")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `store` is a copy of."""
    folder = tmp_path_factory.mktemp("drawn")
    drawn = random.Random(7)
    made = Store(connect(sqlite_url(folder)), "first")
    trials = [
        Trial(id=n, agent=drawn.choice("ab"), task=drawn.choice("xy"), sample=NAMES[n % 2].format(n % 9), epoch=n % 2)
        for n in range(120)
    ]
    made.create(Manifest(version="1", plan_path="p", plan={}, identity={}), trials)
    with made.engine.begin() as connection:
        for trial in trials:
            reason = drawn.choice(REASONS)
            scored = reason in ("completed", "turn_limit")
            values = {
                "reason": reason,
                "score": drawn.choice((0.0, 0.1, 0.5, 1.0)) if scored else None,
                "cause": drawn.choice(("No route", "lost 100%")) if reason == "task_error" else None,
                "turns": drawn.randrange(4) if reason else None,
                "ended_at": f"2026-01-0{drawn.randrange(1, 5)}T00:00:00+00:00" if reason else None,
            }
            connection.execute(trial_table.update().where(trial_table.c.id == trial.id).values(**values))
    made.engine.dispose()
    return folder


def walk(store: Store, query: TrialQuery) -> list[TrialRow]:
    rows, after = list[TrialRow](), query.after
    while True:
        page = read_trials(store, query.model_copy(update={"after": after}))
        rows += page.items
        if page.next is None:
            return rows
        assert len(page.items) == query.size
        after = page.next


FILTERS: list[tuple[dict[str, str], Callable[[TrialRow], bool]]] = [
    ({}, lambda row: True),
    ({"agent": "a"}, lambda row: row.agent == "a"),
    ({"task": "y"}, lambda row: row.task == "y"),
    ({"sample": "%3_a"}, lambda row: "%3_a" in row.sample.lower()),
    ({"reason": "turn_limit"}, lambda row: row.reason == "turn_limit"),
    ({"reason": "none"}, lambda row: row.reason is None),
    ({"score": "none"}, lambda row: row.score is None),
    ({"score": "0.5"}, lambda row: row.score == 0.5),
    ({"score": "0.1..0.5"}, lambda row: row.score in (0.1, 0.5)),
    ({"score": "..0.1"}, lambda row: row.score in (0.0, 0.1)),
    ({"score": "0.5.."}, lambda row: row.score in (0.5, 1.0)),
    ({"cause": "100%"}, lambda row: row.cause == "lost 100%"),
    (
        {"agent": "b", "task": "x", "sample": "s", "reason": "completed", "score": "0..0.5"},
        lambda row: (row.agent, row.task, row.reason) == ("b", "x", "completed") and (row.score or 0) <= 0.5,
    ),
]


@pytest.mark.parametrize(("given", "selects"), FILTERS)
def test_a_filter_selects_what_plain_python_selects(
    store: Store, given: dict[str, str], selects: Callable[[TrialRow], bool]
) -> None:
    every = read_trials(store, TrialQuery(size=500)).items
    found = walk(store, trial_query({**given, "size": "7"}))
    wanted = [row.id for row in every if selects(row)]
    assert wanted
    assert [row.id for row in found] == wanted
    assert read_trials(store, trial_query(given)).total == len(wanted)


@pytest.mark.parametrize("name", SORTS)
@pytest.mark.parametrize("minus", ["", "-"])
def test_each_sort_meets_each_trial_once_with_empty_values_last(store: Store, name: str, minus: str) -> None:
    rows = walk(store, TrialQuery(sort=minus + name, size=7))
    assert sorted(row.id for row in rows) == list(range(120))
    values = [getattr(row, name) for row in rows]
    there = [value for value in values if value is not None]
    assert values[len(there) :] == [None] * (120 - len(there))
    assert there == sorted(there, reverse=bool(minus))
    for before, after in pairwise(rows):
        assert getattr(before, name) != getattr(after, name) or before.id < after.id


def test_rows_that_come_and_go_while_pages_are_turned_leave_the_others_neither_lost_nor_repeated(store: Store) -> None:
    first = read_trials(store, TrialQuery(size=50))
    with store.engine.begin() as connection:
        connection.execute(sa.delete(trial_table).where(trial_table.c.id == 3))
        more = {"run": "first", "agent": "a", "task": "x", "sample": "late", "epoch": 0, "attempts": 0}
        connection.execute(trial_table.insert(), {**more, "id": 120})
    rest = walk(store, TrialQuery(size=20, after=first.next or ""))
    assert [row.id for row in (*first.items, *rest)] == list(range(121))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"size": "0"}, "size: '0' is no number from 1 to 500"),
        ({"size": "501"}, "size: '501'"),
        ({"sort": "-finish"}, "sort: '-finish' is none of id, agent"),
        ({"reason": "tired"}, "reason: 'tired' is none of completed"),
        ({"score": "much"}, "score: 'much' is no score"),
        ({"score": "nan"}, "score: 'nan' is no score"),
        ({"agent": "a\0"}, "agent: at most 255 characters, without NUL"),
        ({"sample": "a" * 256}, "sample: at most 255"),
        ({"after": "!"}, "after: this is no cursor"),
        ({"after": "-1"}, "after: this is no cursor"),
        ({"after": "99999999999"}, "after: this is no cursor"),
    ],
)
def test_a_bad_parameter_is_refused_by_its_name(given: dict[str, str], told: str) -> None:
    with pytest.raises(QueryError) as refused:
        trial_query(given)
    assert str(refused.value).startswith(told)


@pytest.mark.thorough
@pytest.mark.parametrize("name", SORTS)
@pytest.mark.parametrize("sign", ["", "-"])
def test_the_neighbours_of_a_trial_are_those_of_the_table(store: Store, name: str, sign: str) -> None:
    for given in ({}, {"agent": "a", "score": "0..0.5"}):
        query = TrialQuery(sort=sign + name, size=500, **given)
        ids = [row.id for row in walk(store, query)]
        beside = dict(zip(ids, zip([None, *ids], [*ids[1:], None], strict=False), strict=True))
        assert {trial: tuple(neighbours(store, query, trial)) for trial in ids} == beside


def test_a_trial_that_the_filter_leaves_out_lies_between_those_around_it(store: Store) -> None:
    ids = [row.id for row in walk(store, TrialQuery(agent="a"))]
    other = next(number for number in range(ids[3], ids[-1]) if number not in ids)
    before = max(number for number in ids if number < other)
    assert neighbours(store, TrialQuery(agent="a"), other) == (before, ids[ids.index(before) + 1])


@pytest.mark.parametrize("sort", [sort for name in SORTS for sort in (name, f"-{name}")])
def test_a_filtered_page_reads_no_finish_but_those_of_its_rows(store: Store, sort: str) -> None:
    """By the database's own plans: whole rows are looked up by their ids alone."""
    plans = list[str]()

    def explain(connection: sa.Connection, cursor: Any, statement: str, parameters: Any, *_: object) -> None:
        if "proctor_trial" in statement and statement.startswith("SELECT"):
            plan = connection.connection.cursor().execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            plans.extend(row[3] for row in plan)

    read_trials(store, TrialQuery(size=5))
    sa.event.listen(store.engine, "before_cursor_execute", explain)
    for given in filter(None, (given for given, _ in FILTERS)):
        read_trials(store, trial_query({**given, "sort": sort, "size": "5"}))
    read = [plan for plan in plans if plan.startswith(("SCAN", "SEARCH"))]
    assert len(read) > 2 * len(FILTERS)
    assert all("USING COVERING INDEX" in plan or "(run=? AND id=?)" in plan for plan in read), read


def test_a_store_without_the_indexes_of_this_version_has_the_same_pages(store: Store) -> None:
    queries = [TrialQuery(**given, sort=sort) for given, _ in FILTERS for sort in ("id", "-ended_at")]
    before = [walk(store, query) for query in queries]
    with store.engine.begin() as connection:
        for name in ("sums", "cause"):
            connection.execute(sa.text(f"DROP INDEX proctor_trial_{name}"))
        connection.execute(sa.text("CREATE INDEX proctor_trial_narrow ON proctor_trial (run)"))
    assert [walk(store, query) for query in queries] == before
    store.upgrade()
    assert {index["name"] for index in sa.inspect(store.engine).get_indexes("proctor_trial")} == {
        "proctor_trial_sums",
        "proctor_trial_cause",
    }
