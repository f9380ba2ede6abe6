"""The viewer, `report --html` and `compare` on 100,000 trials: CPU as a multiple of one query's, weights, memory.

`sums` is the CPU of the query SUMS of `view_store.py` by Python's own sqlite3. Pages are asked for over ASGI in this
process, which has shown pages of another run before. Figures of CPU are the least of several tries, since other work
only adds. First contentful paints are wall times in Chromium, from a real `proctor view`, in turns with those of that
server's smallest page. Not measured: what a viewer costs the client of a run under way, and a live page that waits.
"""

import asyncio
import itertools
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from urllib.request import urlopen

from starlette.types import ASGIApp, Message

from benchmarks.measure import Figure, figure, main, median, peak_mb
from benchmarks.view_store import AGENTS, LONG_TRIAL, LONG_TURNS, RUN, SUMS, fill, summarize
from benchmarks.world import CLI
from eval_client.store.store import Store
from eval_client.store.trials.rows import SORTS
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.rendering import assets
from eval_client.view.runs import FolderRuns
from tests.database_servers import program
from tests.support import CHROMIUM

WARM, WIDE = "warm", "wide"
"""The runs beside RUN: a small one, to load the code, and one of 50 agents by 20 tasks."""
OVERVIEW, TRIALS, TRIAL = f"/runs/{RUN}", f"/runs/{RUN}/trials", f"/runs/{RUN}/trials/{LONG_TRIAL}"
SMALLEST = "/nothing"
FILTERS = (
    "",
    "agent=agent-3",
    "task=task-7",
    "sample=99",
    "reason=turn_limit",
    "score=0..0.5",
    "score=none",
    "cause=refused",
    "agent=agent-3&task=task-7&reason=completed&score=0.2..&sample=7",
)
TRIES, COMMAND_TRIES, PAINTS, QUICK_PAINTS = 5, 3, 15, 2
CANDIDATES = 10
"""Pages of trials, the dearest in a first round, that are measured again."""
FIRST_PAINT = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
NEEDLESS = ("eval_client.view", "eval_client.report", "eval_client.core.statistics", "jinja2", "markupsafe")
"""Packages that `--version` and `--help` don't import."""


def measure(quick: bool) -> Iterator[Figure]:
    """100,000 trials before and after the tasks' own metrics were made; in a quick run 1,000, which say little."""
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as name:
        folder = Path(name)
        store = fill(folder, RUN, samples=10 if quick else 1_000)
        fill(folder, WARM, samples=10)
        fill(folder, WIDE, agents=50, tasks=20, samples=1 if quick else 4)
        tries = 1 if quick else TRIES
        sums_s = _least(lambda: _sums(folder), tries)
        yield figure("sums", 1000 * sums_s, "ms CPU")
        with asyncio.Runner() as runner:
            yield from _pages(runner, folder, store, sums_s, quick)
            yield from _weights(runner, folder)
        yield from _commands(folder, sums_s, 1 if quick else COMMAND_TRIES)
        yield from _server(folder, QUICK_PAINTS if quick else PAINTS)
        for command in ("--version", "--help"):
            yield figure(f"proctor {command}: packages of this imported", _imported(command), "", at_most=0)


def _pages(runner: asyncio.Runner, folder: Path, store: Store, sums_s: float, quick: bool) -> Iterator[Figure]:
    most = 1 if quick else TRIES

    def page_s(address: str, tries: int = most) -> float:
        return _least(lambda: _cpu_s(lambda: runner.run(_get(app, address))), tries) / sums_s

    def first_s() -> float:
        """The first overview of a viewer that has shown another run."""
        app = _app(folder)
        for path in ("", "/trials", "/trials/0"):
            runner.run(_get(app, f"/runs/{WARM}{path}"))
        return _cpu_s(lambda: runner.run(_get(app, OVERVIEW)))

    app = _app(folder)
    yield figure(
        "overview, nothing cached: before the tasks' metrics", _least(first_s, most) / sums_s, "x sums", at_most=1.5
    )
    runner.run(_get(app, OVERVIEW))
    yield figure("overview again within its cache", page_s(OVERVIEW), "x sums", at_most=0.1)
    ways = [f"{sort}{name}" for name in SORTS for sort in ("", "-")]
    asked = itertools.product(FILTERS[:: 4 if quick else 1], ways[:: 6 if quick else 1])
    costs = {address: page_s(address, 1) for address in (f"{TRIALS}?{given}&sort={sort}" for given, sort in asked)}
    yield figure("page of 100 trials: median of all filters and sorts", median(list(costs.values())), "x sums")
    dearest = {address: page_s(address) for address in sorted(costs, key=lambda address: costs[address])[-CANDIDATES:]}
    print(f"the dearest page: {max(dearest, key=lambda address: dearest[address])}", file=sys.stderr)
    yield figure("page of 100 trials: dearest filter and sort", max(dearest.values()), "x sums", at_most=0.5)
    yield figure(f"one trial with {LONG_TURNS} turns", page_s(TRIAL), "x sums", at_most=0.1)
    summarize(store)
    yield figure(
        "overview, nothing cached: with the tasks' metrics", _least(first_s, most) / sums_s, "x sums", at_most=1.5
    )


def _weights(runner: asyncio.Runner, folder: Path) -> Iterator[Figure]:
    app = _app(folder)
    for name, address, most in (
        ("page of 100 trials", TRIALS, 150),
        ("overview of 50 x 20", f"/runs/{WIDE}", 250),
    ):
        yield figure(f"weight: {name}", len(runner.run(_get(app, address))) / 1000, "KB", at_most=most)
    loaded = [asset for asset in assets().values() if asset.address.endswith((".css", ".js"))]
    yield figure("weight: CSS and JS", sum(len(asset.content) for asset in loaded) / 1000, "KB", at_most=60)
    text = runner.run(_get(app, TRIALS)).decode()
    yield figure("files of CSS and JS of a page", sum(asset.address in text for asset in loaded), "", at_most=2)


def _commands(folder: Path, sums_s: float, tries: int) -> Iterator[Figure]:
    run = str(folder / RUN)
    html = ["report", run, "--html", str(folder / "report.html")]
    report_s, html_s = (_least(partial(_process_s, given), tries) for given in (["report", run], html))
    yield figure("report", report_s / sums_s, "x sums")
    yield figure("report --html", html_s / report_s, "x report", at_most=3)
    sides = [f"{run}:{agent}" for agent in AGENTS[:2]]
    compared_s = _least(lambda: _process_s(["compare", *sides]), tries)
    yield figure("compare of two agents", compared_s / sums_s, "x sums", at_most=10)


def _server(folder: Path, times: int) -> Iterator[Figure]:
    """A real viewer: its memory after all pages, and what Chromium paints when."""
    with _viewer(folder) as (process, url):
        for path in (OVERVIEW, TRIALS, TRIAL, f"{TRIALS}?sort=-score", f"/runs/{WIDE}", "/"):
            with urlopen(url + path) as answer:
                answer.read()
        yield figure("viewer's memory", peak_mb(process.pid), "MB", at_most=150)
        if program(CHROMIUM) is None:
            print(f"no {CHROMIUM} here; paints are left out", file=sys.stderr)
            return
        paints = _paints(url, times)
    for name, path, most in (("overview, cached", OVERVIEW, 2), ("page of 100 trials", TRIALS, 6)):
        ratio = median(paints[path]) / median(paints[SMALLEST])
        yield figure(f"first contentful paint: {name}", ratio, "x smallest page", at_most=most)


def _paints(url: str, times: int) -> dict[str, list[float]]:
    """Milliseconds from navigation to the first contentful paint, for each page in turns."""
    from tests.browser import chromium

    found: dict[str, list[float]] = {OVERVIEW: [], TRIALS: [], SMALLEST: []}
    with chromium() as browser:
        page = browser.new_page()
        for path, paints in itertools.chain(*itertools.repeat(found.items(), times)):
            page.goto(url + path)
            while (painted := page.evaluate(FIRST_PAINT)) is None:
                page.wait_for_timeout(20)
            paints.append(float(painted))
    return found


@contextmanager
def _viewer(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [*CLI, "view", "--no-open", "--port", "0", "--output", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()


def _app(folder: Path) -> ASGIApp:
    return build_app(FolderRuns(folder), ViewAccess())


async def _get(app: ASGIApp, address: str) -> bytes:
    """The body of a page. Raises SystemExit where it is an error."""
    path, _, query = address.partition("?")
    sent: list[Message] = []
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1:7400")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 7400),
        "scheme": "http",
        "http_version": "1.1",
        "root_path": "",
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    if sent[0]["status"] != 200:
        raise SystemExit(f"{address}: status {sent[0]['status']}")
    return b"".join(message.get("body", b"") for message in sent)


def _sums(folder: Path) -> float:
    with closing(sqlite3.connect(f"file:{folder / RUN / 'run.sqlite'}?mode=ro", uri=True)) as database:
        return _cpu_s(lambda: database.execute(SUMS).fetchall())


def _cpu_s(work: Callable[[], object]) -> float:
    """Seconds of CPU of this process, all its threads."""
    used = time.process_time()
    work()
    return time.process_time() - used


def _process_s(arguments: Sequence[str]) -> float:
    """Seconds of CPU of a command of Proctor, from its start to its end."""
    with subprocess.Popen([*CLI, *arguments], stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"proctor {' '.join(arguments)}: status {process.returncode}")
    return usage.ru_utime + usage.ru_stime


def _imported(command: str) -> int:
    """How many modules of NEEDLESS a command imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *CLI[1:], command], capture_output=True, text=True, check=True
    )
    names = [line.rpartition("|")[2].strip() for line in done.stderr.splitlines()]
    return sum(name == needless or name.startswith(f"{needless}.") for name in names for needless in NEEDLESS)


def _least(measured: Callable[[], float], tries: int) -> float:
    return min(measured() for _ in range(tries))


if __name__ == "__main__":
    main(measure, __doc__)
