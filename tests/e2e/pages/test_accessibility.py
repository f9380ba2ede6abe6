"""axe-core on each page of a demo run; in dark, whose colours are of one sheet, on one page of each kind."""

import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.e2e.pages.addresses import ERRORS, PAGES, QUIET, Named
from tests.e2e.pages.conftest import viewer
from tests.e2e.proctor import exits

pytestmark = pytest.mark.browser

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
FOUND = """async () => (await axe.run()).violations.flatMap(each => each.nodes.map(
    node => `${each.impact}: ${each.id}: ${node.target}`))"""
TOKEN = "a-long-random-token-of-the-viewer"
SERIOUS = ("serious", "critical")
SHOWN = (*PAGES, *QUIET, ERRORS[0], "/compare?a={run}:naive&b={run}:random")


def trouble(page: Page) -> list[str]:
    """What axe-core finds on a page that is serious or critical; evaluated, since the policy refuses scripts."""
    page.evaluate(AXE)
    return [each for each in page.evaluate(FOUND) if each.startswith(SERIOUS)]


@pytest.fixture(scope="module")
def origin(demo: Path) -> Iterator[str]:
    with viewer(demo) as address:
        yield address


@pytest.fixture(scope="module", params=["light", "dark"])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    with browser.new_context(color_scheme=request.param) as context:
        yield context.new_page()


def kinds(addresses: Sequence[str]) -> list[str]:
    """One address of each page, whatever its query and trial."""
    return list({re.sub(r"\?.*|\d+", "", address): address for address in addresses}.values())


@pytest.mark.parametrize(
    ("page", "address"),
    [
        *(("light", address) for address in SHOWN),
        *(("dark", address) for address in kinds(SHOWN)),
    ],
    indirect=["page"],
)
def test_a_page_has_nothing_serious(demo: Path, origin: str, page: Page, address: str) -> None:
    (run,) = (folder.name for folder in demo.iterdir())
    answer = page.goto(origin + Named(run, "db", "insert-00000").fill(address))
    assert answer is not None
    assert answer.ok == (address not in ERRORS)
    page.evaluate("() => document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert trouble(page) == []


def test_neither_has_the_report(demo: Path, page: Page, tmp_path: Path) -> None:
    (run,) = (folder.name for folder in demo.iterdir())
    exits(0, "report", run, "-o", str(demo), "--html", "r.html", "--samples", "--trials", "0", cwd=tmp_path)
    page.goto((tmp_path / "r.html").as_uri())
    page.evaluate("() => document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert trouble(page) == []


def test_neither_has_the_login(demo: Path, page: Page) -> None:
    with viewer(demo, PROCTOR_VIEW_TOKEN=TOKEN) as address:
        page.goto(f"{address}/login")
        assert page.get_by_label("Token").count() == 1
        assert trouble(page) == []


def test_it_notices_what_it_must(origin: str, page: Page) -> None:
    """So that the tests above can fail."""
    page.goto(f"{origin}/healthz")
    page.evaluate("() => { document.body.innerHTML = '<button></button>' }")
    assert any("button-name" in each for each in trouble(page))
