"""How cost grows with a run's trials and with a controller's workers: figures at each size, and fitted exponents.

An exponent is the slope of a line through the logarithms: of a run's whole CPU over its trials, of the client's peak of
memory over them, of what one heartbeat costs the controller over its workers. 1.0 is linear, 0 is flat.
"""

import asyncio
import os
import tempfile
from collections.abc import Iterator, Mapping
from math import log
from pathlib import Path
from statistics import linear_regression

from benchmarks.measure import Figure, figure, main
from benchmarks.overhead import Case, play
from benchmarks.simulated_workers import SimulatedWorkers
from benchmarks.thousand import SETTLE_S, Controller, per_heartbeat
from benchmarks.world import CLI, SAMPLES, process, world
from proctor.event_loop import run

TRIALS, QUICK_TRIALS = (1_000, 10_000, 100_000), (128, 512)
WORKERS, QUICK_WORKERS = (10, 100, 1_000), (10, 50)
WATCHED_S, QUICK_WATCHED_S = 15.0, 4.0
CASE = Case(in_flight=128, turns=2)
BUDGET = 1.1


def measure(quick: bool) -> Iterator[Figure]:
    """Trials first, then workers."""
    used_s, peak_mb, beat_ms = {}, {}, {}
    with world(SAMPLES) as servers:
        play(servers, Case(in_flight=10), 200)  # first calls warm the servers up
        for trials in QUICK_TRIALS if quick else TRIALS:
            took = play(servers, CASE, trials * CASE.turns)
            used_s[took.scored], peak_mb[took.scored] = took.cpu_s["client"], took.peak_mb
            yield figure(f"client: CPU at {trials:,} trials", 1000 * took.cpu_s["client"] / took.scored, "ms")
            yield figure(f"client: peak at {trials:,} trials", took.peak_mb, "MB")
    yield figure("client: CPU over trials, exponent", _exponent(used_s), "", at_most=BUDGET)
    yield figure("client: memory over trials, exponent", _exponent(peak_mb), "", at_most=BUDGET)
    for workers in QUICK_WORKERS if quick else WORKERS:
        beat_ms[workers] = 1000 * run(_heartbeat_s(workers, QUICK_WATCHED_S if quick else WATCHED_S))
        yield figure(f"controller: a heartbeat at {workers:,} workers", beat_ms[workers], "ms")
    total = {workers: workers * each for workers, each in beat_ms.items()}
    yield figure("controller: CPU over workers, exponent", _exponent(total), "", at_most=BUDGET)


def _exponent(values: Mapping[int, float]) -> float:
    """The slope through the logarithms; 0 where it falls."""
    return max(0.0, linear_regression(list(map(log, values)), list(map(log, values.values()))).slope)


async def _heartbeat_s(count: int, watched_s: float) -> float:
    """CPU seconds of a controller for a heartbeat, with so many workers."""
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
        command = [*CLI, "controller", "--stop-with-stdin", "--settle", "0", "--lease", "600"]
        with process(command, Path(folder), dict(os.environ)) as controller:
            async with SimulatedWorkers(count, controller.url) as workers, workers.reporting():
                await asyncio.sleep(SETTLE_S)
                beat_s, _ = await per_heartbeat(Controller(controller.url, controller.pid), workers, watched_s)
    return beat_s


if __name__ == "__main__":
    main(measure, __doc__)
