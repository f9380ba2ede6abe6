"""Workers and controllers as real processes: what SIGTERM and a closed standard input do; kills are tests/faults."""

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from proctor.http.client import HttpClient, http_client
from proctor.session.play import PolicyAgent
from proctor.types import Action
from task_server.client.client import TaskClient
from task_server.wire.errors import NotReady
from task_server.wire.messages import Act, Finished, TaskList
from tests.e2e.preloaded import python
from tests.pace import slowly
from tests.support import ROOT
from tests.task_server_world import count, played

ONE, TWO = "1" * 32, "2" * 32
WAIT_S = slowly(30)
"""No step of these tests takes this long, however busy the machine is."""


@dataclass
class Server:
    process: "subprocess.Popen[str]"
    url: str

    def end(self, sig: signal.Signals = signal.SIGKILL) -> int:
        """Its exit code."""
        self.process.send_signal(sig)
        return self.process.wait(WAIT_S)


@dataclass
class Servers:
    """Starts servers, and kills at the end what still lives."""

    folder: Path
    token: str | None = None
    started: list[Server] = field(default_factory=list)

    def controller(self, **config: object) -> Server:
        return self._start("controller", {"settle_s": slowly(0.5), **config})

    def worker(self, controller: Server | None = None, capacity: int = 4, **config: object) -> Server:
        task = {
            "name": "count",
            "environment": "counting",
            "capacity": capacity,
            "parameters": {"folder": str(self.folder)},
        }
        if controller is not None:
            config["controller"] = controller.url
        return self._start("worker", {"tasks": [task], **config})

    def _start(self, kind: str, config: dict[str, object]) -> Server:
        command = ("-m", "tests.task_server_world", kind, json.dumps({"token": self.token, **config}))
        process = python(*command, cwd=ROOT, serves=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        self.started.append(Server(process, process.stdout.readline().strip()))
        assert self.started[-1].url, "the server did not come up"
        return self.started[-1]

    def close(self) -> None:
        for server in self.started:
            if server.process.poll() is None:
                server.end()
            for pipe in (server.process.stdin, server.process.stdout):
                if pipe is not None:
                    pipe.close()


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[Servers]:
    servers = Servers(tmp_path)
    with contextlib.closing(servers):
        yield servers


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    async with http_client() as http:
        yield http


async def free(client: TaskClient, slots: int) -> TaskList:
    """The task list once so many slots are free."""
    async with asyncio.timeout(WAIT_S):
        tasks = await client.tasks()
        while sum(task.free for task in tasks.tasks) != slots:
            tasks = await client.tasks(after=tasks.version, wait_s=5.0)
    return tasks


def say(content: object) -> Act:
    return Act(action=Action(content=str(content)))


async def play(client: TaskClient, sample: str = "plain", seed: int = 0) -> float | None:
    return (await played(client, "count", sample, PolicyAgent(count), seed)).score


@pytest.mark.smoke
async def test_a_lone_worker_and_a_controller_with_two_workers_play_alike(servers: Servers, http: HttpClient) -> None:
    lone = TaskClient(servers.worker().url, http)
    assert await play(lone) == 1.0
    controller = servers.controller()
    workers = [servers.worker(controller), servers.worker(controller)]
    client = TaskClient(controller.url, http)
    await free(client, 8)
    assert await asyncio.gather(*(play(client, seed=seed) for seed in range(20))) == [1.0] * 20
    await free(client, 8)
    assert all(worker.end(signal.SIGTERM) == 0 for worker in workers)


async def test_a_worker_that_listens_everywhere_announces_where_its_controller_reaches_it(
    tmp_path: Path, http: HttpClient
) -> None:
    with contextlib.closing(Servers(tmp_path, token="of-these-tests")) as servers:
        controller = servers.controller()
        worker = servers.worker(controller, host="0.0.0.0")
        assert worker.url.startswith("http://127.0.0.1:")
        client = TaskClient(controller.url, http, token="of-these-tests")
        await free(client, 4)
        assert (await client.start(ONE, "count", "plain")).url == worker.url


async def test_sigterm_lets_live_sessions_finish_and_then_exits_with_zero(servers: Servers, http: HttpClient) -> None:
    controller = servers.controller(settle_s=0.0)
    worker = servers.worker(controller)
    client = TaskClient(controller.url, http, patience_s=0.0)
    await free(client, 4)
    started = await client.start(ONE, "count", "plain")
    worker.process.send_signal(signal.SIGTERM)
    await free(client, 0)
    with pytest.raises(NotReady):
        await client.start(TWO, "count", "plain")
    for number in (1, 2):
        await client.turn(started.url, ONE, number, say(number))
    assert isinstance(await client.turn(started.url, ONE, 3, say(3)), Finished)
    assert worker.process.wait(WAIT_S) == 0
    assert list(servers.folder.iterdir()) == []


@pytest.mark.parametrize("grace_s", [0.2, 3600.0])
async def test_the_grace_ends_by_itself_or_by_a_second_sigterm(
    servers: Servers, http: HttpClient, grace_s: float
) -> None:
    worker = servers.worker(grace_s=grace_s)
    client = TaskClient(worker.url, http)
    await free(client, 4)
    await client.start(ONE, "count", "plain")
    worker.process.send_signal(signal.SIGTERM)
    if grace_s > WAIT_S:
        await free(client, 0)
        worker.process.send_signal(signal.SIGTERM)
    assert worker.process.wait(WAIT_S) == 0
    assert list(servers.folder.iterdir()) == []


async def test_a_worker_whose_parent_is_gone_ends_its_sessions_at_once(servers: Servers, http: HttpClient) -> None:
    worker = servers.worker(stop_with_stdin=True)
    controller = servers.controller(stop_with_stdin=True)
    client = TaskClient(worker.url, http)
    await free(client, 4)
    await client.start(ONE, "count", "plain")
    for server in (worker, controller):
        assert server.process.stdin is not None
        server.process.stdin.close()
        assert server.process.wait(WAIT_S) == 0
    assert list(servers.folder.iterdir()) == []


@pytest.mark.parametrize(("host", "said"), [("0.0.0.0", "set a token"), ("127.0.0.1", "can't listen")])
def test_an_open_address_without_a_token_and_a_taken_port_are_refused(host: str, said: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        config = json.dumps({"host": host, "port": taken.getsockname()[1]})
        command = [sys.executable, "-m", "tests.task_server_world", "controller", config]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT_S, check=False)
    assert ended.returncode != 0
    assert said in ended.stderr
