"""One agent at several servers of a model, beside the same agent at one server of their size, in one run on loopback.

Scripted servers with prefix caches: eight, then eight of which one is four times slower, one answers 500, and one is
killed and brought back. With PROCTOR_REAL_MODEL (`make real-model`) also llama.cpp's server with a small model, twice.
"""

import contextlib
import os
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import echo
from benchmarks.client import Load, Took, took_by
from benchmarks.measure import Figure, figure, main
from benchmarks.world import CAPACITY
from eval_client.plan.plan import Plan
from tests.e2e.replicas.replica_server import Process, processes
from tests.real_model.test_real_model import Llama

SERVERS, EACH, TURNS, ANSWER_S = 8, 16, 4, 0.5
"""Trials at once at each of the servers, turns of a trial, and how long each answer takes."""
WITHIN = 1.05
"""Spec: the length of a run beside the ideal one."""
CACHED = 0.9
"""Spec: cached tokens beside those of one server."""
REAL_TRIALS, REAL_SLOTS, REAL_CONTEXT = 8, 2, 4096


class Bench:
    """A folder, with the environment that clients need."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "PYTHONPATH": echo.install(folder), "OPENAI_API_KEY": "none"}
        self._runs = 0

    def play(
        self, urls: Sequence[str], trials: int, *, concurrency: int = EACH, turns: int = TURNS, model: str = "m"
    ) -> tuple[Took, dict[str, int]]:
        """Play trials with one agent; what that took, and its prompt and cached tokens and the trials that moved."""
        self._runs += 1
        folder = self.folder / str(self._runs)
        endpoint = {"name": "e", "base_url": [*urls] if len(urls) > 1 else urls[0], "concurrency": concurrency}
        sampling = {"temperature": 0, "max_tokens": 16} if model != "m" else {}
        agent = {"name": "a", "endpoint": "e", "model": model, "sampling": sampling}
        parameters = {"turns": turns, "count": trials}
        task = {"name": "t", "environment": echo.NAME, "capacity": CAPACITY, "parameters": parameters}
        plan = Plan.model_validate({"endpoints": [endpoint], "agents": [agent], "tasks": [task]})
        load = Load(plan=plan, trials=trials, folder=folder, servers={}, in_process=True)
        took = took_by(load, self.environment)
        if took.turns != trials * turns:
            raise SystemExit(f"{took.turns} turns instead of {trials * turns}: {took.causes}")
        sums = "sum(prompt_tokens), sum(cached_tokens), count(DISTINCT trial || replica) - count(DISTINCT trial)"
        with contextlib.closing(sqlite3.connect(folder / "run.sqlite")) as store:
            prompt, cached, moved = store.execute(f"SELECT {sums} FROM proctor_turn").fetchone()
        return took, {"prompt": prompt, "cached": cached, "moved": moved or 0}


def _share(tokens: dict[str, int]) -> float:
    return tokens["cached"] / tokens["prompt"]


def eight(bench: Bench, trials: int) -> Iterator[Figure]:
    """Eight servers beside one that takes as many trials as they do together."""
    with processes(ANSWER_S) as one:
        alone, before = bench.play([one[0].url], trials, concurrency=SERVERS * EACH)
    with processes(*[ANSWER_S] * SERVERS) as several:
        took, tokens = bench.play([each.url for each in several], trials)
        most = [each.seen()["most"] for each in several]
    yield figure("8 servers: trials in flight", sum(most), "", at_least=SERVERS * EACH)
    yield figure("8 servers: most trials at one, less the fewest", max(most) - min(most), "", at_most=1)
    yield figure(
        "8 servers: length of the run beside one server's", took.wall_s / alone.wall_s, "times", at_most=WITHIN
    )
    ideal_s = -(-trials // (SERVERS * EACH)) * TURNS * ANSWER_S
    yield figure("8 servers: length of the run beside the ideal", took.wall_s / ideal_s, "times")
    beside = _share(tokens) / _share(before)
    yield figure("8 servers: cached tokens beside one server's", beside, "times", at_least=CACHED)
    yield figure("8 servers: trials that moved", tokens["moved"], "", at_most=0)


def broken(bench: Bench, trials: int) -> Iterator[Figure]:
    """Servers that are slow, fail, go and come back."""
    with processes(*[ANSWER_S] * (SERVERS - 2), 4 * ANSWER_S, "broken") as several:
        stops = threading.Event()
        killer = threading.Thread(target=_kill_and_bring_back, args=(several, stops.is_set))
        killer.start()
        try:
            took, tokens = bench.play([each.url for each in several], trials)
        finally:
            stops.set()
            killer.join()
        answered = sum(each.seen().get("answered", 0) for each in several)
    yield figure("8 with faults: trials without a score", trials - took.scored, "", at_most=0)
    yield figure("8 with faults: trials that moved", tokens["moved"], "", at_most=2 * EACH)
    lost = max(0, answered - trials * TURNS)
    yield figure("8 with faults: answers paid for and lost", lost, "", at_most=EACH)
    yield figure("8 with faults: share of cached tokens", _share(tokens), "")


def _kill_and_bring_back(several: list[Process], stopped: Callable[[], bool]) -> None:
    """Kill the first server once it has answered, and start it anew at its port."""
    while not stopped() and several[0].seen().get("answered", 0) < EACH:
        time.sleep(0.05)
    several[0].kill()
    time.sleep(8)  # it is down after 5
    several[0] = Process(ANSWER_S, port=several[0].port)


def real(bench: Bench, trials: int) -> Iterator[Figure]:
    """Two servers of a real model beside one of them."""
    servers = [Llama(bench.folder / f"llama-{number}") for number in range(2)]
    with contextlib.ExitStack() as stack:
        for server in servers:
            server.start()
            stack.callback(server.kill)
        urls, told = [f"{server.url}/v1" for server in servers], {"concurrency": REAL_SLOTS, "turns": 3}
        bench.play(urls, 2, model="smollm2", concurrency=1, turns=1)  # first requests warm the servers up
        alone, before = bench.play(urls[:1], trials, model="smollm2", **told)
        took, tokens = bench.play(urls, trials, model="smollm2", **told)
    yield figure("2 real servers: length of the run beside one's", took.wall_s / alone.wall_s, "times")
    beside = _share(tokens) / _share(before)
    yield figure("2 real servers: cached tokens beside one's", beside, "times", at_least=CACHED)
    yield figure("2 real servers: trials that moved", tokens["moved"], "", at_most=0)


def measure(quick: bool) -> Iterator[Figure]:
    """All cases."""
    trials = SERVERS * EACH * (2 if quick else 4)
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
        bench = Bench(Path(folder))
        yield from eight(bench, trials)
        yield from broken(bench, trials)
        if "PROCTOR_REAL_MODEL" in os.environ:
            yield from real(bench, REAL_TRIALS // 2 if quick else REAL_TRIALS)
        else:
            print("PROCTOR_REAL_MODEL is not set: no real servers (make real-model)", file=sys.stderr)


if __name__ == "__main__":
    main(measure, __doc__)
