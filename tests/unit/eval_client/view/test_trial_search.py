"""The search in the texts of turns: on what was said, not on how JSON writes it; in slices that go on."""

import csv
import io
import itertools
import json
import random
import tracemalloc
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.records import Manifest, Trial, Turn
from eval_client.store.store import Store
from eval_client.store.tables import turn_table
from eval_client.store.trials import search
from eval_client.store.trials.rows import TrialQuery, trial_query
from eval_client.store.trials.search import with_text
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import FolderRuns
from proctor.types import Action, FinishReason, Message, Observation, Tool, ToolCall
from task_server.wire.messages import Act, Stop
from tests.pace import slowly
from tests.support import unscored
from tests.unit.eval_client.view.conftest import ORIGIN, PLAN

ALPHABET = 'aAbn"\\\n\t ÄäßsK漢\x1b'
LARGE, PLANTED, NEEDLE = 100_000, 77_777, "rm -rf"


def store_of(folder: Path, trials: int) -> Store:
    (folder / "first").mkdir()
    made = Store(connect(sqlite_url(folder / "first")), "first")
    planned = [
        Trial(id=n, agent="ab"[n % 2], task="t", sample=f"=s{n:02}", epoch=0, cluster="c") for n in range(trials)
    ]
    made.create(Manifest(version="1", plan_path="p", plan=PLAN, identity={}), planned)
    return made


def row(trial: int, observation: Observation, reply: Act | Stop, turn: int = 1, journal: int = 0) -> dict[str, object]:
    stored = Turn(turn=turn, digest="d", observation=observation.model_dump_json(), reply=reply)
    keys = {"run": "first", "trial": trial, "journal": journal}
    return {**keys, **stored.model_dump(exclude={"reply"}), "reply": stored.reply.model_dump_json()}


def write(store: Store, rows: Sequence[dict[str, object]]) -> None:
    with store.engine.begin() as connection:
        connection.execute(turn_table.insert(), rows)


def said(*texts: str) -> Observation:
    return Observation(messages=tuple(Message(role="user", content=text) for text in texts))


def answered(text: str) -> Act:
    return Act(action=Action(content=text))


def found(store: Store, text: str) -> list[int]:
    return [trial for trial, holds in with_text(store, range(len(unscored(store))), text) if holds]


def test_a_match_is_on_the_text_and_not_on_its_json(tmp_path: Path) -> None:
    store = store_of(tmp_path, 6)
    call = ToolCall(id="c1", name="Count", arguments='{"what": "x')
    offered = Tool(name="offered", description="only offered")
    write(
        store,
        [
            row(0, said('she said "hi"\nbye\\now'), answered("GRÜSSE, straße")),
            row(1, said("quiet").model_copy(update={"tools": (offered,)}), answered("漢字\x1b")),
            row(2, said("quiet"), Act(action=Action(content="", tool_calls=(call,), reasoning="I ponder"))),
            row(3, said("old words"), answered("old words"), journal=0),
            row(3, said("quiet"), answered("new"), journal=1),
            row(4, said("quiet"), Stop(reason=FinishReason.CONTEXT_LIMIT)),
        ],
    )
    for text, trials in {
        '"hi"\nbye': [0],
        "HI\\": [],
        "nbye": [],
        "\\now": [0],
        "\\nbye": [],
        "grüsse": [0],
        "STRASSE": [0],
        "漢": [1],
        "\x1b": [1],
        "u001b": [],
        "only offered": [],
        "count": [2],
        '"what": "x': [2],
        "ponder": [2],
        "old words": [],
        "new": [3],
        "content": [],
        "context_limit": [],
        "quiet": [1, 2, 3, 4],
    }.items():
        assert found(store, text) == trials, text


def test_a_drawn_text_is_found_where_plain_python_finds_it(tmp_path: Path) -> None:
    drawn = random.Random(5)

    def text(most: int) -> str:
        return "".join(drawn.choices(ALPHABET, k=drawn.randrange(1, most)))

    store, held = store_of(tmp_path, 150), dict[int, list[str]]()
    for trial in range(150):
        held[trial] = [text(12) for _ in range(4)]
        one, two, three, four = held[trial]
        write(store, [row(trial, said(one, two), answered(three)), row(trial, said(four), answered(one), turn=2)])
    hits = 0
    for _ in range(100):
        needle = text(4)
        wanted = [n for n, texts in held.items() if any(needle.casefold() in each.casefold() for each in texts)]
        assert found(store, needle) == wanted, repr(needle)
        hits += bool(wanted)
    assert 20 < hits < 100


def test_few_turns_are_held_at_once(tmp_path: Path) -> None:
    store, count, size = store_of(tmp_path, 60), 60, 1 << 20
    for trial in range(count):
        write(store, [row(trial, said("x" * size), answered("y"))])
    tracemalloc.start()
    try:
        assert found(store, "x" * 200 + "y") == []
        assert found(store, "Y") == list(range(count))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 20 * size, "all turns together are 60 times that size"


def _ticked(ticks: Iterator[int]) -> bool:
    return next(ticks) == 17


def test_slices_go_on_where_the_last_one_ended_and_meet_each_trial_once(tmp_path: Path) -> None:
    store = store_of(tmp_path, 200)
    write(store, [row(n, said("x"), answered("needle" if n % 7 == 0 else "hay")) for n in range(200) if n % 3])
    met, looks, after = list[int](), list[int | None](), ""
    while True:
        ticks = itertools.count(1)
        query = TrialQuery(agent="a", text="NEEDLE", size=3, after=after)
        page = search.search(store, query, partial(_ticked, ticks))
        met, looks = met + [each.id for each in page.items], [*looks, page.searched]
        assert page.total == 100
        assert len(page.items) <= 3
        if page.next is None:
            break
        after = page.next
    assert met == [n for n in range(0, 200, 14) if n % 3]
    assert looks == sorted(set(map(int, filter(None, looks))))
    assert looks[-1] == 100
    assert len(looks) > 5


def test_a_search_goes_in_the_order_of_trials_whatever_sort_is_asked_for() -> None:
    assert trial_query({"text": "x", "sort": "-score"}).sort == "id"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 100,000 trials with two turns each, of which one says the needle."""
    folder = tmp_path_factory.mktemp("large")
    store = store_of(folder, 0)
    names = (
        "run, trial, journal, turn, digest, observation, reply, prompt_tokens, completion_tokens, model_seconds, tries"
    )
    quiet = row(0, said("How many files are there? " * 8), answered("Think: hm. Act: bash"))
    with store.engine.begin() as connection:
        numbers = f"WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {LARGE - 1}) "
        connection.exec_driver_sql(
            f"{numbers} INSERT INTO proctor_trial (run, id, agent, task, sample, epoch, attempts) "
            "SELECT 'first', i, 'a' || (i % 10), 't' || (i / 10 % 10), 's' || (i / 100), 0, 1 FROM n"
        )
        connection.exec_driver_sql(
            f"{numbers} INSERT INTO proctor_turn ({names}) "
            "SELECT 'first', i, 0, t, 'd', ?, ?, 1, 1, 0.5, 1 FROM n, (SELECT 1 AS t UNION SELECT 2)",
            (quiet["observation"], quiet["reply"]),
        )
        planted = answered(f"Act: bash\n{NEEDLE} /tmp/x").model_dump_json()
        connection.exec_driver_sql("UPDATE proctor_turn SET reply = ? WHERE trial = ? AND turn = 2", (planted, PLANTED))
    store.engine.dispose()
    return folder


@pytest.mark.thorough
async def test_09_a_text_in_one_of_100000_trials_is_found_by_going_on(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "SLICE_S", search.SLICE_S / 10)
    app = build_app(FolderRuns(large), ViewAccess())
    searched, met, after = [0], list[int](), ""
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as viewer:
        page = (await viewer.get(f"/runs/first/trials?text={quote(NEEDLE.upper())}")).text
        assert "Nothing found on this page." in page
        assert "of 100,000 trials" in page
        assert 'rel="next"' in page
        while not met:
            answer = await viewer.get(f"/api/v1/runs/first/trials?text={quote(NEEDLE)}&after={after}")
            told = answer.json()
            met += [each["id"] for each in told["items"]]
            assert (told["searchable"], told["total"]) == (LARGE, None)
            assert told["searched"] > searched[-1]
            searched.append(told["searched"])
            after = told["next"]
    assert met == [PLANTED]
    assert len(searched) > 3


async def test_08_filters_in_combination_with_a_text_and_a_file_of_all_rows(
    large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SLICE_S", "WAIT_S"):  # so that one page has searched them all
        monkeypatch.setattr(search, name, slowly(60))
    app = build_app(FolderRuns(large), ViewAccess())
    given = f"agent=a{PLANTED % 10}&task=t{PLANTED // 10 % 10}&text={quote(NEEDLE)}"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as viewer:
        page = (await viewer.get(f"/runs/first/trials?{given}")).text
        whole = (await viewer.get(f"/runs/first/trials.jsonl?{given}&size=1")).text
        every = await viewer.get("/runs/first/trials.csv?agent=a3&sort=-id")
    assert f'href="/runs/first/trials/{PLANTED}?' in page, "with the filter"
    assert "searched 1,000 of 1,000 trials" in page
    assert [json.loads(line)["id"] for line in whole.splitlines()] == [PLANTED]
    rows = list(csv.DictReader(io.StringIO(every.text)))
    assert [int(each["id"]) for each in rows] == list(range(LARGE - 7, 0, -10))
    assert (every.headers["content-type"], every.headers["content-disposition"]) == (
        "text/csv; charset=utf-8",
        'attachment; filename="trials.csv"',
    )


async def test_a_file_of_rows_is_guarded_against_formulas_and_has_all_of_the_json_but_the_words(tmp_path: Path) -> None:
    store_of(tmp_path, 7)
    app = build_app(FolderRuns(tmp_path), ViewAccess())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as viewer:
        items = (await viewer.get("/api/v1/runs/first/trials?agent=b")).json()["items"]
        lines = (await viewer.get("/runs/first/trials.jsonl?agent=b")).text.splitlines()
        rows = list(csv.DictReader(io.StringIO((await viewer.get("/runs/first/trials.csv?agent=b")).text)))
        refused = await viewer.get("/runs/first/trials.csv?score=much")
        table = (await viewer.get("/runs/first/trials?agent=b&size=2")).text
    for item in items:
        assert [item.pop(name) for name in ("asked", "expected", "answered")] == [None] * 3
    assert [json.loads(line) for line in lines] == items
    assert [each["sample"] for each in rows] == [f"'{item['sample']}" for item in items]
    assert list(rows[0]) == list(items[0])
    assert refused.status_code == 400
    assert 'href="/runs/first/trials.csv?agent=b&amp;size=2"' in table
