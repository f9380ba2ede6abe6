"""The run's client in the job: begins when its servers have started, keeps the file of replicas, drains in time.

USR1 drains the client, and stops it at once where that takes too long; TERM stops it at once.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eval_client.cli.common import STORE
from eval_client.cli.play import INTERRUPTED
from eval_client.store.connection import DatabaseError, StoreError
from eval_client.store.runs import find_run
from proctor.config.secrets import secret_text

STOPPED, USAGE = 1, 2
LOOK_S = 0.5
PRESS_S = 1.0
"""Between the two signals that stop a client at once."""


def say(text: str) -> None:
    """Write a line into the job's log."""
    print(f"proctor slurm: {text}", file=sys.stderr, flush=True)


@dataclass
class JobServers:
    """The servers on the nodes: whether there is a worker, and the file of the model servers that have loaded."""

    file: Path
    count: int
    """How many model servers there are to be."""
    works: bool = False
    urls: dict[str, str] = field(default_factory=dict)
    failed: set[str] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def write(self) -> None:
        """Write the file; nobody else may read or write it, or see it half written."""
        part = self.file.with_suffix(".part")
        with contextlib.suppress(FileNotFoundError):
            part.unlink()
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
            written.write("".join(f"{url}  # {name}\n" for name, url in sorted(self.urls.items())))
        part.replace(self.file)

    def heard(self, line: str) -> None:
        """Act on a line of the nodes' step: `worker NAME URL`, and `model NAME` with a URL, `ended` or `failed`."""
        kind, name, what = [*line.split(), "", ""][:3]
        if kind == "worker":
            self.works = True
        elif "://" in what:
            self.urls[name] = what
        else:
            self.urls.pop(name, None)
            self.failed |= {name} if what == "failed" else set()
        say(line)
        if kind == "model":
            self.write()
        self.changed.set()

    async def listen(self, said: Path, nodes: int) -> None:
        """Hear what the nodes' step writes into a file, until the process of this id, its srun, has ended."""
        rest = ""
        with said.open() as file:
            while _runs(nodes):
                *lines, rest = (rest + file.read()).split("\n")
                for line in lines:
                    self.heard(line)
                await asyncio.sleep(LOOK_S)

    async def started(self) -> bool:
        """Return once there is a worker, and a model server where there are to be any; False once all those failed."""
        while not (self.works and (self.urls or not self.count)) and (not self.count or len(self.failed) < self.count):
            self.changed.clear()
            await self.changed.wait()
        return self.works and len(self.failed) < max(1, self.count)


async def play(servers: JobServers, said: Path, nodes: int, drain_s: float, command: Sequence[str]) -> int:
    """Run the client to its end; its exit code. See `JobServers.listen` for `said` and `nodes`."""
    loop, late, stop = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    loop.add_signal_handler(signal.SIGUSR1, late.set)
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    if servers.count:
        servers.write()
    listening = asyncio.create_task(servers.listen(said, nodes))
    asked = asyncio.create_task(late.wait()), asyncio.create_task(stop.wait())
    starting = asyncio.create_task(servers.started())
    await asyncio.wait({listening, starting, *asked}, return_when=asyncio.FIRST_COMPLETED)
    if stop.is_set():
        return INTERRUPTED
    if not (starting.done() and starting.result()):  # a further job would fare no better
        what = "no worker has started" if not servers.works else "no model server has loaded"
        say(f"{what}{' in time: give the job more' if late.is_set() else ''}; the logs beside this one say why")
        return USAGE
    client = await asyncio.create_subprocess_exec(*command, "--with-stdin", stdin=PIPE)
    ended = asyncio.create_task(client.wait())
    await asyncio.wait({listening, ended, *asked}, return_when=asyncio.FIRST_COMPLETED)
    lost = not (ended.done() or late.is_set() or stop.is_set())
    if lost:
        say("the nodes' step has ended, which SLURM's messages above may explain; submit the script again to go on")
    if not ended.done():
        _press(client)
        drains = late.is_set() and not stop.is_set()
        if drains:
            say(f"the wall time is nearly over: trials under way may play on for {drain_s:g} s")
        more = {asked[1]} if drains else set()
        await asyncio.wait({ended, *more}, timeout=drain_s if drains else PRESS_S, return_when=asyncio.FIRST_COMPLETED)
    if not ended.done():
        _press(client)
    code = await ended
    if code < 0 and (late.is_set() or stop.is_set()):  # it had not yet come to where it hears signals
        code = INTERRUPTED
    return USAGE if lost else code


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def _press(client: Process) -> None:
    with contextlib.suppress(ProcessLookupError):
        client.terminate()


def _stop_was_asked(run: Path) -> bool:
    """Whether `proctor stop` was called for the run since its client began, which a requeued job would withdraw."""
    with contextlib.suppress(StoreError, DatabaseError):
        store, _ = find_run(str(run), secret_text(STORE) or None, run.parent)
        return store.requested_stop() is not None
    return False


def main() -> None:
    """Play the run as the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path)
    parser.add_argument("nodes", type=int)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--models", type=int, default=0)
    parser.add_argument("--drain", type=float, required=True)
    own, command = sys.argv[1 : (end := sys.argv.index("--"))], sys.argv[end + 1 :]
    given = parser.parse_args(own)
    servers = JobServers(given.logs / "replicas", given.models)
    code = asyncio.run(play(servers, given.logs / "servers", given.nodes, given.drain, command))
    sys.exit(STOPPED if code == INTERRUPTED and _stop_was_asked(given.run) else code)


if __name__ == "__main__":
    main()
