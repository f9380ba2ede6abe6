"""The page of comparisons: the numbers of `proctor compare --json`, and its refusals."""

import json
import re
import shutil
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from click.testing import CliRunner

from eval_client.cli.results.compare import compare
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import FolderRuns
from tests.unit.eval_client.report.compare.stored import stored_run
from tests.unit.eval_client.report.test_pair_statistics import drawn_run
from tests.unit.eval_client.view.conftest import ORIGIN
from tests.unit.eval_client.view.test_pages import text_of
from tests.unit.eval_client.view.told import GRADES, Page

MORE = {f"agent{number}": {"os": [0.0, 1.0]} for number in range(7)}


@pytest.fixture
def runs(tmp_path: Path, made: Path) -> Path:
    """Two runs that are alike, one of other limits, one of too many agents, one of agents with no sample in common."""
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `runs` is a copy of."""
    folder = tmp_path_factory.mktemp("runs")
    environments = {"os": "os", "db": "db"}
    limits = {"limits": {"trial": {"turns": 3}}}
    apart = {"x": {"os": [1.0, None]}, "y": {"os": [None, 1.0]}}
    for store in (
        stored_run(folder, "first", GRADES, environments=environments),
        stored_run(folder, "second", GRADES, environments=environments),
        stored_run(folder, "limited", {"gpt": GRADES["gpt"]}, environments=environments, plan=limits),
        stored_run(folder, "crowd", MORE, environments=environments),
        stored_run(folder, "apart", apart, environments=environments),
    ):
        store.engine.dispose()
    return folder


@pytest.fixture
def viewer(runs: Path) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(build_app(FolderRuns(runs), ViewAccess()))
    return httpx.AsyncClient(transport=transport, base_url=ORIGIN)


def printed(runs: Path, *arguments: str) -> tuple[int, str]:
    told = CliRunner().invoke(compare, [*arguments, "--output", str(runs)])
    return told.exit_code, told.output


@pytest.mark.parametrize(
    ("query", "arguments"),
    [
        ({"a": "first:gpt", "b": "first:naive"}, ["first:gpt", "first:naive"]),
        ({"a": "first:gpt", "b": "second:naive", "task": "db"}, ["first:gpt", "second:naive", "--task", "db"]),
        ({"a": "first:gpt@os", "b": "second:naive@os"}, ["first:gpt@os", "second:naive@os"]),
        (
            {"a": "first:naive", "b": "limited", "across": "limits"},
            ["first:naive", "limited", "--across", "limits"],
        ),
        ({"a": "first"}, ["first"]),
    ],
)
async def test_page_and_json_have_the_figures_that_the_command_prints(
    runs: Path, viewer: httpx.AsyncClient, query: dict[str, str], arguments: list[str]
) -> None:
    code, output = printed(runs, *arguments, "--json")
    assert code == 0
    expected = json.loads(output)
    async with viewer:
        answer = await viewer.get(f"/api/v1/compare?{urlencode(query)}")
        page = await text_of(viewer, f"/compare?{urlencode(query)}")
    assert answer.json() == expected
    found = expected.get("comparisons", [expected])
    tables = Page(page).tables
    shown = [rows[1:] for name, rows in tables if " less " in name and rows and rows[0][:2] == ["task", "n"]]
    for rows, comparison in zip(shown, found, strict=True):
        for row, task in zip(rows, comparison["tasks"], strict=True):
            means = [f"{mean:.3f}" for mean in task["mean"]]
            low, high = task["interval"]
            assert row[1:6] == [
                str(task["samples"]),
                *means,
                f"{task['difference']:+.3f}",
                f"{low:+.3f} .. {high:+.3f}",
            ]
            assert row[6:8] == [f"{task[p]:.4f}" for p in ("p", "p_holm")]
    warned = [{text for task in each["tasks"] for text in task["warnings"]} for each in found]
    for text in set().union(*warned):
        assert unescape(page).count(text) == sum(text in texts for texts in warned), "once for each pair of agents"
    assert ("NOT ALIKE" in page) == ("across" in query)
    marks = re.findall(r'class="mark"', page)
    assert len(marks) == sum(len(each["tasks"]) for each in found)


@pytest.mark.parametrize(
    ("query", "status", "arguments"),
    [
        ({"a": "first:gpt", "b": "limited:gpt"}, 409, ["first:gpt", "limited:gpt"]),
        ({"a": "apart:x", "b": "apart:y"}, 409, ["apart:x", "apart:y"]),
        ({"a": "crowd"}, 409, ["crowd"]),
        ({"a": "first:gpt", "b": "first:nobody"}, 400, ["first:gpt", "first:nobody"]),
        ({"a": "first", "b": "second:gpt"}, 400, ["first", "second:gpt"]),
        ({"a": "first:gpt", "b": "first:naive", "task": "kg"}, 400, ["first:gpt", "first:naive", "--task", "kg"]),
        ({"a": "first:gpt@os/s1", "b": "first:naive"}, 400, ["first:gpt@os/s1", "first:naive"]),
        ({"a": "first:", "b": "first:naive"}, 400, ["first:", "first:naive"]),
        ({"a": "first:gpt"}, 400, ["first:gpt"]),
    ],
)
async def test_refusals_are_those_of_the_command(
    runs: Path, viewer: httpx.AsyncClient, query: dict[str, str], status: int, arguments: list[str]
) -> None:
    code, output = printed(runs, *arguments)
    assert code == 2
    async with viewer:
        page = await text_of(viewer, f"/compare?{urlencode(query)}", status)
        answer = await viewer.get(f"/api/v1/compare?{urlencode(query)}")
    found = re.search(r'<p class="problem" role="alert">(.*?)</p>', page, re.DOTALL)
    assert found is not None
    words = unescape(found[1])
    assert " ".join(words.split()) in " ".join(output.split())
    assert f'name="a" value="{query["a"]}"' in page, "what was asked for stays in the form"
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.json()["detail"] == words


@pytest.mark.parametrize(
    ("query", "status", "text"),
    [
        ("", 200, 'href="/compare?a=apart"'),
        ("b=first:gpt", 400, "no agent is named"),
        ("a=none:gpt&b=first:gpt", 404, "there is no run"),
        ("a=latest:nobody&b=latest:y", 400, "has no agent"),
        ("a=first:gpt&b=first:naive&across=all", 400, "is none of limits, seed, version, task"),
        ("a=" + "x" * 300, 400, "at most 255 characters"),
        ("a=%00", 400, "without NUL"),
        ("a=%3Cscript%3E&b=..%2F..%2Fetc%2Fpasswd", 404, "&lt;script&gt;"),
    ],
)
async def test_other_addresses(runs: Path, viewer: httpx.AsyncClient, query: str, status: int, text: str) -> None:
    async with viewer:
        page = await text_of(viewer, f"/compare?{query}", status)
    assert text in page
    assert 'value="first:naive"' in page or status == 400


async def test_the_overview_has_the_letters_of_the_command_and_says_where_there_are_none(
    runs: Path, viewer: httpx.AsyncClient
) -> None:
    store = drawn_run(runs, 0, 4, 24)
    code, output = printed(runs, store.run, "--json")
    expected = json.loads(output)["letters"]
    assert code == 0
    async with viewer:
        page = await text_of(viewer, f"/runs/{store.run}")
        told = (await viewer.get(f"/api/v1/runs/{store.run}")).json()
        crowd = await text_of(viewer, "/runs/crowd")
        left_out = (await viewer.get("/api/v1/runs/crowd")).json()
    rows = re.findall(r'<th scope="row">(agent\d)</th>(.*?)</tr>', page, re.DOTALL)
    shown = {agent: re.findall(r'class="letters">(\w+)<', row) for agent, row in rows}
    assert shown == {agent: [expected[task][agent] for task in ("db", "os")] for agent in shown}
    assert {(pair["agent"], pair["task"]): pair["letters"] for pair in told["pairs"]} == {
        (agent, task): letters for task, of_task in expected.items() for agent, letters in of_task.items()
    }
    assert "7 agents, more than 6: " in crowd
    assert "7 agents, more than 6: " in left_out["letters_left_out"]
    assert {pair["letters"] for pair in left_out["pairs"]} == {None}
