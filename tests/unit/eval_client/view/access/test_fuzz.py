"""Ten thousand addresses that nobody should ask for: each has an answer that is no failure and not too large."""

import base64
import json
import random
from pathlib import Path
from urllib.parse import quote, quote_from_bytes, unquote

import pytest
from starlette.types import ASGIApp, Message

from eval_client.store.trials.rows import SORTS
from eval_client.view.access import COOKIE, ViewAccess
from eval_client.view.app import PAGES, SECURITY, build_app
from eval_client.view.json_api import ROUTES
from eval_client.view.runs import FolderRuns
from proctor.config.tokens import AccessTokens
from tests.unit.eval_client.view.conftest import AGENTS, HOSTILE, SAMPLES

REQUESTS = 4_000
BUDGET = 250_000
"""Bytes of an answer: what the page of 50 agents by 20 tasks may have."""
TOKEN = "a-long-random-token-of-the-viewer"
NAMES = (
    *("agent", "task", "sample", "reason", "score", "cause", "sort", "after", "size", "journal", "turn", "earlier"),
    *("part", "next", "a", "b", "text", "run", "", "\0", "size[]"),
)
TEXTS = (
    *(
        "",
        "0",
        "1",
        "-1",
        "2",
        "8",
        "16",
        "23",
        "99",
        "1e3",
        "0x1",
        "٣",
        "007",
        "9" * 9,
        "9" * 30,
        str(2**31),
        str(2**63),
    ),
    *("nan", "inf", "-inf", "1e999", "0..1", "..", "0..", "..1", "1..0", "nan..1", "none", "completed", "task_error"),
    *("first", "riddles", "answer", "reasoning", "message-0", "message-1-call-0", "answer-call-0", "message--1"),
    *("/", "//", "../..", "%2e%2e", "\0", "\n", "\\", "'", '"', "%", "_", "%%", "'; DROP TABLE proctor_trial; --"),
    *("{{7*7}}", "${7*7}", "\ufeff", "\u202e", "\U0001f600", "é" * 200, "x" * 255, "x" * 256, "x" * 5_000, "[", "]"),
    *SORTS,
    *("-" + sort for sort in SORTS),
    *AGENTS,
    *SAMPLES,
)
VALUES: tuple[object, ...] = (
    None,
    True,
    -1,
    0,
    7,
    0.5,
    1e308,
    2**70,
    "",
    "a",
    "x" * 300,
    "\0",
    [],
    {},
    [1],
    {"a": 1},
    HOSTILE,
)
METHODS = (*("GET",) * 20, "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "", "get")
HEADERS = (
    (b"host", (b"127.0.0.1:7400", b"localhost", b"evil.example", b"[", b"", b"\xff", b"[::1]:1")),
    (b"origin", (b"null", b"http://127.0.0.1:7400", b"://", b"\xff")),
    (b"sec-fetch-site", (b"none", b"cross-site", b"same-origin", b"\xff")),
    (b"sec-fetch-mode", (b"navigate", b"cors")),
    (b"sec-fetch-dest", (b"document", b"iframe")),
    (b"accept", (b"text/html", b"*/*", b"")),
    (b"cookie", (f"{COOKIE}=1.2.3".encode(), f"{COOKIE}=\xff".encode("latin-1"), b"=;=;", f'{COOKIE}="'.encode())),
    (b"authorization", (b"Bearer x", b"Bearer \xff", b"Basic", b"")),
)


class Fuzz:
    """Draws addresses and headers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def method(self) -> str:
        return self._random.choice(METHODS)

    def path(self) -> bytes:
        """A path: of a route with names of all kinds in it, or of anything at all."""
        draw = self._random
        routes = (
            *(route for route, _ in (*PAGES, *ROUTES)),
            "/login",
            "/healthz",
            "/assets/{name}",
            "/{a}/{b}",
            "/{a}",
        )
        parts = [self._part(part) for part in draw.choice(routes).split("/")[1:]]
        if draw.random() < 0.1:
            parts.insert(draw.randrange(len(parts) + 1), draw.choice(("", "..", "%00", "%ff", "%2e%2e%2f", "a" * 300)))
        return ("/" + "/".join(parts)).encode("ascii")

    def query(self) -> bytes:
        """A query of any number of fields."""
        draw = self._random
        fields = [f"{quote(draw.choice(NAMES))}={self._value()}" for _ in range(draw.choice((0, 0, 1, 1, 1, 2, 3, 8)))]
        return draw.choice(("&", "&", "&", ";", "&&")).join(fields).encode("ascii")

    def headers(self) -> list[tuple[bytes, bytes]]:
        """Mostly those of a browser that may look; sometimes anything."""
        draw = self._random
        if draw.random() < 0.8:
            return [(b"host", b"127.0.0.1:7400"), (b"authorization", f"Bearer {TOKEN}".encode())]
        return [(name, draw.choice(values)) for name, values in HEADERS if draw.random() < 0.5]

    def _part(self, part: str) -> str:
        draw = self._random
        if not part.startswith("{"):
            return part
        usual = {"{run}": "first", "{trial}": str(draw.randrange(24))}
        return usual[part] if part in usual and draw.random() < 0.7 else quote(draw.choice(TEXTS), safe="")

    def _value(self) -> str:
        draw = self._random
        kind = draw.randrange(10)
        if kind == 0:
            return quote_from_bytes(draw.randbytes(draw.randrange(12)))
        if kind == 1:
            cursor = json.dumps([draw.choice(VALUES) for _ in range(draw.choice((0, 1, 2, 2, 2, 3)))])
            return base64.urlsafe_b64encode(cursor.encode()).decode().rstrip("=")
        return quote(draw.choice(TEXTS), errors="replace")


async def answer(
    app: ASGIApp, method: str, path: bytes, query: bytes, headers: list[tuple[bytes, bytes]]
) -> list[Message]:
    """What the app sends; the scope is as uvicorn makes it."""
    sent: list[Message] = []
    asked: list[Message] = [{"type": "http.request", "body": query[:100], "more_body": False}]

    async def receive() -> Message:
        return asked.pop() if asked else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    where = {"path": unquote(path.decode("ascii")), "raw_path": path, "query_string": query, "root_path": ""}
    ends = {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 7400), "scheme": "http", "http_version": "1.1"}
    await app({"type": "http", "method": method, "headers": headers, **where, **ends}, receive, send)
    return sent


@pytest.mark.thorough
@pytest.mark.parametrize("tokens", [(), (AccessTokens(TOKEN),)], ids=["no token", "a token"])
async def test_no_address_fails_and_no_answer_is_too_large(folder: Path, tokens: tuple[AccessTokens, ...]) -> None:
    app = build_app(FolderRuns(folder), ViewAccess(*tokens))
    before = (folder / "first" / "run.sqlite").read_bytes()
    fuzz, met = Fuzz(len(tokens)), set[int]()
    for _ in range(REQUESTS // 2):
        request = fuzz.method(), fuzz.path(), fuzz.query(), fuzz.headers()
        start, *bodies = await answer(app, *request)
        met.add(start["status"])
        assert start["status"] < 500, request
        assert sum(len(each.get("body", b"")) for each in bodies) <= BUDGET, request
        assert {name.lower().encode() for name in SECURITY} <= {name for name, _ in start["headers"]}, request
    assert met >= ({200, 303, 400, 401, 404, 405} if tokens else {200, 400, 403, 404, 405})
    assert (folder / "first" / "run.sqlite").read_bytes() == before
