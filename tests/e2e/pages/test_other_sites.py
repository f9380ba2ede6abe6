"""Pages of other web sites against the viewer, in a real browser that knows both."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from eval_client.view.access import COOKIE
from tests.e2e.pages.conftest import viewer
from tests.pace import until
from tests.support import serving
from tests.unit.eval_client.report.compare.stored import stored_run

pytestmark = pytest.mark.browser

TOKEN = "a-long-random-token-of-the-viewer"
RUN = "/runs/first/trials?sort=-score"
OTHER_PAGE = """<!doctype html><title>other</title>
<a id=link href="VIEWER/runs/first/trials?sort=-score">look</a> <a id=api href="VIEWER/api/v1/runs">look</a>
<iframe src="VIEWER/runs/first?frame"></iframe><img src="VIEWER/runs/first?image">
<script src="VIEWER/runs/first?script"></script><link rel=stylesheet href="VIEWER/runs/first?style">
<form method=post action="VIEWER/runs/first?form"><button>send</button></form>
<form method=post action="VIEWER/login"><input name=token value="TOKEN"><button id=login>log in</button></form>
<script>
const ask = options => fetch("VIEWER/api/v1/runs?fetch", options).catch(() => {});
Promise.all([ask({credentials: "include"}), ask({credentials: "include", mode: "no-cors"})])
    .then(() => { document.title = "asked"; });
</script>"""
ASKED = ("frame", "image", "script", "style", "fetch")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    stored_run(folder, "first", {"gpt": {"t": [1.0, 0.0]}}).engine.dispose()
    return folder


@contextmanager
def other_site(shown: str) -> Iterator[str]:
    """The address of a site that refers to a viewer in every way: another host to the browser, so cross-site."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = OTHER_PAGE.replace("VIEWER", shown).replace("TOKEN", TOKEN).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server, serving(server):
        yield f"http://localhost:{server.server_port}"


@contextmanager
def opened(browser: Browser, shown: str) -> Iterator[tuple[BrowserContext, str]]:
    """A fresh profile, and the other site's address."""
    with other_site(shown) as address, browser.new_context() as context:
        yield context, address


class Answers:
    """How the viewer answered the other site's page: the browser shows the page itself none of it."""

    def __init__(self, page: Page, shown: str) -> None:
        self._page, self._shown = page, shown
        self._asked, self._status = dict[str, str](), dict[str, int]()
        session = page.context.new_cdp_session(page)
        session.on("Network.requestWillBeSent", self._ask)
        session.on("Network.responseReceivedExtraInfo", self._answer)
        session.send("Network.enable")

    def _ask(self, event: dict[str, Any]) -> None:
        self._asked.setdefault(event["requestId"], event["request"]["url"])

    def _answer(self, event: dict[str, Any]) -> None:
        self._status.setdefault(event["requestId"], event["statusCode"])

    def told(self) -> dict[str, int]:
        """What of the page asked -> the status of the first answer, once each of ASKED has one."""
        until(lambda: self._so_far().keys() >= set(ASKED), seen=self._so_far)
        return self._so_far()

    def _so_far(self) -> dict[str, int]:
        self._page.wait_for_timeout(1)  # in which the browser's events are heard: that of a status may come late
        asked = ((name.partition("?")[2], each) for each, name in self._asked.items() if name.startswith(self._shown))
        return {name: self._status[each] for name, each in asked if name in ASKED and each in self._status}


def log_in(page: Page, shown: str, path: str = "/") -> None:
    page.goto(shown + path)
    page.get_by_label("Token").fill(TOKEN)
    page.get_by_role("button", name="Log in").click()


def test_without_a_token_only_a_link_that_is_clicked_leads_in(browser: Browser, runs: Path) -> None:
    with viewer(runs) as shown, opened(browser, shown) as (context, address):
        page = context.new_page()
        answers = Answers(page, shown)
        page.goto(address)
        expect(page).to_have_title("asked")
        assert answers.told() == dict.fromkeys(ASKED, 403)
        with page.expect_response(f"{shown}/runs/first?form") as sent:
            page.get_by_role("button", name="send").click()
        assert sent.value.status == 403
        page.goto(address)
        with page.expect_response(f"{shown}/api/v1/runs") as sent:
            page.locator("#api").click()
        assert sent.value.status == 403
        page.goto(address)
        page.locator("#link").click()
        page.wait_for_url(shown + RUN)
        assert page.title() == "Trials of first · Proctor"
        assert page.evaluate("() => window.opener") is None


def test_the_cookie_goes_along_with_a_link_and_with_nothing_else(browser: Browser, runs: Path) -> None:
    with viewer(runs, PROCTOR_VIEW_TOKEN=TOKEN) as shown, opened(browser, shown) as (context, address):
        page = context.new_page()
        log_in(page, shown, RUN)
        page.wait_for_url(shown + RUN)
        (cookie,) = context.cookies()
        assert (cookie["name"], cookie["httpOnly"], cookie["sameSite"]) == (COOKIE, True, "Lax")
        assert TOKEN not in cookie["value"]
        assert page.evaluate("() => document.cookie") == ""
        answers = Answers(page, shown)
        page.goto(address)
        expect(page).to_have_title("asked")
        assert answers.told() == {**dict.fromkeys(ASKED, 401), "frame": 303}
        page.locator("#link").click()
        page.wait_for_url(shown + RUN)
        assert page.title() == "Trials of first · Proctor"


def test_another_site_logs_nobody_in(browser: Browser, runs: Path) -> None:
    with viewer(runs, PROCTOR_VIEW_TOKEN=TOKEN) as shown, opened(browser, shown) as (context, address):
        page = context.new_page()
        page.goto(address)
        with page.expect_response(f"{shown}/login") as sent:
            page.locator("#login").click()
        assert sent.value.status == 400
        assert context.cookies() == []


def test_a_logout_ends_the_cookie_for_whoever_has_a_copy(browser: Browser, runs: Path) -> None:
    with viewer(runs, PROCTOR_VIEW_TOKEN=TOKEN) as shown, browser.new_context() as context:
        page = context.new_page()
        log_in(page, shown)
        (stolen,) = context.cookies()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Token")).to_be_visible()
        assert context.cookies() == []
        context.add_cookies([{"name": COOKIE, "value": stolen["value"], "url": shown}])
        page.goto(f"{shown}/runs/first")
        expect(page.get_by_label("Token")).to_be_visible()


@pytest.mark.parametrize(
    "elsewhere", ["OTHER/", "//HOST/", "/\\HOST/", "/%09/HOST/", "/%0a/HOST", "\\\\HOST", "javascript:alert(1)"]
)
def test_a_login_leads_to_no_other_host(browser: Browser, runs: Path, elsewhere: str) -> None:
    with viewer(runs, PROCTOR_VIEW_TOKEN=TOKEN) as shown, opened(browser, shown) as (context, address):
        path = elsewhere.replace("OTHER", address).replace("HOST", address.removeprefix("http://"))
        page = context.new_page()
        log_in(page, shown, f"/login?next={path}")
        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        assert page.url == f"{shown}/"
