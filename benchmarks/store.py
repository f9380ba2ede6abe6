"""The journal: durable rows per second, with and without grouping, from one writer and from many, in three databases.

A database whose server program is missing is left out, which standard error says.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.echo import QUESTION
from benchmarks.measure import Figure, figure, main, median
from eval_client.core.run_view import PairView, RunView
from eval_client.store import journal as journal_module
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.journal import Cost, Journal
from eval_client.store.records import Manifest, Trial, Turn
from eval_client.store.store import Store
from proctor.types import Action, Finish, FinishReason, Message, Observation, Usage
from task_server.wire.messages import Act
from tests.database_servers import mariadb, postgresql, program

WRITERS = 128
PAIRS, LIVE_BUDGET = 100, 0.02
KINDS = {"SQLite": "", "PostgreSQL": "postgres", "MariaDB": "mariadbd"}
OBSERVATION = Observation(messages=(Message(role="user", content=QUESTION),))


def measure(quick: bool) -> Iterator[Figure]:
    """Each database in turn."""
    for kind, needed in KINDS.items():
        if needed and program(needed) is None:
            print(f"{kind}: no {needed} here; left out", file=sys.stderr)
            continue
        with _database(kind) as url:
            yield from _journal(kind, url, quick)
    ratio = _indexed(quick)
    yield figure("SQLite: trials of two turns, with the indexes over without: client CPU", ratio, "x")


@contextmanager
def _database(kind: str) -> Iterator[str]:
    if kind == "SQLite":
        with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
            yield sqlite_url(Path(folder))
    else:
        with (postgresql if kind == "PostgreSQL" else mariadb)() as server:
            yield server.url


def _journal(kind: str, url: str, quick: bool) -> Iterator[Figure]:
    grouped = journal_module.MAX_GROUP
    few, many = (WRITERS, 2 * WRITERS) if quick else (512, 25_600)
    for case, writers, group, rows in (
        ("one writer", 1, grouped, few),
        (f"{WRITERS} writers, a commit a row", WRITERS, 1, few),
        (f"{WRITERS} writers, grouped", WRITERS, grouped, many),
    ):
        journal_module.MAX_GROUP = group
        wall_s, used_s = asyncio.run(_write(Store(connect(url), case[:20]), writers, rows))
        yield figure(f"{kind}, {case}: durable rows/s", rows / wall_s, "1/s")
        yield figure(f"{kind}, {case}: client CPU", 1e6 * used_s / rows, "us CPU/row")
    journal_module.MAX_GROUP = grouped
    used_s = asyncio.run(_publish(Store(connect(url), "live"), few // 2))
    yield figure(f"{kind}, live view of {PAIRS} pairs: share of the client's core", used_s, "", at_most=LIVE_BUDGET)


async def _publish(store: Store, times: int) -> float:
    """CPU seconds that a live view adds to a turn's commit: what a client spends on it in each second."""
    trial = Trial(id=0, agent="a", task="t", sample="s", epoch=0)
    store.create(Manifest(version="0", plan_path="", plan={}, identity={}), [trial])
    journal = Journal(store, store.take_over())
    used: dict[bool, list[float]] = {False: [], True: []}
    for number in range(2 * times):
        published, began = bool(number % 2), time.process_time()
        if published:
            journal.publish(_view().model_dump_json())
        await journal.turn(trial, 0, _turn(number))
        used[published].append(time.process_time() - began)
    await journal.close()
    store.engine.dispose()
    return median(used[True]) - median(used[False])


def _view() -> RunView:
    pairs = (
        PairView(
            agent=f"agent-{number // 10}",
            task=f"task-{number % 10}",
            planned=1000,
            scored=500 + number,
            unscored=3,
            running=4,
            mean=0.125,
            waits_for="endpoint",
        )
        for number in range(PAIRS)
    )
    counts = dict.fromkeys(("turns", "retries", "attempts_lost", "prompt_tokens", "completion_tokens"), 1_000)
    use = {f"{kind} {number}": (4, 8) for kind in ("endpoint", "agent", "task") for number in range(10)}
    times = {"elapsed_s": 100.0, "left_s": 100.0, "money": 1.0}
    return RunView.model_validate({**counts, **times, "run": "r", "pairs": tuple(pairs), "use": use, "troubles": ()})


async def _write(store: Store, writers: int, rows: int) -> tuple[float, float]:
    """(seconds, CPU seconds) until so many turns are durable, each writer waiting for its last one."""
    trials = [Trial(id=n, agent="a", task="t", sample=f"s{n}", epoch=0) for n in range(writers)]
    store.create(Manifest(version="0", plan_path="", plan={}, identity={}), trials)
    journal = Journal(store, store.take_over())

    async def play(trial: Trial, numbers: range) -> None:
        for number in numbers:
            await journal.turn(trial, 0, _turn(number))

    await play(trials[0], range(1))  # the connection and the statements are made
    began, used = time.monotonic(), time.process_time()
    await asyncio.gather(*(play(trial, range(1, rows // writers + 1)) for trial in trials))
    took = time.monotonic() - began, time.process_time() - used
    await journal.close()
    store.engine.dispose()
    return took


def _indexed(quick: bool) -> float:
    """The CPU of the journal's thread and its writers for whole trials, with the indexes over without, in turns."""
    ratios = []
    for _ in range(1 if quick else 5):
        with _database("SQLite") as url, _database("SQLite") as bare:
            stores = Store(connect(url), "indexed"), Store(connect(bare), "bare")
            indexed_s, bare_s = (asyncio.run(_play(store, 100 if quick else 2_000)) for store in stores)
            ratios.append(indexed_s / bare_s)
    return median(ratios)


async def _play(store: Store, count: int) -> float:
    """CPU seconds of so many trials, 20 pairs of agents and tasks in turns; the run `bare` has no indexes."""
    trials = [Trial(id=n, agent=f"a{n % 20}", task="t", sample=f"s{n // 20}", epoch=0) for n in range(count)]
    store.create(Manifest(version="0", plan_path="", plan={}, identity={}), trials)
    if store.run == "bare":
        with store.engine.begin() as connection:
            for name in ("sums", "cause"):
                connection.exec_driver_sql(f"DROP INDEX proctor_trial_{name}")
    journal, waiting = Journal(store, store.take_over()), iter(trials)
    finish = Finish(reason=FinishReason.COMPLETED, score=0.5, detail={"evidence": "e" * 1_100})

    async def play() -> None:
        for trial in waiting:
            await journal.begin(trial, 1, 0, "0" * 32)
            for number in (1, 2):
                await journal.turn(trial, 0, _turn(number))
            await journal.finish(trial, 1, "worker", finish, Cost(2, Usage(240, 120), 1.0))

    used = time.process_time()
    await asyncio.gather(*(play() for _ in range(WRITERS)))
    used = time.process_time() - used
    await journal.close()
    store.engine.dispose()
    return used


def _turn(number: int) -> Turn:
    return Turn(
        turn=number,
        digest=OBSERVATION.digest(),
        observation=OBSERVATION.model_dump_json(),
        reply=Act(action=Action(content="I say: so be it, and so it is. " * 8)),
        prompt_tokens=120,
        completion_tokens=60,
        tries=1,
    )


if __name__ == "__main__":
    main(measure, __doc__)
