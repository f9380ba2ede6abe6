"""WebShop: building and searching catalogues of 1,000 and 100,000 products, beside SQLite FTS5; `--full`: 1.18 million.

Every figure is taken in a process of its own. Queries name a kind of product with two or more of its attributes.
"""

import asyncio
import multiprocessing
import resource
import sqlite3
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NamedTuple, ParamSpec, TypeVar

from benchmarks import measure
from benchmarks.measure import Figure, figure, median
from environments.webshop.catalogue import make, published
from environments.webshop.catalogue.analysis import words
from environments.webshop.catalogue.nouns import extractor
from environments.webshop.catalogue.store import CatalogueStore
from environments.webshop.environment import WebShop
from environments.webshop.shop.shop import opened
from tools.datagen.webshop import generator

SIZES = (1_000, 100_000)
FULL = 1_180_000
GOALS = 200
FTS_QUERIES = 40
P = ParamSpec("P")
T = TypeVar("T")


class Built(NamedTuple):
    """What building cost, the process's start left out."""

    cpu_s: float
    wall_s: float
    peak_mb: float


class Asked(NamedTuple):
    """What queries cost: CPU at the best of three times, as a busy machine adds to it; wall time at the first."""

    rss_mb: float
    cpu_ms: list[float]
    wall_ms: list[float]


def figures(sizes: Sequence[int]) -> Iterator[Figure]:
    """All figures of catalogues of these sizes."""
    for size in sizes:
        with tempfile.TemporaryDirectory(prefix="proctor-webshop-") as folder:
            yield from _of_size(Path(folder), size)


def _of_size(folder: Path, size: int) -> Iterator[Figure]:
    made = folder / "catalogue"
    generator.write(folder / "files", size, GOALS)
    yield from _building(f"{size:,} products", _alone(_build, folder / "files", made))
    yield figure(f"{size:,} products: search index", _megabytes(made / make.INDEX), "MB")
    yield figure(f"{size:,} products: database", _megabytes(made / make.DATABASE), "MB")
    start_s, asked = _alone(_serve, made)
    start, memory, p50 = (2.0, 300.0, 5.0) if size <= 100_000 else (None, None, None)
    yield figure(f"{size:,} products: worker start, CPU", start_s, "s", at_most=start)
    yield from _queried(f"{size:,} products", asked, memory, p50)
    fts = folder / "fts.sqlite"
    yield figure(f"{size:,} products, FTS5: build, CPU", _alone(_build_fts, made, fts).cpu_s, "s")
    yield figure(f"{size:,} products, FTS5: search index", _megabytes(fts), "MB")
    yield from _queried(f"{size:,} products, FTS5", _alone(_serve_fts, made, fts))


def _building(case: str, built: Built) -> Iterator[Figure]:
    yield figure(f"{case}: build, CPU", built.cpu_s, "s")
    yield figure(f"{case}: build, wall", built.wall_s, "s")
    yield figure(f"{case}: build, peak memory", built.peak_mb, "MB", at_most=1024 * 1.048576)


def _queried(case: str, asked: Asked, memory: float | None = None, p50: float | None = None) -> Iterator[Figure]:
    wall_ms = sorted(asked.wall_ms)
    yield figure(f"{case}: memory after the queries", asked.rss_mb, "MB", at_most=memory)
    yield figure(f"{case}: query, CPU, p50", median(asked.cpu_ms), "ms", at_most=p50)
    yield figure(f"{case}: query, p50", median(wall_ms), "ms")
    yield figure(f"{case}: query, p95", wall_ms[len(wall_ms) * 95 // 100], "ms")


def _alone(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a call returns in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(call, *args, **kwargs).result()


def _build(files: Path, made: Path) -> Built:
    began = time.process_time(), time.monotonic()
    make.make(published.files_in(files), made, extractor("lexical"))
    return _built(*began)


def _build_fts(made: Path, path: Path) -> Built:
    """Of the same document texts, with Porter's stemmer."""
    began = time.process_time(), time.monotonic()
    with closing(sqlite3.connect(path)) as connection, closing(CatalogueStore(made / make.DATABASE)) as store:
        connection.executescript("pragma journal_mode = off; pragma synchronous = off;")
        connection.execute("create virtual table documents using fts5(text, tokenize = 'porter unicode61')")
        texts = ((store.product(position).text(),) for position in range(store.meta.products))
        connection.executemany("insert into documents (text) values (?)", texts)
        connection.commit()
    return _built(*began)


def _built(cpu_s: float, wall_s: float) -> Built:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    return Built(time.process_time() - cpu_s, time.monotonic() - wall_s, peak)


def _serve(made: Path) -> tuple[float, Asked]:
    """Seconds to start, then what queries cost."""
    start_s = asyncio.run(_start(made))
    with opened(made) as shop:
        return start_s, _asked(_queries(shop.store), shop.search.find)


async def _start(made: Path) -> float:
    """The CPU, in seconds, of a process from its start until it could play its first session."""
    environment = WebShop(data=made)
    environment.samples(), environment.digest()
    async with environment.lifespan():
        return time.process_time()


def _serve_fts(made: Path, path: Path) -> Asked:
    with closing(CatalogueStore(made / make.DATABASE)) as store:
        queries = _queries(store)[:FTS_QUERIES]
    with closing(sqlite3.connect(path)) as connection:

        def ask(query: str) -> None:
            either = " OR ".join(f'"{word}"' for word in words(query))
            sql = "select rowid from documents where documents match ? order by rank limit 50"
            connection.execute(sql, (either,)).fetchall()

        return _asked(queries, ask)


def _queries(store: CatalogueStore) -> list[str]:
    goals = [store.goal(position) for position in range(GOALS)]
    return [" ".join((goal.query, *goal.attributes, *goal.options)) for goal in goals]


def _asked(queries: Sequence[str], ask: Callable[[str], object]) -> Asked:
    rounds = [[_timed(ask, query) for query in queries] for _ in range(3)]
    cpu_ms = [min(cpu for cpu, _ in tries) for tries in zip(*rounds, strict=True)]
    wall_ms = [wall for _, wall in rounds[0]]
    status = Path("/proc/self/status").read_text()
    return Asked(int(status.partition("VmRSS:")[2].split()[0]) * 1024 / 1e6, cpu_ms, wall_ms)


def _timed(ask: Callable[[str], object], query: str) -> tuple[float, float]:
    """CPU and wall time of a query, in ms."""
    cpu, wall = time.process_time(), time.perf_counter()
    ask(query)
    return 1000 * (time.process_time() - cpu), 1000 * (time.perf_counter() - wall)


def _megabytes(path: Path) -> float:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file()) / 1e6


def main() -> None:
    """`--quick` for 1,000 products only, `--full` for 1.18 million as well, which takes half an hour."""
    parser = ArgumentParser(add_help=False)
    parser.add_argument("--full", action="store_true")
    options, sys.argv[1:] = parser.parse_known_args()
    sizes = (*SIZES, FULL) if options.full else SIZES
    measure.main(lambda quick: figures(sizes[:1] if quick else sizes), __doc__)


if __name__ == "__main__":
    main()
