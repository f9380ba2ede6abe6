"""Pages and programs that follow a run whose store goes away for a moment."""

import json
import shutil
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.database_servers import postgresql
from tests.e2e.proctor import proctor
from tests.e2e.view.conftest import Begin, viewer
from tests.pace import slowly, until


def status(address: str, path: str) -> tuple[int, str | None]:
    try:
        with urllib.request.urlopen(address + path, timeout=slowly(30)) as answer:
            answer.read()
            return answer.status, None
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers["Retry-After"]


@pytest.mark.browser
def test_a_page_says_that_its_store_is_away_and_goes_on_after_it(played: Path, tmp_path: Path, page: Page) -> None:
    shutil.copytree(played / "runs", tmp_path / "runs")
    path = tmp_path / "runs" / "done" / "run.sqlite"
    with viewer(tmp_path, "done") as address:
        page.goto(f"{address}/runs/done")
        count = page.locator("#summary strong")
        expect(count).to_have_text("40/40")
        path.rename(path.with_suffix(".away"))
        until(lambda: status(address, "/runs/done") == (503, "5"))
        expect(page.locator("body.away")).to_have_count(1, timeout=slowly(30_000))
        expect(count).to_have_text("40/40")
        path.with_suffix(".away").rename(path)
        expect(page.locator("body.away")).to_have_count(0, timeout=slowly(30_000))
        expect(count).to_have_text("40/40")


@pytest.mark.postgresql
def test_a_viewer_outlives_a_database_server_that_was_killed(tmp_path: Path, run: Begin) -> None:
    with postgresql() as database:
        client = run("--limit", "2", PROCTOR_STORE=database.url)
        assert client.wait(slowly(120)) == 0
        with viewer(tmp_path, "--store", database.url) as address:
            asked = "/api/v1/runs/slow/live"
            assert status(address, asked) == (200, None)
            database.kill()
            until(lambda: status(address, asked) == (503, "5"))
            assert status(address, "/runs/slow") == (503, "5")
            database.start()
            until(lambda: status(address, asked) == (200, None))
            assert status(address, "/runs/slow") == (200, None)
            told = json.loads(proctor("report", "slow", "--json", cwd=tmp_path, PROCTOR_STORE=database.url).stdout)
    assert sum(pair["scored"] for pair in told["pairs"]) == 4
