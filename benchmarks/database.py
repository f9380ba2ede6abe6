"""Databases: session set-up, a query, teardown, on one shared server; against a server of its own for every sample.

A container per sample, as the published benchmark has it, costs that server's start and the container's besides.
Without mariadbd there is nothing to measure, which standard error says.
"""

import asyncio
import sys
import time
from collections.abc import Iterator

from benchmarks.measure import Figure, figure, main, median
from environments.database.dataset import Table
from environments.database.engines.mysql import MySqlEngine
from environments.database.engines.private_server import PrivateServer
from tests.support import missing

LIMIT_S = 30.0
TABLE = Table(
    name="measured things",
    columns=("name", "kind", "number", "place", "remark"),
    rows=tuple((f"thing {n}", f"kind {n % 7}", str(n), f"place {n % 13}", "as it is") for n in range(50)),
)
QUERY = "SELECT kind, count(*) FROM `measured things` WHERE number > 10 GROUP BY kind"
SHARED, OWN = "shared server: session set-up", "server of its own: started, session set up"
Steps = dict[str, list[float]]


def measure(quick: bool) -> Iterator[Figure]:
    """The shared server first, then the alternative."""
    if reason := missing("mariadb"):
        print(reason, file=sys.stderr)
        return
    steps: Steps = {}
    asyncio.run(_shared(10 if quick else 100, steps))
    for _ in range(1 if quick else 5):
        asyncio.run(_own(steps))
    for name, seconds in steps.items():
        yield figure(name, 1000 * median(seconds), "ms")
    yield figure("shared server: times faster to set up", median(steps[OWN]) / median(steps[SHARED]), "x")


async def _shared(samples: int, steps: Steps) -> None:
    engine = MySqlEngine(PrivateServer(), LIMIT_S)
    async with engine.lifespan():
        for _ in range(samples):
            began = time.monotonic()
            async with engine.session(TABLE) as session:
                set_up = time.monotonic()
                await session.run(QUERY)
                queried = time.monotonic()
            _add(steps, SHARED, set_up - began)
            _add(steps, "shared server: query", queried - set_up)
            _add(steps, "shared server: teardown", time.monotonic() - queried)


async def _own(steps: Steps) -> None:
    began = time.monotonic()
    engine = MySqlEngine(PrivateServer(), LIMIT_S)
    async with engine.lifespan(), engine.session(TABLE) as session:
        _add(steps, OWN, time.monotonic() - began)
        await session.run(QUERY)
        closing = time.monotonic()
    _add(steps, "server of its own: teardown", time.monotonic() - closing)


def _add(steps: Steps, name: str, seconds: float) -> None:
    steps.setdefault(name, []).append(seconds)


if __name__ == "__main__":
    main(measure, __doc__)
