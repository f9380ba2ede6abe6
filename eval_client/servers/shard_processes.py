"""The further clients of `--shards`: processes of `proctor join` on the same machine."""

import asyncio
import contextlib
import os
import signal
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any

from eval_client.servers.metrics_address import of_shard
from eval_client.servers.server_process import own_command
from eval_client.store.store import Store

ORDERLY = (0, 1, 130)
"""Exit codes of a client that reached the end of the run, with all trials scored or not, or was stopped."""

ENDING_S = 30.0
"""Longest wait for a client once the run is over; it only has to print its report then, unless it is suspended."""


class ShardProcesses:
    """The other clients. They stop when the pipe to their standard input closes, so none outlives this process."""

    def __init__(self) -> None:
        self._clients: list[tuple[Process, Path]] = []
        self._sent: set[signal.Signals] = set()

    async def start(self, store: Store, folder: Path, options: Sequence[str], number: int) -> None:
        """Start one more client. The store's URL goes into its environment variables, as it may hold a password."""
        log = folder / "logs" / f"shard-{number}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        arguments = [
            "join",
            store.run,
            "--output",
            str(folder.parent),
            "--quiet",
            "--with-stdin",
            "--checked",
            *options,
        ]
        url = store.engine.url.render_as_string(hide_password=False)
        with log.open("ab") as file:
            process = await asyncio.create_subprocess_exec(
                *own_command(*arguments),
                stdin=PIPE,
                stdout=file,
                stderr=STDOUT,
                env={**os.environ, "PROCTOR_STORE": url, **of_shard(number)},
                start_new_session=True,
            )
        self._clients.append((process, log))

    def stop(self, at_once: bool) -> None:
        """Make all clients drain, or stop at once, as one or two Ctrl-C do to this client. Repeatable."""
        for number in (signal.SIGINT, *((signal.SIGTERM,) if at_once else ())):
            if number not in self._sent:
                self._sent.add(number)
                for process, _ in self._clients:
                    with contextlib.suppress(ProcessLookupError):
                        process.send_signal(number)

    async def ended(self, over: Coroutine[None, None, None]) -> list[str]:
        """Wait until all clients have ended, or ENDING_S after the run is `over`; a message for each that failed."""
        if not self._clients:
            over.close()
            return []
        all_ended = asyncio.gather(*(process.wait() for process, _ in self._clients))
        is_over = asyncio.create_task(over)
        either: set[asyncio.Future[Any]] = {all_ended, is_over}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        known_to_be_over = is_over.done() and is_over.exception() is None
        await asyncio.wait({all_ended}, timeout=ENDING_S if known_to_be_over else None)
        for waited_for in either:
            waited_for.cancel()
        await asyncio.gather(*either, return_exceptions=True)
        return [
            f"a client of --shards {_end(process)}; the others played on without it; see {log}"
            for process, log in self._clients
            if process.returncode not in ORDERLY
        ]

    async def kill_all(self) -> None:
        """Kill the clients that are left."""
        for process, _ in self._clients:
            assert process.stdin is not None
            process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                process.kill()  # a suspended process does not notice that its standard input closed
        await asyncio.gather(*(process.wait() for process, _ in self._clients))


def _end(process: Process) -> str:
    return "hung and was killed" if process.returncode is None else f"ended with exit code {process.returncode}"


@contextlib.asynccontextmanager
async def shard_processes(
    store: Store, folder: Path, options: Sequence[str], shards: int
) -> AsyncIterator[ShardProcesses]:
    """Run `shards` clients, this one included; none of the others is left afterwards."""
    others = ShardProcesses()
    try:
        for number in range(2, shards + 1):
            await others.start(store, folder, options, number)
        yield others
    finally:
        await others.kill_all()
