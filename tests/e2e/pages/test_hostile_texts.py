"""Texts of models, worlds, files and servers that try to be something else than text, in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.e2e.pages.addresses import ERRORS, FILES, PAGES, QUIET, TEXTS, Named
from tests.e2e.pages.conftest import Watched, viewer, watched
from tests.e2e.pages.hostile import LATER, MARK, RUN, SAMPLE, TASK, TYPED, hostile_folder

pytestmark = pytest.mark.browser

STRANGE = """() => [...document.querySelectorAll("*")].flatMap(element => [
    ...["BASE", "EMBED", "IFRAME", "IMG", "OBJECT", "STYLE", "TEXTAREA"].filter(tag => element.tagName === tag),
    ...(element.tagName === "SCRIPT" && !element.src ? ["SCRIPT"] : []),
    ...(element.tagName === "META" && element.httpEquiv ? ["META"] : []),
    ...[...element.attributes].map(each => each.name).filter(name => name === "style" || name.startsWith("on")),
    ...["href", "src", "action", "formAction"].map(name => element[name])
        .filter(address => typeof address === "string" && address && !address.startsWith(location.origin + "/")),
])"""
"""Elements, attributes and addresses that no page of ours has."""
UNFOLD = """() => document.querySelectorAll("details").forEach(each => { each.open = true })"""


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a viewer of the hostile runs."""
    folder: Path = tmp_path_factory.mktemp("hostile")
    hostile_folder(folder)
    with viewer(folder) as address:
        yield address


@pytest.fixture(scope="module")
def page(browser: Browser, origin: str) -> Iterator[Watched]:
    """One page goes to all addresses: a browser starts a process for each new one."""
    with browser.new_context() as context, watched(context, origin) as found:
        yield found


@pytest.fixture
def shown(page: Watched) -> Iterator[Watched]:
    """The page, and what it did since the last test."""
    yield page
    page.forget()


@pytest.mark.parametrize("run", [RUN, LATER], ids=["hostile name", "plain name"])
@pytest.mark.parametrize("address", [*PAGES, *QUIET, *ERRORS])
def test_a_page_shows_them_as_text(shown: Watched, address: str, run: str) -> None:
    page, names = shown.page, Named(run, TASK, SAMPLE, TYPED)
    answer = page.goto(shown.origin + names.fill(address))
    assert answer is not None
    assert answer.ok or (address not in PAGES and answer.status < 500)
    page.evaluate(UNFOLD)
    assert page.title().endswith(" · Proctor")
    assert page.evaluate(STRANGE) == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    page.mouse.move(300, 300)
    assert shown.trouble() == []
    body = page.locator("body").inner_text()
    if address in PAGES:
        assert MARK in body
        assert "{{7*7}}" in body
        assert "\\x1b[31m" in body
    assert not set(body) & set("\x00\x1b\x9b\u202e\u2066")


@pytest.mark.parametrize("address", TEXTS)
def test_an_answer_for_programs_stays_text_in_a_browser(shown: Watched, address: str) -> None:
    answer = shown.page.goto(shown.origin + Named(RUN, TASK, SAMPLE, TYPED).fill(address))
    assert answer is not None
    assert answer.status < 500
    assert "json" in answer.headers["content-type"]
    assert shown.page.locator("img, iframe, a, svg").count() == 0
    assert shown.trouble() == []


@pytest.mark.parametrize("address", FILES)
def test_a_whole_text_is_saved_not_shown(shown: Watched, address: str) -> None:
    page = shown.page
    page.goto(shown.origin + "/")
    with page.expect_download() as saving:
        page.evaluate("address => { location.href = address }", Named(RUN, TASK, SAMPLE).fill(address))
    assert MARK in Path(saving.value.path()).read_text(encoding="utf-8")
    assert page.url == shown.origin + "/"
    assert shown.trouble() == []


def test_what_was_typed_stands_in_its_field_as_text(shown: Watched) -> None:
    page = shown.page
    page.goto(shown.origin + Named(LATER, TASK, SAMPLE, TYPED).fill("/runs/{run}/trials?cause={text}"))
    assert MARK in page.get_by_label("cause").input_value()
    assert page.evaluate(STRANGE) == []
    assert shown.trouble() == []


def test_the_watch_notices_what_it_must(shown: Watched) -> None:
    """So that the tests above can fail."""
    page = shown.page
    page.goto(f"{shown.origin}/healthz")
    page.evaluate("() => { document.body.innerHTML = '<img src=//127.0.0.1:1/i onerror=alert(1) style=top:0>' }")
    assert len(page.evaluate(STRANGE)) == 4
    page.evaluate("() => alert(1)")
    assert shown.dialogs == ["1"]
    assert any("Content Security Policy" in said for said in shown.said)
