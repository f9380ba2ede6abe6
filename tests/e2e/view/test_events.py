"""The stream of events over real connections: comments, bounds, hostile watchers, a store that goes away."""

import concurrent.futures
import contextlib
import http.client
import json
import re
import shutil
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from eval_client.view.events import MAX_STREAMS
from tests.database_servers import postgresql
from tests.e2e.proctor import begun as processes
from tests.e2e.proctor import proctor
from tests.e2e.view.conftest import Begin, viewer
from tests.pace import slowly, until

STREAM = "/events?run=done"
STILL_THERE = ": still there"
GROWTH_KB = 30_000
"""Memory that a viewer may take on by hundreds of watchers."""


@pytest.fixture(scope="module")
def address(played: Path) -> Iterator[str]:
    with viewer(played) as told:
        yield told


@contextlib.contextmanager
def opened(address: str, path: str = STREAM) -> Iterator[http.client.HTTPResponse]:
    with contextlib.closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=slowly(30))) as connection:
        connection.request("GET", path)
        with connection.getresponse() as answer:
            yield answer


def event(stream: http.client.HTTPResponse) -> list[str]:
    """The lines of the next event."""
    lines = []
    while line := stream.readline().decode().strip():
        lines.append(line)
    return lines


def changed(stream: http.client.HTTPResponse) -> bool:
    """Whether the next event that is not only a sign of life tells of a change."""
    while (told := event(stream)) == [STILL_THERE]:
        pass
    return told[0] == "event: changed"


def status(address: str, path: str) -> tuple[int, str | None]:
    try:
        with urllib.request.urlopen(address + path, timeout=slowly(30)) as answer:
            answer.read()
            return answer.status, None
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers["Retry-After"]


def memory_kb() -> int:
    """What the viewer that was begun last holds."""
    text = Path(f"/proc/{processes[-1].pid}/status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", text)[0])


def test_a_stream_tells_at_once_and_then_shows_that_it_is_there(address: str) -> None:
    with opened(address) as stream:
        assert stream.headers["Content-Type"].startswith("text/event-stream")
        assert stream.headers["Content-Security-Policy"]
        assert event(stream) == ["event: changed", 'data: {"version": 1}']
        began = time.monotonic()
        assert event(stream) == [STILL_THERE]
        assert time.monotonic() - began > 14


def test_streams_are_limited_and_others_are_served(address: str) -> None:
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(opened(address)) for _ in range(MAX_STREAMS)]
        assert {stream.status for stream in streams} == {200}
        assert status(address, STREAM) == (503, "5")
        assert status(address, "/runs/done") == (200, None)
    until(lambda: status_of_stream(address) == 200)


def status_of_stream(address: str) -> int:
    with opened(address) as stream:
        return stream.status


def test_watchers_that_come_back_every_moment_or_read_nothing_cost_little(address: str) -> None:
    host, port = urlsplit(address).hostname, urlsplit(address).port
    before = memory_kb()
    deaf = []
    for _ in range(8):
        silent = socket.create_connection((host, port))
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        silent.sendall(f"GET {STREAM} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode())
        deaf.append(silent)

    def come_back(_number: int) -> None:
        for _ in range(3):
            with opened(address) as stream:
                stream.readline()
            time.sleep(0.3)

    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        coming = [pool.submit(come_back, number) for number in range(100)]
        assert status(address, "/runs/done/trials") == (200, None)
        for each in coming:
            each.result()
    for silent in deaf:
        silent.close()
    assert memory_kb() - before < GROWTH_KB
    until(lambda: status_of_stream(address) == 200)


@pytest.mark.browser
def test_a_page_says_that_its_store_is_away_and_goes_on_after_it(played: Path, tmp_path: Path, page: Page) -> None:
    shutil.copytree(played / "runs", tmp_path / "runs")
    path = tmp_path / "runs" / "done" / "run.sqlite"
    with viewer(tmp_path, "done") as address:
        page.goto(f"{address}/runs/done")
        count = page.locator("#summary strong")
        expect(count).to_have_text("40/40")
        with opened(address) as stream:
            assert changed(stream)
            path.rename(path.with_suffix(".away"))
            assert changed(stream)
            assert status(address, "/runs/done") == (503, "5")
            expect(page.locator("body.away")).to_have_count(1, timeout=slowly(30_000))
            expect(count).to_have_text("40/40")
            path.with_suffix(".away").rename(path)
            assert changed(stream)
        expect(page.locator("body.away")).to_have_count(0, timeout=slowly(30_000))
        expect(count).to_have_text("40/40")


@pytest.mark.postgresql
def test_a_stream_outlives_a_database_server_that_was_killed(tmp_path: Path, run: Begin) -> None:
    with postgresql() as database:
        client = run("--limit", "2", PROCTOR_STORE=database.url)
        assert client.wait(slowly(120)) == 0
        with viewer(tmp_path, "--store", database.url) as address, opened(address, "/events?run=slow") as stream:
            assert changed(stream)
            database.kill()
            assert changed(stream)
            assert status(address, "/runs/slow") == (503, "5")
            database.start()
            assert changed(stream)
            assert status(address, "/runs/slow") == (200, None)
            told = json.loads(proctor("report", "slow", "--json", cwd=tmp_path, PROCTOR_STORE=database.url).stdout)
    assert sum(pair["scored"] for pair in told["pairs"]) == 4
