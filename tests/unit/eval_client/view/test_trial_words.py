"""What was asked, expected and answered: in tables, comparisons, heads of pages and files that may be published."""

import json
import re
import zipfile
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa
from click.testing import CliRunner

from eval_client.cli.results.export import export
from eval_client.cli.results.show import show
from eval_client.report.exports.write import write_inspect
from eval_client.store.store import Store
from eval_client.store.tables import trial_table
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import FolderRuns
from eval_client.view.saved import report_page
from proctor.types import Finish, FinishReason, asked_and_answered
from tests.browser import chromium
from tests.unit.eval_client.report.compare.stored import stored_run
from tests.unit.eval_client.view.conftest import ORIGIN
from tests.unit.eval_client.view.played import served
from tests.unit.eval_client.view.test_pages import text_of
from tests.unit.eval_client.view.told import Page

GRADES = {"gpt": {"os": [1.0, 0.0], "db": [1.0, 0.5]}, "naive": {"os": [0.0, 0.0], "db": [0.0, 0.5]}}
PLAN = {
    "endpoints": [{"name": "mine", "base_url": "https://inner.example.org/v1"}],
    "agents": [
        {"name": "gpt", "endpoint": "mine", "model": "gpt-7", "sampling": {"temperature": 0.5}},
        {"name": "naive", "builtin": "naive"},
    ],
}
CLOSED = "os"
"""The task whose data may not be given away."""
OLD = 0
"""A trial whose finish is of an earlier version."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store, t = stored_run(tmp_path, "run", GRADES, plan=PLAN), trial_table.c
    with store.engine.begin() as connection:
        for row in connection.execute(sa.select(t.id, t.agent, t.task, t.sample, t.score)).all():
            words = asked_and_answered(
                f"ask-{row.task}-{row.sample}", "gold", f"said-{row.agent}", redistributable=row.task != CLOSED
            )
            reason = FinishReason.COMPLETED if row.score else FinishReason.INVALID_ACTION
            finish = Finish(reason=reason, score=row.score, detail={} if row.id == OLD else words)
            values = {"finish": finish.model_dump_json(), "reason": reason, "ended_at": "2026-11-20T10:00:00+00:00"}
            connection.execute(trial_table.update().where(t.id == row.id).values(**values))
    return store


@pytest.fixture
def viewer(store: Store, tmp_path: Path) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(build_app(FolderRuns(tmp_path), ViewAccess())), base_url=ORIGIN
    )


async def test_a_row_has_what_was_asked_and_answered_with_tokens_time_and_score(viewer: httpx.AsyncClient) -> None:
    async with viewer:
        heads, old, new, *_ = Page(await text_of(viewer, "/runs/run/trials")).table("Trials")
        assert heads[:8] == ["# ▲", "score", "agent", "task", "sample", "asked", "expected", "answered"]
        assert heads[10:] == ["tok in", "tok out", "s"]
        assert old[5:8] == ["-", "-", "-"], "the finish of an earlier version tells nothing"
        assert [cell.strip() for cell in (new[1], *new[5:8])] == ["0.000", "ask-os-s1", "gold", "said-gpt"]
        for query, hidden in (("agent=gpt", "agent"), ("task=db", "task")):
            heads, *_ = Page(await text_of(viewer, f"/runs/run/trials?{query}")).table("Trials")
            assert hidden not in heads, "what is the same in all rows"
            assert (
                hidden in Page(await text_of(viewer, f"/runs/run/trials?{query}&columns={hidden}")).table("Trials")[0]
            )
        for trial, words in ((OLD, ["-", "-", "-"]), (1, ["ask-os-s1", "gold", "said-gpt"])):
            page = await text_of(viewer, f"/runs/run/trials/{trial}")
            assert re.findall(r"<dt>(?:asked|expected|answered)</dt><dd>([^<]*)", page) == words
        chosen = await text_of(viewer, "/runs/run/trials?columns=sample&columns=answered&columns=attempts")
        assert Page(chosen).table("Trials")[0] == ["sample", "answered", "attempts"]
        assert "columns=sample%2Canswered%2Cattempts" in chosen, "links keep the columns"
        assert "columns: &#39;gold&#39; is none of id" in await text_of(viewer, "/runs/run/trials?columns=gold", 400)
        items = (await viewer.get("/api/v1/runs/run/trials?task=db")).json()["items"]
        assert {item["answered"] for item in items} == {"said-gpt", "said-naive"}


async def test_files_of_rows_have_no_data(viewer: httpx.AsyncClient) -> None:
    async with viewer:
        for name in ("trials.csv", "trials.jsonl"):
            rows = await text_of(viewer, f"/runs/run/{name}")
            assert "invalid_action" in rows
            assert not {word for word in ("ask-db", "gold", "said-") if word in rows}


def test_a_csv_has_data_only_with_samples_and_a_warning_and_not_of_closed_data(store: Store, tmp_path: Path) -> None:
    def written(*options: str) -> tuple[str, str]:
        where = ("--output", str(tmp_path), "--to", str(tmp_path / "trials.csv"))
        told = CliRunner().invoke(export, ["run", "--as", "csv", *options, *where])
        assert told.exit_code == 0, told.output
        return told.stderr, (tmp_path / "trials.csv").read_text()

    warning, plain = written()
    assert (warning, "invalid_action" in plain) == ("", True)
    assert not {word for word in ("ask-", "gold", "said-") if word in plain}
    warning, told = written("--samples")
    assert "This file holds benchmark data" in warning
    assert ("ask-db-s0" in told, "said-naive" in told, "ask-os" in told) == (True, True, False)
    assert CliRunner().invoke(export, ["run", "--samples", "--output", str(tmp_path)]).exit_code == 2


async def test_colour_tells_the_score_and_not_the_reason(viewer: httpx.AsyncClient) -> None:
    async with viewer:
        page = await text_of(viewer, "/runs/run/trials")
    assert set(re.findall(r'<span class="score([^"]*)"><data value="([^"]+)"', page)) == {
        (" full", "1.0"),
        (" zero", "0.0"),
        ("", "0.5"),
    }


async def test_the_head_of_a_page_tells_what_was_run(viewer: httpx.AsyncClient) -> None:
    async with viewer:
        for path in ("", "/trials", "/trials/1", "/side?a=1&b=5&turn=1"):
            page = await text_of(viewer, f"/runs/run{path}")
            facts = dict(re.findall(r"<dt>([a-z]+)</dt><dd>([^<]*)</dd>", page))
            assert "gpt-7" in facts["model"]
            assert (facts["endpoint"], facts["data"]) == ("mine", "shipped")
            assert facts["sampling"].startswith("temperature 0.5")
            assert {"profile", "begun", "lasted"} <= facts.keys()
        runs = Page(await text_of(viewer, "/")).table("Runs")
    assert dict(zip(*runs, strict=True))["mean score"].split() == ["0.000", "to", "0.750"]
    assert dict(zip(*runs, strict=True))["model"] == "gpt-7, built-in: naive"


async def test_a_comparison_shows_both_answers_where_scores_differ(viewer: httpx.AsyncClient) -> None:
    async with viewer:
        page = await text_of(viewer, "/compare?a=run:gpt&b=run:naive&task=db")
    (heads, row) = Page(page).table("Answers of db")
    assert heads == ["sample", "asked", "expected", "gpt", "answered", "naive", "answered"]
    assert row == ["s0", "ask-db-s0", "gold", "1.000", "said-gpt", "0.000", "said-naive"]
    assert "/runs/run/side?a=2&amp;b=6" in page


async def test_trials_of_two_samples_are_not_shown_side_by_side(viewer: httpx.AsyncClient, store: Store) -> None:
    async with viewer:
        for b in (4, 3):  # trial 3 is of another task, which calls a sample the same
            assert "of another sample" in await text_of(viewer, f"/runs/run/side?a=1&b={b}", 400)
            folder = Path(str(store.engine.url.database)).parent.parent
            told = CliRunner().invoke(show, ["run", "1", "--against", str(b), "--output", str(folder)])
            assert (told.exit_code, "of another sample" in told.output) == (2, True)


async def test_show_lists_the_trials_that_are_asked_for(store: Store) -> None:
    folder = str(Path(str(store.engine.url.database)).parent.parent)

    def listed(*options: str) -> tuple[int, str]:
        told = CliRunner().invoke(show, ["run", "--list", *options, "--output", folder])
        return told.exit_code, told.output

    code, table = listed("--where", "agent=gpt", "--where", "score=0..0.5")
    assert (code, table.splitlines()[0]) == (0, "2 of 2 trials of run")
    assert re.findall(r"0\.500 +db +s1 +ask-\w+-\w+ +gold +said-gpt", table)
    assert listed("--columns", "sample,answered", "--where", "size=1")[1].splitlines()[-1].endswith("after=0")
    assert listed("--json", "--where", "task=db")[1].count('"answered": "said-gpt"') == 2
    assert listed("--where", "colour=red")[0] == listed("--columns", "colour")[0] == 2


@pytest.mark.browser
def test_long_texts_and_causes_push_no_score_off_the_screen(store: Store, tmp_path: Path) -> None:
    t = trial_table.c
    words = asked_and_answered("what is asked " * 9, "what is right " * 9, "what is said " * 9)
    told = Finish(reason=FinishReason.COMPLETED, score=0.5, detail=words).model_dump_json()
    fault = Finish.fault(FinishReason.AGENT_ERROR, "the endpoint refused the request " * 9)
    with store.engine.begin() as connection:
        connection.execute(trial_table.update().values(finish=told))
        lost = {
            "finish": fault.model_dump_json(),
            "reason": fault.reason,
            "score": None,
            "cause": fault.detail["cause"],
        }
        connection.execute(trial_table.update().where(t.id == 1).values(**lost))
    saved = tmp_path / "saved.html"
    saved.write_text(report_page(store, samples=True), encoding="utf-8")
    with served(tmp_path) as address, chromium() as browser:
        for width, place, last in (
            (390, f"{address}/runs/run/trials", "score"),
            (390, f"{address}/", "mean score"),
            (1440, f"{address}/runs/run/trials", "s"),
            (1440, f"{address}/compare?a=run:gpt&b=run:naive", "naive"),
            (1440, saved.as_uri(), "naive answered"),
        ):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.goto(place)
            box = page.get_by_role("columnheader", name=last, exact=True).last.bounding_box()
            assert box is not None
            assert box["x"] + box["width"] <= width, (place, last)


def test_inspect_gets_input_target_and_answer(store: Store, tmp_path: Path) -> None:
    write_inspect(store, tmp_path / "logs")
    (log,) = (path for path in (tmp_path / "logs").iterdir() if "_db_gpt" in path.name)
    with zipfile.ZipFile(log) as held:
        each = json.loads(held.read("summaries.json"))
    assert [(one["input"], one["target"]) for one in each] == [("ask-db-s0", "gold"), ("ask-db-s1", "gold")]
    assert [one["scores"]["proctor"]["answer"] for one in each] == ["said-gpt", "said-gpt"]


def test_a_file_has_them_only_with_samples_and_a_warning_and_not_of_closed_data(store: Store) -> None:
    plain, told = report_page(store), report_page(store, samples=True)
    assert not {word for word in ("ask-db", "gold", "said-", "This file holds benchmark data") if word in plain}
    assert told.index("This file holds benchmark data") < told.index("<h1>")
    assert Page(told).table("db")[1] == ["s0", "ask-db-s0", "gold", "1.000", "said-gpt", "0.000", "said-naive"]
    assert Page(told).table("os")[1] == ["s0", "1.000", "0.000"]
    assert "ask-os" not in told
    with store.engine.begin() as connection:
        connection.execute(trial_table.update().where(trial_table.c.id == 3).values(sample="s0", epoch=1))
    several = report_page(store, samples=True)
    assert ["means over the epochs; answers are those of the first" in text for text in (told, several)] == [
        False,
        True,
    ]
