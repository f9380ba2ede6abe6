"""The two days of a trial of STSS, in the viewer beside its turns."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.e2e.pages.conftest import watched
from tests.e2e.proctor import exits
from tests.e2e.view.conftest import viewer

pytestmark = pytest.mark.browser

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
FOUND = "async () => (await axe.run()).violations.flatMap(each => each.nodes.map(node => `${each.id}: ${node.target}`))"
PLAN = """\
agents: [{name: reference, builtin: reference}]
tasks: [{name: town, environment: stss}, {name: talks, environment: stss, parameters: {level: language}}]
"""
DRAWING = "/runs/days/trials/0/drawing"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A viewer of a finished run of one trial at each level."""
    town: Path = tmp_path_factory.mktemp("town")
    (town / "plan.yaml").write_text(PLAN)
    exits(0, "run", "plan.yaml", "--name", "days", "--limit", "1", "-q", cwd=town)
    with viewer(town) as shown:
        yield shown


def test_the_viewer_leads_to_the_days_and_from_a_line_to_its_turn(address: str, page: Page) -> None:
    page.goto(f"{address}/runs/days/trials/0")
    page.get_by_role("link", name="The two days on the map").click()
    expect(page.get_by_role("heading", name="Who came")).to_be_visible()
    expect(page.locator(".days-clock")).not_to_have_text("Tuesday 2023-02-14, 19:00")
    page.get_by_role("link", name="turn 4", exact=True).click()
    expect(page.locator("#turn-4")).to_be_visible()
    page.goto(f"{address}/runs/days/trials/1")
    expect(page.get_by_role("link", name="The two days on the map")).to_have_count(0)


def test_a_trial_without_days_has_no_drawing(address: str, page: Page) -> None:
    answer = page.goto(f"{address}/runs/days/trials/1/drawing")
    assert answer is not None
    assert answer.status == 404
    assert "its world makes none" in page.locator("main").inner_text()


def test_keys_and_buttons_go_from_talk_to_talk(address: str, page: Page) -> None:
    page.goto(f"{address}{DRAWING}")
    clock, current = page.locator(".days-clock"), page.locator("li.days-mine[aria-current]")
    expect(current).to_have_count(1)
    first, spot = clock.inner_text(), page.locator(".days-me").get_attribute("transform")
    page.keyboard.press("ArrowRight")
    expect(clock).not_to_have_text(first)
    expect(current).to_have_count(1)
    assert page.locator(".days-talks line").count() >= 1
    page.get_by_role("button", name="previous talk").click()
    expect(clock).to_have_text(first)
    assert page.locator(".days-me").get_attribute("transform") == spot
    page.get_by_role("slider", name="Time").focus()
    page.keyboard.press("ArrowRight")
    expect(clock).not_to_have_text(first)
    page.keyboard.press("End")
    expect(clock).to_have_text("Tuesday 2023-02-14, 22:40")
    page.goto(f"{address}{DRAWING}#moment-2")
    expect(page.locator("#moment-2")).to_have_attribute("aria-current", "step")


def test_the_table_says_where_everybody_is_at_the_minute_of_the_slider(address: str, page: Page) -> None:
    page.goto(f"{address}{DRAWING}")
    ada = page.locator(".days-now tr", has=page.get_by_role("rowheader", name="Ada Birch"))
    expect(page.locator(".days-now td", has_text="talks with Ada Birch")).to_have_count(1)
    expect(ada).to_contain_text("talks with")
    page.get_by_role("slider", name="Time").focus()
    page.keyboard.press("Home")
    expect(ada).to_contain_text("on the way")
    expect(page.locator(".days-now td", has_text="talks with")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_the_page_is_whole_accessible_and_fits(address: str, browser: Browser, scheme: str, width: int) -> None:
    colours: Literal["light", "dark"] = "dark" if scheme == "dark" else "light"
    with (
        browser.new_context(color_scheme=colours, viewport={"width": width, "height": 900}) as made,
        watched(made, address) as shown,
    ):
        page = shown.page
        page.goto(f"{address}{DRAWING}")
        expect(page.locator("li.days-mine[aria-current]")).to_have_count(1)
        link = page.get_by_role("link", name="turn 4", exact=True).get_attribute("href")
        assert link == "/runs/days/trials/0?turn=4#turn-4"
        page.evaluate("() => document.querySelectorAll('details').forEach(each => { each.open = true })")
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        assert shown.trouble() == []
        page.evaluate(AXE)
        assert page.evaluate(FOUND) == []


def test_without_javascript_the_page_tells_the_days(address: str, browser: Browser) -> None:
    with browser.new_context(java_script_enabled=False) as made:
        page = made.new_page()
        page.goto(f"{address}{DRAWING}")
        expect(page.locator(".days-controls")).to_be_hidden()
        expect(page.locator(".days-clock")).to_have_text("Tuesday 2023-02-14, 19:00")
        assert page.locator(".days-story table tbody tr").count() >= 6
        assert page.locator(".days-moments > li").count() > 10
