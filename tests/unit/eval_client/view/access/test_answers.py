"""The headers and the markup of each kind of answer that the viewer gives."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import httpx
import pytest

from eval_client.store.connection import sqlite_url
from eval_client.view.access import TRIES, ViewAccess
from eval_client.view.app import PAGES, SECURITY, build_app
from eval_client.view.json_api import ROUTES
from eval_client.view.rendering import assets
from eval_client.view.runs import FolderRuns, OneRun
from tests.e2e.pages.addresses import ERRORS, FILES, QUIET, TEXTS, Named
from tests.e2e.pages.addresses import PAGES as ADDRESSES
from tests.unit.eval_client.view.conftest import HOSTILE, ORIGIN, Client

TOKEN = "a-long-random-token-of-the-viewer"
BEARER = {"authorization": f"Bearer {TOKEN}"}
NAMES = Named("first", "riddles", HOSTILE, HOSTILE)
EVERY = tuple(NAMES.fill(address) for address in (*ADDRESSES, *QUIET, *ERRORS, *TEXTS, *FILES))
POLICY = {
    **dict.fromkeys(("script-src", "style-src", "img-src", "connect-src", "form-action"), "'self'"),
    **dict.fromkeys(("default-src", "base-uri", "frame-ancestors"), "'none'"),
}


class Markup(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keeps an element."""
        self.elements.append((tag, dict(attrs)))

    def forbidden(self) -> Iterator[str]:
        """Styles and scripts that stand in the page itself, and addresses of other hosts."""
        for tag, attributes in self.elements:
            if tag == "style" or (tag == "script" and not attributes.get("src")):
                yield tag
            yield from (name for name in attributes if name == "style" or name.startswith("on"))
            for name in ("href", "src", "action", "formaction"):
                if not re.match(r"/(?!/)|#|$|\?", attributes.get(name) or ""):
                    yield f"{name}={attributes[name]}"


def check(answer: httpx.Response) -> None:
    """That an answer has the headers of every answer, and no markup that the policy refuses."""
    assert {name: answer.headers.get(name) for name in SECURITY} == SECURITY
    assert answer.headers["cache-control"] in ("no-store", "public, max-age=31536000, immutable")
    if answer.headers.get("content-type", "").startswith("text/html"):
        assert list(Markup(answer.text).forbidden()) == []


def test_the_policy_allows_what_is_our_own_alone() -> None:
    rules = dict(rule.split(" ", 1) for rule in SECURITY["Content-Security-Policy"].split("; "))
    assert rules == POLICY
    assert {name: value for name, value in SECURITY.items() if name != "Content-Security-Policy"} == {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


@pytest.mark.parametrize("markup", ["<p style=a>", "<script>", "<a onclick=a>", "<a href=//a>", "<img src='a:b'>"])
def test_forbidden_markup_is_noticed(markup: str) -> None:
    """So that the tests here can fail."""
    assert list(Markup(markup).forbidden())


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_pages_errors_json_and_files(client: Client, method: str) -> None:
    async with client() as viewer:
        for address in EVERY:
            check(await viewer.request(method, address))


async def test_assets_and_what_is_no_asset(client: Client) -> None:
    async with client() as viewer:
        for asset in assets().values():
            answer = await viewer.get(asset.address)
            assert answer.status_code == 200
            check(answer)
        check(await viewer.get("/assets/view.000000000000.css"))


async def test_refusals_redirects_and_logins(folder: Path, client: Client) -> None:
    async with client(TOKEN) as viewer:
        answers = [await viewer.get(address) for address in EVERY]
        answers += [await viewer.get(address, headers={"accept": "text/html"}) for address in EVERY]
        answers += [await viewer.get("/login"), await viewer.get("/login?next=//evil.example")]
        answers += [await viewer.post("/login", data={"token": "wrong"}) for _ in range(TRIES + 1)]
        answers.append(await viewer.post("/login", data={"out": "1"}))
        answers.append(await viewer.post("/login", content=b"\xff" * 9_000))
    async with client(TOKEN) as viewer:
        answers.append(await viewer.post("/login", data={"token": TOKEN, "next": "/runs/first"}))
    async with client(origin="https://evil.example") as viewer:
        answers += [await viewer.get(address) for address in EVERY]
    app = build_app(OneRun(sqlite_url(folder / "first"), "first"), ViewAccess())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as viewer:
        answers.append(await viewer.get("/"))
    for answer in answers:
        check(answer)
    assert {answer.status_code for answer in answers} == {200, 303, 307, 400, 401, 403, 429}


async def test_a_store_that_does_not_answer(folder: Path, client: Client) -> None:
    async with client() as viewer:
        check(await viewer.get("/runs/first"))
        (folder / "first" / "run.sqlite").write_bytes(b"no database at all, " * 100)
        for address in ("/runs/first", "/api/v1/runs/first"):
            answer = await viewer.get(address)
            assert answer.status_code == 503
            check(answer)


async def test_a_failure_of_our_own_says_nothing_of_itself(folder: Path) -> None:
    class Broken(FolderRuns):
        def entries(self) -> list[object]:  # type: ignore[override]
            raise RuntimeError("canary-of-an-error")

    transport = httpx.ASGITransport(build_app(Broken(folder), ViewAccess()), raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as viewer:
        for address in ("/", "/api/v1/runs"):
            answer = await viewer.get(address)
            assert (answer.status_code, "canary" in answer.text) == (500, False)
            check(answer)


@pytest.mark.parametrize("tokens", [(), (TOKEN,)], ids=["no token", "a token"])
async def test_nothing_but_reading_is_allowed_anywhere(client: Client, tokens: tuple[str, ...]) -> None:
    routes = [path.format(run="first", trial="0", name="matrix") for path, _ in (*PAGES, *ROUTES)]
    routes += [asset.address for asset in assets().values()] + ["/healthz"]
    async with client(*tokens, **BEARER) as viewer:
        for path in routes:
            for method in ("POST", "PUT", "DELETE", "PATCH"):
                answer = await viewer.request(method, path)
                assert answer.status_code == 405, (method, path)
                check(answer)
        for method in ("PUT", "DELETE", "PATCH"):
            assert (await viewer.request(method, "/login")).status_code == (405 if tokens else 404)
