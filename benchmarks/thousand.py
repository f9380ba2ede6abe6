"""A controller with 1,000 workers and 20,000 live sessions: the CPU that its process takes.

The workers are simulated in one process: each has an address and the heartbeats of a real worker, with 8 tasks.
Sessions are placed while no heartbeat comes; what one costs is added. Clients follow `GET /tasks` as those of a run do,
while each heartbeat brings other free slots; what they cost is what heartbeats alone do not explain.
"""

import asyncio
import os
import resource
import secrets
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from pathlib import Path

from benchmarks.measure import Figure, cpu_s, figure, main
from benchmarks.simulated_workers import TASKS, SimulatedWorkers
from benchmarks.world import CLI, process
from proctor.event_loop import run
from proctor.http.client import HttpClient, http_client
from task_server.client.client import TaskClient
from task_server.http.transport import Caller
from task_server.wire.messages import LONG_POLL_S, Started, StartSession

WORKERS, SESSIONS, CLIENTS, IN_FLIGHT = 1_000, 20_000, 50, 32
PLACED, QUICK_PLACED = 4_000, 1_000
WATCHED_S, QUICK_WATCHED_S = 20.0, 8.0
SETTLE_S = 4.0
"""Longer than the period of heartbeats."""


def measure(quick: bool) -> Iterator[Figure]:
    """The figures of one controller."""
    yield figure("import pydantic", 1000 * _import_s(), "ms CPU")
    with tempfile.TemporaryDirectory(prefix="proctor-bench-") as folder:
        command = [*CLI, "controller", "--stop-with-stdin", "--settle", "0", "--lease", "600"]
        with process(command, Path(folder), dict(os.environ)) as controller:
            yield from run(_measured(Controller(controller.url, controller.pid), quick))


class Controller:
    """The controller that is measured."""

    def __init__(self, url: str, pid: int) -> None:
        self.url, self._pid = url, pid

    async def used_s(self, doing: Awaitable[object]) -> tuple[float, float]:
        """CPU seconds of its process while something is done, and the seconds that passed."""
        before, begun = cpu_s(self._pid), time.monotonic()
        await doing
        return cpu_s(self._pid) - before, time.monotonic() - begun


async def _measured(controller: Controller, quick: bool) -> list[Figure]:
    watched_s, placed = (QUICK_WATCHED_S, QUICK_PLACED) if quick else (WATCHED_S, PLACED)
    async with (
        http_client() as http,
        SimulatedWorkers(WORKERS, controller.url) as workers,
    ):
        async with workers.reporting():
            await asyncio.sleep(SETTLE_S)
        await _place(controller.url, Caller(http, None), SESSIONS - placed)
        used_s, passed_s = await controller.used_s(_place(controller.url, Caller(http, None), placed))
        placing_ms = 1000 * used_s / placed
        figures = [figure("sessions placed a second", placed / passed_s, "1/s")]
        async with workers.reporting():
            await asyncio.sleep(SETTLE_S)
            beat_s, rate = await per_heartbeat(controller, workers, watched_s)
            beat_ms = 1000 * beat_s
            figures += [
                figure("placing a session", placing_ms, "ms CPU"),
                figure("placing a session, with a heartbeat", placing_ms + beat_ms, "ms CPU", at_most=1.0),
                figure("a heartbeat", beat_ms, "ms CPU"),
                figure("heartbeats a second", rate, "1/s"),
                figure("500 heartbeats a second", 500 * beat_s, "of a core", at_most=0.25),
            ]
            for worker in workers.workers:
                worker.restless = True
            await asyncio.sleep(SETTLE_S)
            figures += await _followed(controller, http, workers, watched_s)
    return figures


async def _followed(
    controller: Controller, http: HttpClient, workers: SimulatedWorkers, watched_s: float
) -> list[Figure]:
    """What clients that follow the tasks cost."""
    beat_s, _ = await per_heartbeat(controller, workers, watched_s)
    answers = Counter[str]()
    async with asyncio.TaskGroup() as group:
        clients = [TaskClient(controller.url, http) for _ in range(CLIENTS)]
        following = [group.create_task(_follow(client, answers)) for client in clients]
        await asyncio.sleep(SETTLE_S)
        answers.clear()
        before = workers.heartbeats()
        used_s, passed_s = await controller.used_s(asyncio.sleep(watched_s))
        explained_s = beat_s * (workers.heartbeats() - before)
        for each in following:
            each.cancel()
    return [
        figure("a heartbeat with a change", 1000 * beat_s, "ms CPU"),
        figure("GET /tasks to 50 clients", (used_s - explained_s) / passed_s, "of a core", at_most=0.1),
        figure("answers to GET /tasks", answers.total() / passed_s, "1/s"),
    ]


async def per_heartbeat(controller: Controller, workers: SimulatedWorkers, watched_s: float) -> tuple[float, float]:
    """CPU seconds of the controller for each heartbeat, and heartbeats a second."""
    before = workers.heartbeats()
    used_s, passed_s = await controller.used_s(asyncio.sleep(watched_s))
    sent = workers.heartbeats() - before
    return used_s / sent, sent / passed_s


async def _place(controller: str, caller: Caller, count: int) -> None:
    """Place so many sessions, IN_FLIGHT at once, of all tasks in turn."""
    numbers = iter(range(count))

    async def one_after_the_other() -> None:
        for number in numbers:
            request = StartSession(session=secrets.token_hex(16), task=TASKS[number % len(TASKS)], sample="s")
            await caller.call("POST", f"{controller}/sessions", Started, request, deadline_s=60.0)

    await asyncio.gather(*(one_after_the_other() for _ in range(IN_FLIGHT)))


async def _follow(client: TaskClient, answers: Counter[str]) -> None:
    """Follow the tasks as a run's watcher does."""
    version, name = None, secrets.token_hex(16)
    while True:
        listed = await client.tasks(version, LONG_POLL_S / 2, client=name, wants=f"{TASKS[0]}:100")
        version = listed.version
        answers[name] += 1


def _import_s() -> float:
    """CPU seconds of `import pydantic`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", "import pydantic"], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main(measure, __doc__)
