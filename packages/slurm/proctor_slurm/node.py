"""What runs on each node of the job: workers, model servers where they are asked for, on the first the controller too.

Each is restarted when it dies. What has started is told on standard output, for `proctor_slurm.client`.
Without arguments this prints the URL that the controller is to have on this node.
"""

import argparse
import asyncio
import contextlib
import os
import shlex
import signal
import socket
import sys
import urllib.request
from asyncio.subprocess import Process
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from eval_client.run.servers import ALONE, RESTART_WAIT_S, RESTARTS, ServerProcess, ServerProcessError
from proctor_slurm.client import say

TOKEN_FILE = "PROCTOR_TOKEN_FILE"
LOOK_S = 1.0
ANSWER_S = 10.0
STOP_S = 15.0
"""For a model server to end by SIGTERM; SLURM kills all after `KillWait`, 30 s by default."""


def node_name() -> str:
    """The name that other nodes reach this one by: SLURM's where it resolves, else the machine's own."""
    name = os.environ.get("SLURMD_NODENAME", "")
    try:
        socket.getaddrinfo(name, None)
    except OSError:
        return socket.gethostname()
    return name or socket.gethostname()


def free_url() -> str:
    """A base URL of this node with a port that is free now."""
    with socket.create_server(("", 0)) as found:
        return f"http://{node_name()}:{found.getsockname()[1]}"


def gpus(server: int, servers: int) -> str:
    """The devices of one of a node's servers: its share of those that SLURM gives the step, else its number."""
    devices = [each for each in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if each]
    if not devices:
        return str(server)
    share = max(1, len(devices) // servers)
    first = server * share % len(devices)
    return ",".join(devices[first : first + share])


@dataclass(frozen=True)
class Models:
    """The model servers of this node."""

    command: str
    count: int
    nodes: int
    """The nodes of the job that have any, the first ones."""
    rank: int
    """Which of its nodes this is, from 0."""
    head: str
    """The first node's name."""
    key: str
    logs: Path
    name: str

    async def run(self) -> None:
        """Run them, until cancelled."""
        if self.rank < self.nodes:
            await asyncio.gather(*map(self._serve, range(self.count)))

    async def _serve(self, number: int) -> None:
        """Start a server again whenever it ends, RESTARTS times without having loaded."""
        name, failures = f"{self.name}-model-{number}", 0
        tells = self.rank == 0 or "{rank}" not in self.command  # of a server over several nodes the first one listens
        while failures <= RESTARTS:
            url = free_url()
            with (self.logs / f"{name}.log").open("ab") as log:
                process = await self._start(number, url, log.fileno())
            loading = asyncio.create_task(self._loaded(url))
            ending = asyncio.create_task(process.wait() if process else asyncio.sleep(0))
            try:
                await asyncio.wait({loading, ending}, return_when=asyncio.FIRST_COMPLETED)
                if loading.done() and not ending.done():
                    failures = -1
                    if tells:
                        print(f"model {name} {url}/v1", flush=True)
                await ending
            finally:
                loading.cancel()
                if process is not None:
                    await _stop(process)
            failures += 1
            if tells:
                print(f"model {name} {'ended' if failures <= RESTARTS else 'failed'}", flush=True)
            await asyncio.sleep(RESTART_WAIT_S * failures)

    async def _start(self, number: int, url: str, log: int) -> Process | None:
        """The process of a server; None where it can't be started, which its log says."""
        filled = {
            "{port}": str(urlsplit(url).port),
            "{key}": self.key,
            "{gpu}": gpus(number, self.count),
            "{rank}": str(self.rank),
            "{nodes}": str(self.nodes),
            "{head}": self.head,
        }
        words = shlex.split(self.command)
        for field, value in filled.items():
            words = [word.replace(field, value) for word in words]
        variables = {**os.environ, "VLLM_API_KEY": self.key}  # so that `ps` shows it to nobody
        variables.pop(TOKEN_FILE, None)
        if self.count > 1 and "{gpu}" not in self.command:
            variables["CUDA_VISIBLE_DEVICES"] = filled["{gpu}"]
        try:
            return await asyncio.create_subprocess_exec(
                *words, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log, env=variables, start_new_session=True
            )
        except OSError as error:
            os.write(log, f"{words[0]}: {error.strerror}\n".encode())
            return None

    async def _loaded(self, url: str) -> None:
        """Return once a server lists its models at this node's name."""
        direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(f"{url}/v1/models", headers={"Authorization": f"Bearer {self.key}"})
        while True:
            with contextlib.suppress(OSError, ValueError):
                await asyncio.to_thread(lambda: direct.open(request, timeout=ANSWER_S).close())
                return
            await asyncio.sleep(LOOK_S)


async def _stop(process: Process) -> None:
    """End a server and what it has started, which is in a session of its own."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await process.wait()


async def serve(controller: str, job: Path, workers: int, models: Models) -> None:
    """Run this node's servers until SIGTERM. Raises ServerProcessError where one of ours can't be started."""
    ended, given_up = asyncio.Event(), asyncio.get_running_loop().create_future()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    servers: list[ServerProcess] = []
    running = [asyncio.create_task(ended.wait()), asyncio.create_task(models.run())]

    async def up(name: str, *arguments: str, url: str) -> None:
        address = ("--host=0.0.0.0", f"--port={urlsplit(url).port}", f"--advertise={url}")
        variables = {**ALONE, TOKEN_FILE: str(job / "token")}
        servers.append(ServerProcess(name, [*arguments, *address], models.logs, variables))
        await servers[-1].start()
        running.append(asyncio.create_task(servers[-1].supervise(given_up)))

    async def worker(name: str) -> None:
        served = ("worker", f"--tasks={job / 'plan.yaml'}", f"--controller={controller}", f"--name={name}")
        await up(name, *served, url=(url := free_url()))
        print(f"worker {name} {url}", flush=True)

    try:
        if models.rank == 0:  # a worker has the clients' token, so it may announce whatever address a node's name has
            anywhere = ("--allow-workers=0.0.0.0/0", "--allow-workers=::/0")
            await up("controller", "controller", *anywhere, url=controller)
        await asyncio.gather(*(worker(f"{models.name}-worker-{number}") for number in range(1, workers + 1)))
        await asyncio.wait({running[0], given_up}, return_when=asyncio.FIRST_COMPLETED)
        if given_up.done():
            say(given_up.result())
            await ended.wait()
    finally:
        for task in running:
            task.cancel()
        stopped = await asyncio.gather(*running, *(server.stop() for server in servers), return_exceptions=True)
        for error in stopped:
            if isinstance(error, Exception):
                raise error


def main() -> None:
    """Serve as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("controller", nargs="?")
    parser.add_argument("--job", type=Path)
    parser.add_argument("--logs", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--models", type=int, default=0)
    parser.add_argument("--model-nodes", type=int, default=0)
    parser.add_argument("--model-command", default="")
    given = parser.parse_args()
    if given.controller is None:
        print(free_url())
        return
    models = Models(
        command=given.model_command,
        count=given.models,
        nodes=given.model_nodes,
        rank=int(os.environ["SLURM_NODEID"]),
        head=str(urlsplit(given.controller).hostname),
        key=(given.job / "key").read_text().strip(),
        logs=given.logs,
        name=os.environ["SLURMD_NODENAME"],
    )
    try:
        asyncio.run(serve(given.controller, given.job, given.workers, models))
    except ServerProcessError as error:
        sys.exit(f"proctor slurm: {models.name}: {error}")


if __name__ == "__main__":
    main()
