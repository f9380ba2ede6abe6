"""The keys of the pages in a browser: each does what the list of keys says, and none does anything while one types."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.view.conftest import viewer

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def address(played: Path) -> Iterator[str]:
    with viewer(played) as told:
        yield told


def focused(page: Page) -> str:
    """The address that the focused link leads to, without the viewer's."""
    return str(page.evaluate("() => document.activeElement.getAttribute('href') ?? ''"))


def place(page: Page) -> str:
    return re.sub(r"^http://[^/]+", "", page.url)


def test_rows_are_really_focused_opened_and_left(page: Page, address: str) -> None:
    page.goto(f"{address}/runs/done/trials")
    page.keyboard.press("j")
    assert focused(page) == "/runs/done/trials/0"
    page.keyboard.press("k")
    assert focused(page) == "/runs/done/trials/0", "there is no row before the first"
    for _ in range(2):
        page.keyboard.press("j")
    assert focused(page) == "/runs/done/trials/2"
    page.keyboard.press("Enter")
    page.wait_for_url("**/trials/2")
    page.keyboard.press("j")
    assert focused(page) == "#turn-1"
    page.keyboard.press("j")
    assert focused(page) == "#turn-2"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#turn-2$"))
    page.keyboard.press("u")
    page.wait_for_url("**/runs/done/trials")
    page.keyboard.press("u")
    page.wait_for_url("**/runs/done")
    page.keyboard.press("j")
    assert focused(page) == "/runs/done/trials?agent=reference&task=db-own"
    page.keyboard.press("u")
    page.wait_for_url(f"{address}/")
    page.goto(f"{address}/runs/done/trials")
    page.keyboard.press("k")
    assert focused(page) == "/runs/done/trials/39", "from nowhere, backwards is from the end"


def test_pages_are_a_key_away(page: Page, address: str) -> None:
    page.goto(f"{address}/runs/done/trials/1")
    for keys, there in (("go", "/runs/done"), ("gt", "/runs/done/trials")):
        for key in keys:
            page.keyboard.press(key)
        page.wait_for_url(address + there)
    page.keyboard.press("g")
    page.keyboard.press("x")
    page.keyboard.press("o")
    assert place(page) == "/runs/done/trials", "g and another key are used up"
    page.goto(f"{address}/runs/done/trials?size=15")
    page.keyboard.press("]")
    page.wait_for_url("**after=**")
    assert page.locator("#rows td a").first.text_content() == "15"


def test_other_relations_and_marks_are_followed_as_they_are_there(page: Page, address: str) -> None:
    for key, name, value, trial in (
        ("[", "rel", "prev", 6),
        ("]", "rel", "next", 8),
        ("s", "data-key", "s", 9),
    ):
        page.goto(f"{address}/runs/done/trials/7")
        page.evaluate(
            "([name, value, href]) => { const link = document.createElement('a'); link.setAttribute(name, value);"
            " link.href = href; document.querySelector('main').prepend(link) }",
            [name, value, f"/runs/done/trials/{trial}"],
        )
        page.keyboard.press(key)
        page.wait_for_url(f"**/trials/{trial}")


def test_search_and_filters_are_focused_from_every_page(page: Page, address: str) -> None:
    for start in ("/runs/done/trials", "/runs/done", "/runs/done/trials/3"):
        for key, field in (("/", "input[name=text]"), ("f", "select[name=agent]")):
            page.goto(address + start)
            page.keyboard.press(key)
            expect(page.locator(field)).to_be_focused()


def test_a_link_to_a_row_a_turn_or_the_page_is_copied(page: Page, address: str) -> None:
    page.goto(f"{address}/runs/done/trials?agent=naive")
    page.keyboard.press("c")
    expect(page.get_by_role("status")).to_have_text(f"Copied {address}/runs/done/trials?agent=naive")
    assert page.evaluate("() => navigator.clipboard.readText()") == f"{address}/runs/done/trials?agent=naive"
    page.keyboard.press("j")
    page.keyboard.press("c")
    expect(page.get_by_role("status")).to_have_text(f"Copied {address}/runs/done/trials/20?agent=naive")
    page.goto(f"{address}/runs/done/trials/0")
    page.keyboard.press("j")
    page.get_by_role("button", name="copy link").click()
    expect(page.get_by_role("status")).to_have_text(f"Copied {address}/runs/done/trials/0")
    page.keyboard.press("j")
    page.keyboard.press("c")
    expect(page.get_by_role("status")).to_have_text(f"Copied {address}/runs/done/trials/0#turn-1")


def test_turns_are_folded_and_the_list_of_keys_opens_and_closes(page: Page, address: str) -> None:
    page.goto(f"{address}/runs/done/trials/0")
    words, keys = page.locator(".turn .words").first, page.get_by_role("dialog", name="Keys")
    page.locator("summary").click()
    expect(page.locator(".evidence .words")).to_be_visible()
    page.keyboard.press(".")
    expect(words).to_be_hidden()
    expect(page.locator(".evidence .words")).to_be_hidden()
    page.keyboard.press(".")
    expect(words).to_be_visible()
    expect(keys).to_be_hidden()
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    expect(keys.get_by_role("button", name="Close")).to_be_focused()
    page.keyboard.press(".")
    expect(words).to_be_visible()
    page.keyboard.press("?")
    expect(keys).to_be_hidden()
    page.get_by_role("button", name="keys").click()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()


def test_nothing_happens_while_one_types(page: Page, address: str) -> None:
    page.goto(f"{address}/runs/done/trials")
    keys = "jkuscfgogt[]./?"
    page.locator("input[name=cause]").focus()
    page.keyboard.type(keys)
    expect(page.locator("input[name=cause]")).to_have_value(keys)
    expect(page.locator("input[name=cause]")).to_be_focused()
    expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
    page.locator("select[name=reason]").focus()
    page.keyboard.type("u")
    page.keyboard.press("j")
    expect(page.locator("select[name=reason]")).to_be_focused()
    page.locator("h1").click()
    for shortcut in ("Control+u", "Alt+j", "Meta+j"):
        page.keyboard.press(shortcut)
    assert place(page) == "/runs/done/trials"
    assert focused(page) == ""


def test_a_focused_row_keeps_the_focus_when_the_table_changes(page: Page, address: str) -> None:
    with page.expect_response(lambda answer: answer.url.endswith("/live")):
        page.goto(f"{address}/runs/done/trials")
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.evaluate(
        "() => { window.kept = document.querySelector('#rows tr:last-child');"
        " for (const row of document.querySelectorAll('#rows tr:not(:last-child)')) row.title = 'of an older table' }"
    )
    with page.expect_response(lambda answer: answer.url.endswith("/trials")):
        page.evaluate(
            "() => { Object.defineProperty(document, 'visibilityState', {value: 'hidden', configurable: true});"
            " document.dispatchEvent(new Event('visibilitychange')); delete document.visibilityState;"
            " document.dispatchEvent(new Event('visibilitychange')) }"
        )
    expect(page.locator("#rows tr[title]")).to_have_count(0)
    assert page.evaluate("() => window.kept.isConnected"), "what is the same stays"
    assert focused(page) == "/runs/done/trials/1"
