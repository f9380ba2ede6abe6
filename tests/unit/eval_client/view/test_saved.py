"""The HTML report: one file that calls nowhere and hides what must not be published."""

import base64
import hashlib
import locale
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pydantic import JsonValue

from environments.simulbench.table import ratings_table, verdicts_table
from environments.stss.summary import OWN_WORLD
from environments.stss.tables import action_table, language_table
from eval_client.report.agentbench import agent_rows, scores_table
from eval_client.report.papers import finished_trials, played_tasks, recorded_pairs
from eval_client.report.report import report
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from eval_client.store.tables import trial_table, turn_table
from eval_client.view.saved import report_page
from proctor.plugins import FinishedTrial, RecordedPair
from proctor.tables.table import ResultTable, entry_lines
from proctor.types import Action, Finish, FinishReason
from task_server.wire.messages import Act
from tests.unit.eval_client.report.compare.stored import Grades, stored_run
from tests.unit.eval_client.view.told import CAUSE, HIDDEN, SAID, Page, told_run

Make = Callable[[Sequence[FinishedTrial], Sequence[RecordedPair]], ResultTable]
LOADS = {"script", "link", "img", "iframe", "object", "embed", "base", "form", "audio", "video", "source"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return told_run(tmp_path)


def test_it_loads_nothing_and_its_policy_allows_its_style_alone(store: Store) -> None:
    text = report_page(store)
    page = Page(text)
    assert not {tag for tag, _ in page.elements} & LOADS
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name in ("style", "src", "srcset") or name.startswith("on")}
    addresses = {attributes["href"] for _, attributes in page.elements if "href" in attributes}
    assert all(address is not None and address.startswith("#") for address in addresses)
    ids = {attributes.get("id") for _, attributes in page.elements}
    assert addresses <= {f"#{name}" for name in ids}
    assert set(re.findall(r"\w+://[^\s\"<]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "@import" not in page.style
    assert "url(" not in page.style
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    policy = next(each["content"] for tag, each in page.elements if each.get("http-equiv"))
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'"


def test_the_same_store_gives_the_same_bytes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    before = report_page(store, samples=True, trials=(1, 0))
    kept = locale.setlocale(locale.LC_ALL)
    try:
        monkeypatch.setenv("TZ", "Pacific/Kiritimati")
        time.tzset()
        locale.setlocale(locale.LC_ALL, "C.UTF-8")
        assert report_page(store, samples=True, trials=(1, 0)) == before
    finally:
        locale.setlocale(locale.LC_ALL, kept)
        monkeypatch.undo()
        time.tzset()


def test_it_tells_nothing_of_samples_answers_machines_and_addresses(store: Store) -> None:
    text = report_page(store)
    for canary in (*HIDDEN, *SAID, "canary-sample"):
        assert canary not in text
    assert "gpt-7" in text, "of a model that is a path, its last part"
    head = dict(re.findall(r"<dt>(\w+)</dt><dd>([^<]*)</dd>", text))
    assert head["Sampling"] == "temperature 0.5, max_tokens 99, stop, left to the endpoint: top_p"
    assert (head["Model"], head["Endpoint"]) == ("gpt-7, built-in: naive", "mine")


def test_samples_adds_their_ids_and_scores_alone(store: Store) -> None:
    text = report_page(store, samples=True)
    rows = {row[0]: row[1:] for row in Page(text).table("db")}
    assert rows["sample"] == ["gpt", "naive"]
    assert rows["canary-sample-s2"] == ["0.250", "0.000"]
    for canary in (*HIDDEN, *SAID):
        assert canary not in text


def test_the_evidence_of_a_refused_trial_does_not_quote_the_endpoint(store: Store) -> None:
    refused = Finish(reason=FinishReason.REFUSED, score=0.0, detail={"cause": CAUSE, "asked": "a question"})
    with store.engine.begin() as connection:
        values = {"finish": refused.model_dump_json(), "reason": refused.reason.value}
        connection.execute(trial_table.update().where(trial_table.c.id == 0).values(**values))
    text = report_page(store, trials=(0,))
    assert "a question" in text
    assert not [hidden for hidden in ("inner.example.org", "somebody", "worker-77") if hidden in text]


def test_trials_adds_the_named_ones_with_a_warning(store: Store) -> None:
    text = report_page(store, trials=(4, 7))
    page = Page(text)
    assert text.index("This file holds benchmark data") < text.index("<h1>")
    assert [each["id"] for tag, each in page.elements if tag == "article"] == ["trial-4", "trial-7"]
    assert text.count("canary-sample-") == 2
    assert r"canary-of-prompt &lt;b&gt;&amp;amp;&lt;/b&gt; \x1b\u202e" in text
    assert text.count("canary-of-answer") == 2
    assert text.count("canary-of-gold") == 1
    named = ("inner.example.org", "somebody", "worker-77", "canary-of-cause", "canary-of-data", "canary-of-stop")
    assert not [canary for canary in named if canary in text]
    with pytest.raises(StoreError, match="has no trial 99"):
        report_page(store, trials=(99,))


def test_its_scores_are_those_of_the_report(store: Store) -> None:
    page = Page(report_page(store))
    for pair in report(store).pairs:
        rows = page.table(f"{pair.task} ({pair.environment})")
        row = next(row for row in rows if row[0] == pair.agent)
        assert pair.interval is not None
        assert pair.value is not None
        assert row[1] == "{:.3f} [{:.3f}, {:.3f}]".format(pair.value, *pair.interval)
        assert row[2] == f"{pair.scored}/{pair.planned}"
    head, *rows = page.table("os (os)")
    place = head.index("mean score could be")
    assert [row[place] for row in rows] == ["0.714..0.857", "0.143..0.286"]
    faults = {(row[0], row[1]): row[-1] for row in page.table("validity")}
    assert faults["gpt", "os"] == "1"
    assert "unscored: 1 of gpt on os: task error" in page.text


def test_its_table_of_agentbench_is_that_of_the_command(store: Store) -> None:
    expected = scores_table(agent_rows(played_tasks([store], ())))
    _, head, *rows = Page(report_page(store)).table(expected.title)
    assert head == [column.title for column in expected.columns]
    cells = [[" ".join(entry_lines(cell)) for cell in row.cells] for row in expected.rows]
    assert cells[0][1] == "/home/somebody/models/gpt-7"
    cells[0][1] = "gpt-7"
    assert rows == cells


@pytest.mark.parametrize(
    ("environment", "detail", "metrics", "make"),
    [
        (
            "simulbench",
            {"simulbench": "script", "place": "firstchan", "type": "stateful"},
            {"rating": 7.5},
            ratings_table,
        ),
        (
            "simulbench",
            {"simulbench": "compare", "candidate": "/home/somebody/one-7b", "reference": "two", "judge": "three"},
            {"win": 1.0, "tie": 0.0, "lose": 0.0},
            verdicts_table,
        ),
        (
            "stss",
            {"level": "language", "planning": "tdp", "category": "help"},
            {"sr_conversation": 0.5, "gcsr_conversation": 0.75, "sr_summary": 0.25, "gcsr_summary": 0.5},
            language_table,
        ),
        (
            "stss",
            {"level": "action", "planning": "ga", "category": "help"},
            {},
            action_table,
        ),
    ],
)
def test_its_tables_of_other_papers_are_those_of_their_commands(
    tmp_path: Path, environment: str, detail: dict[str, JsonValue], metrics: dict[str, float], make: Make
) -> None:
    grades: dict[str, dict[str, Grades]] = {"a": {"t": [0.5, 0.25]}, "b": {"t": [0.5, None]}}
    store = stored_run(tmp_path, "own", grades, environments={"t": environment})
    finish = Finish(reason=FinishReason.COMPLETED, score=0.5, metrics=metrics, detail=detail).model_dump_json()
    with store.engine.begin() as connection:
        connection.execute(trial_table.update().where(trial_table.c.score.is_not(None)).values(finish=finish))
    text = report_page(store)
    page = Page(text)
    expected = make(list(finished_trials(store, {"t"})), recorded_pairs(report(store), {"t"}))
    *_, head, one, other = page.table(expected.title)
    assert head == [column.title for column in expected.columns]
    for cells, row in zip((one, other), expected.rows, strict=True):
        assert cells == [" ".join(entry_lines(cell)).replace("/home/somebody/", "") for cell in row.cells]
    assert all(note in page.text for note in expected.all_notes())
    assert "somebody" not in text
    assert (OWN_WORLD in page.text) == (environment == "stss")


def test_one_agent_is_compared_with_none(tmp_path: Path) -> None:
    page = Page(report_page(stored_run(tmp_path, "lone", {"gpt": {"t": [1.0, 0.0]}})))
    assert "Nothing to compare: the run has one agent." in page.text
    assert page.table("t (ltp)")[1][:3] == ["gpt", "0.500 [0.004, 0.996]", "2/2"]


def test_a_run_without_a_score_has_a_report(tmp_path: Path) -> None:
    page = Page(report_page(stored_run(tmp_path, "none", {"a": {"t": [None]}, "b": {"t": [None]}})))
    assert page.table("t (ltp)")[1][1:4] == ["-", "0/1", "0%"]


def test_a_task_that_two_agents_have_no_scored_sample_of_leaves_the_others_compared(tmp_path: Path) -> None:
    grades: dict[str, dict[str, Grades]] = {
        "a": {"t": [1.0, None], "u": [1.0, 0.0]},
        "b": {"t": [None, 1.0], "u": [0.0, 0.0]},
    }
    page = Page(report_page(stored_run(tmp_path, "r", grades)))
    assert [row[0] for row in page.table("a less b")] == ["task", "u"]
    assert "a and b are not compared on t: they have no scored sample in common." in page.text


def test_a_wide_run_is_still_a_small_file(tmp_path: Path) -> None:
    tasks = {f"task-{number}": [1.0, 0.0, None] for number in range(20)}
    store = stored_run(tmp_path, "wide", {f"agent-{number}": tasks for number in range(50)})
    text = report_page(store)
    assert len(text.encode()) <= 300_000
    assert text.count('<td class="cell') == 1000
    assert "This run has 1,000 pairs of agent and task." in text
    assert "Not compared: with 50 agents" in text


def test_what_worlds_and_models_said_stays_text(store: Store) -> None:
    hostile = "</style></pre></title><script>alert(1)</script><img onerror=x> {{7*7}} \x00\ud800"
    with store.engine.begin() as connection:
        connection.execute(
            trial_table.update().where(trial_table.c.id == 0).values(sample=hostile.replace("\ud800", ""))
        )
        reply = Act(action=Action(content=hostile.replace("\ud800", ""))).model_dump_json()
        connection.execute(turn_table.update().values(reply=reply))
    text = report_page(store, title=hostile, samples=True, trials=(0,))
    page = Page(text)
    assert not {tag for tag, _ in page.elements} & LOADS
    assert text.count("&lt;script&gt;alert(1)") >= 4
    assert "{{7*7}} \\x00" in page.text
    text.encode()


def test_the_command_that_it_names_is_quoted(store: Store) -> None:
    text = Page(report_page(store, title="It's & <so>", trials=(1, 2))).text
    assert """proctor report told --html report.html --title 'It'"'"'s & <so>' --trials 1,2""" in text
