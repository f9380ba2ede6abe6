"""`proctor report --html` of a demo run, opened from its file in a real browser, and printed."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.pages.conftest import watched
from tests.e2e.proctor import exits

pytestmark = pytest.mark.browser

PAPER = round((210 - 2 * 13) * 96 / 25.4)
"""Pixels of CSS between the left and the right margin of the report's A4 pages."""
A4 = b"0 0 594.95996 841.91998"
WIDER = """width => [...document.body.querySelectorAll("*")].filter(each => {
    const box = each.getBoundingClientRect();
    const cut = getComputedStyle(each).overflowX !== "visible" && each.scrollWidth > each.clientWidth + 1;
    return box.width && (cut || box.right > width + 1 || box.left < -1);
}).map(each => `${each.tagName} ${each.className}: ${each.textContent.trim().slice(0, 50)}`)"""
"""Elements that reach beyond the page, or cut what they hold."""


@pytest.fixture(scope="module", params=[(), ("--samples", "--trials", "0,2,6,11,28")], ids=["alone", "with trials"])
def report(demo: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """The file of the demo run's report."""
    (run,) = (folder.name for folder in demo.iterdir())
    file = tmp_path_factory.mktemp("report") / "report.html"
    exits(0, "report", run, "--html", str(file), *request.param, cwd=demo.parent)
    return file


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with browser.new_context(viewport={"width": PAPER, "height": 900}) as context:
        yield context.new_page()


@pytest.mark.smoke
def test_it_opens_from_its_file_and_asks_for_nothing(browser: Browser, report: Path) -> None:
    with browser.new_context() as context, watched(context, "file://") as shown:
        asked: list[str] = []
        context.on("request", lambda request: asked.append(request.url))
        shown.page.goto(report.as_uri())
        assert "results" in shown.page.title()
        assert shown.page.get_by_role("heading", name="Scores", exact=True).count() == 1
        assert asked == [report.as_uri()]
        assert shown.trouble() == []
        shown.page.evaluate("() => { document.body.style.color = 'red'; document.body.innerHTML += '<p style=top:0>' }")
        shown.page.evaluate("() => fetch('http://127.0.0.1:1/').catch(() => {})")
        assert len(shown.said) >= 2, "its policy refuses styles and requests of whatever got in"


def test_nothing_of_it_is_cut_on_a4(page: Page, report: Path) -> None:
    page.emulate_media(media="print", color_scheme="light")
    page.goto(report.as_uri())
    page.evaluate("() => document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert page.evaluate(WIDER, PAPER) == []
    printed = page.pdf(prefer_css_page_size=True)
    assert set(re.findall(rb"/MediaBox \[([^]]+)]", printed)) == {A4}


def test_what_is_cut_is_noticed(page: Page) -> None:
    """So that the test above can fail."""
    page.set_content(
        "<div style='overflow: auto; width: 90px'><table><tr><td><pre>" + "x" * 200 + "</pre></table></div>"
    )
    assert any(each.startswith("DIV") for each in page.evaluate(WIDER, 700))
    assert any(each.startswith("TABLE") for each in page.evaluate(WIDER, 700))
