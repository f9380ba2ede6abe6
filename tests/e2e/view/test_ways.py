"""The ways through the pages in a browser, with a script and without: Back, filters, pages, links and forms."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from tests.e2e.view.conftest import viewer

pytestmark = pytest.mark.browser
SMALL: ViewportSize = {"width": 900, "height": 420}
"""A window in which a page of trials is longer than what is seen of it."""


@pytest.fixture(scope="module")
def address(played: Path) -> Iterator[str]:
    with viewer(played) as told:
        yield told


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without JavaScript"])
def window(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=request.param, viewport=SMALL)
    yield context.new_page()
    context.close()


def trials(page: Page) -> list[str]:
    return page.locator("#rows td:first-child a").all_text_contents()


def follow(page: Page, link: Locator) -> None:
    """Click on what leads to another page, and wait for all of it: a click alone ends as that page begins."""
    with page.expect_navigation():
        link.click()


def top_of(page: Page, trial: str) -> float:
    """How far below the window's upper edge a trial's row is."""
    box = page.locator(f"#rows td:first-child a:text-is('{trial}')").bounding_box()
    assert box is not None
    return box["y"]


def choose(page: Page, **fields: str) -> None:
    """Fill the filter, and filter."""
    for name, value in fields.items():
        field = page.locator(f".filters [name={name}]")
        if field.evaluate("each => each.localName") == "select":
            field.select_option(value)
        else:
            field.fill(value)
    follow(page, page.get_by_role("button", name="Filter"))


def test_back_leads_through_each_filter_sort_page_and_position(window: Page, address: str) -> None:
    window.goto(f"{address}/runs/done/trials?size=15")
    everything = trials(window)
    assert len(everything) == 15
    choose(window, agent="naive")
    expect(window).to_have_url(re.compile("agent=naive"))
    filtered = trials(window)
    assert filtered[0] == "20"
    follow(window, window.get_by_role("columnheader", name="sample").get_by_role("link"))
    expect(window).to_have_url(re.compile("sort=sample"))
    follow(window, window.get_by_role("columnheader", name="sample").get_by_role("link"))
    expect(window).to_have_url(re.compile("sort=-sample"))
    ordered = trials(window)
    assert ordered not in (filtered, everything)
    window.locator("#rows tr").nth(12).scroll_into_view_if_needed()
    place = top_of(window, ordered[12])
    assert place < SMALL["height"]
    follow(window, window.locator("#rows tr").nth(12).get_by_role("link").first)
    expect(window).to_have_url(re.compile(rf"/trials/{ordered[12]}\?"))
    window.go_back()
    expect(window).to_have_url(re.compile("agent=naive.*sort=-sample"))
    assert trials(window) == ordered
    expect(window.locator("select[name=agent]")).to_have_value("naive")
    assert top_of(window, ordered[12]) == pytest.approx(place, abs=2), "the page is where it was left"
    window.go_back()
    expect(window).to_have_url(re.compile("sort=sample"))
    window.go_back()
    expect(window).to_have_url(re.compile("agent=naive"))
    assert trials(window) == filtered
    window.go_back()
    expect(window).to_have_url(f"{address}/runs/done/trials?size=15")
    assert trials(window) == everything
    expect(window.locator("select[name=agent]")).to_have_value("")
    window.go_forward()
    assert trials(window) == filtered


def test_pages_follow_each_other_to_the_last_and_back(window: Page, address: str) -> None:
    window.goto(f"{address}/runs/done/trials?size=15&sort=-id")
    pages = [trials(window)]
    while window.get_by_role("link", name="next →").count():
        follow(window, window.get_by_role("link", name="next →"))
        expect(window.locator("#rows td:first-child a").first).not_to_have_text(pages[-1][0])
        pages.append(trials(window))
    assert [len(page) for page in pages] == [15, 15, 10]
    assert [trial for page in pages for trial in page] == [str(number) for number in reversed(range(40))]
    for page in reversed(pages[:-1]):
        window.go_back()
        expect(window.locator("#rows td:first-child a").first).to_have_text(page[0])
        assert trials(window) == page


def test_filters_together_and_a_search_keep_what_was_asked(window: Page, address: str) -> None:
    window.goto(f"{address}/runs/done/trials")
    choose(window, agent="reference", score="1", sample="1")
    expect(window).to_have_url(re.compile("agent=reference.*score=1.*sample=1"))
    found = trials(window)
    assert 0 < len(found) < 20
    follow(window, window.get_by_role("link", name=found[0], exact=True).first)
    follow(window, window.get_by_role("link", name="trials of this filter"))
    assert trials(window) == found
    choose(window, text="SELECT", sample="")
    expect(window).to_have_url(re.compile("text=SELECT"))
    expect(window.locator("#paging")).to_contain_text("searched")
    assert trials(window)
    for name, value in (("agent", "reference"), ("score", "1"), ("sample", ""), ("text", "SELECT")):
        expect(window.locator(f".filters [name={name}]")).to_have_value(value)
    follow(window, window.get_by_role("link", name="clear"))
    expect(window).to_have_url(f"{address}/runs/done/trials")
    assert len(trials(window)) == 40


@pytest.mark.smoke
def test_from_the_runs_to_a_comparison_by_links_and_forms_alone(window: Page, address: str) -> None:
    window.goto(address)
    follow(window, window.get_by_role("link", name="done", exact=True))
    expect(window).to_have_url(f"{address}/runs/done")
    follow(window, window.get_by_role("link", name="compare agents"))
    expect(window.locator("main")).to_contain_text("reference")
    window.goto(f"{address}/compare")
    window.locator("input[name=a]").fill("done:reference")
    window.locator("input[name=b]").fill("done:naive")
    follow(window, window.get_by_role("button", name="Compare"))
    expect(window).to_have_url(re.compile("a=done%3Areference.*b=done%3Anaive"))
    expect(window.locator("main")).to_contain_text("db-own")
    expect(window.locator("main svg").first).to_be_visible()
    window.goto(f"{address}/runs/done")
    follow(window, window.locator(".cell a").first)
    expect(window).to_have_url(re.compile("agent=reference&task=db-own"))
    follow(window, window.locator("#rows th a").first)
    follow(window, window.get_by_role("link", name="next →"))
    expect(window).to_have_url(re.compile(r"/trials/1\?agent=reference&task=db-own"))


def test_a_link_to_a_turn_opens_at_that_turn(window: Page, address: str) -> None:
    window.goto(f"{address}/runs/done/trials/0#turn-2")
    expect(window.locator("#turn-2")).to_be_in_viewport()
    assert window.locator("#turn-2").evaluate("each => each.getBoundingClientRect().top") < SMALL["height"] / 2
