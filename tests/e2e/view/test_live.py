"""A run under way in a browser: its count grows by itself, and what is not heard of any more is said."""

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.gates import Gate
from tests.e2e.proctor import begin, proctor, scored
from tests.e2e.view.conftest import KEY, PLANNED, Begin, viewer
from tests.pace import slowly, until

WORDS = {"endpoint", "agent", "task", "-"}
"""What a screen says that a pair waits for, while no worker has gone."""
WAIT_MS = slowly(60_000)
SPARED = 20
"""So many model calls of a run's 68 or so pass before the run is to wait."""
SCORED = "SELECT agent, count(score) FROM proctor_trial GROUP BY agent"


def told(address: str, path: str = "/api/v1/runs/slow") -> dict[str, Any]:
    with urllib.request.urlopen(address + path, timeout=slowly(30)) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


def shown_count(page: Page) -> int:
    return int((page.locator("#summary strong").text_content() or "").split("/")[0])


def until_shown(page: Page, count: int) -> None:
    """Until the page counts so many scores: the browser looks, which is cheaper than asking it again and again."""
    expect(page.locator("#summary strong")).to_have_text(f"{count}/{PLANNED}", timeout=WAIT_MS)


def begun(folder: Path) -> bool:
    """Whether the run of a folder has a scored trial."""
    return scored(folder, "slow") > 0


@pytest.mark.browser
def test_the_count_grows_without_a_reload_and_ends_as_the_stores(
    tmp_path: Path, run: Begin, way: Gate, page: Page
) -> None:
    way.shut(SPARED)
    client = run()
    until(lambda: begun(tmp_path))
    with viewer(tmp_path) as address:
        page.goto(f"{address}/runs/slow")
        page.evaluate("() => { window.loaded = 'once' }")
        live = told(address)["live"]
        assert {str(pair["waits_for"] or "-") for pair in live["pairs"]} <= WORDS
        expect(page.locator("#live .waits")).to_have_text("waits for endpoint: db-own")
        expect(page.locator("#live .caps .full")).to_contain_text(["endpoint e 3/3"])
        first = shown_count(page)
        way.shut(SPARED // 2)
        expect(page.locator("#summary strong")).not_to_have_text(f"{first}/{PLANNED}", timeout=WAIT_MS)
        assert first < shown_count(page) < PLANNED
        way.open()
        until_shown(page, PLANNED)
        expect(page.locator("#state")).to_have_text("finished", timeout=WAIT_MS)
        expect(page.locator("#live section")).to_have_count(0, timeout=WAIT_MS)
        assert client.wait(slowly(60)) == 0
        reported = json.loads(proctor("report", "slow", "--json", cwd=tmp_path).stdout)
        assert sum(pair["scored"] for pair in reported["pairs"]) == PLANNED
        for pair, cell in zip(reported["pairs"], page.locator(".cell data.value").all(), strict=True):
            expect(cell).to_have_attribute("value", repr(pair["value"]), timeout=WAIT_MS)
        assert (told(address)["live"], told(address)["heard_s"]) == (None, None)
        assert page.evaluate("() => window.loaded") == "once"


@pytest.mark.browser
def test_a_client_that_was_killed_is_missed_and_one_that_resumes_is_seen(
    tmp_path: Path, run: Begin, way: Gate, page: Page
) -> None:
    way.shut(SPARED)
    client = run()
    until(lambda: begun(tmp_path))
    with viewer(tmp_path) as address:
        page.goto(f"{address}/runs/slow")
        page.evaluate("() => { window.loaded = 'once' }")
        expect(page.locator("#live section")).to_have_count(1)
        client.kill()
        client.wait()
        expect(page.locator("#live .heard")).to_contain_text("last heard 1", timeout=slowly(15_000))
        expect(page.locator("#state")).to_have_text("stopped")
        silent = told(address)
        assert silent["heard_s"] >= 10
        way.open()
        resumed = begin("resume", "slow", "-q", cwd=tmp_path, **KEY)
        expect(page.locator("#live .heard")).to_have_count(0, timeout=WAIT_MS)
        expect(page.locator("#state")).to_have_text("finished", timeout=WAIT_MS)
        until_shown(page, PLANNED)
        assert page.evaluate("() => window.loaded") == "once"
        resumed.communicate(timeout=slowly(60))


@pytest.mark.browser
def test_without_javascript_the_panel_is_there(tmp_path: Path, run: Begin, way: Gate, browser: Browser) -> None:
    way.shut(SPARED)
    run()
    until(lambda: begun(tmp_path))
    context = browser.new_context(java_script_enabled=False)
    with viewer(tmp_path) as address:
        page = context.new_page()
        page.goto(f"{address}/runs/slow")
        expect(page.locator("#live .waits")).to_have_text("waits for endpoint: db-own")
        page.goto(f"{address}/runs/slow/trials")
        page.locator("select[name=agent]").select_option("naive")
        page.get_by_role("button", name="Filter").click()
        assert "agent=naive" in page.url
        assert page.locator("#rows tr").count() == PLANNED // 2
        page.get_by_role("link", name="sample", exact=True).click()
        assert {"agent=naive", "sort=sample"} <= set(page.url.partition("?")[2].split("&"))
        page.locator("#rows th a").first.click()
        expect(page.locator("h1")).to_contain_text("naive × db-own")
    context.close()
