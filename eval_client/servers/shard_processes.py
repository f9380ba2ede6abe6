"""More clients of a run on the same machine, each a process of its own (`proctor join`), for `--shards`."""

import asyncio
import contextlib
import os
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any

from eval_client.servers.metrics_address import of_shard
from eval_client.store.store import Store

ORDERLY = (0, 1, 130)
"""Exit codes of a client that came to the end of the run, whether all is scored or not, or was stopped."""

ENDING_S = 30.0
"""Longest wait for a client once the run is over: it has only its report to show, unless it stands still."""


class ShardProcesses:
    """The other clients. They hold on to our standard input and die when it closes, so none outlives us."""

    def __init__(self) -> None:
        self._clients: list[tuple[Process, Path]] = []
        self._told: set[signal.Signals] = set()

    async def start(self, store: Store, folder: Path, options: Sequence[str], number: int) -> None:
        """One more client; the store's URL goes by the environment, since it may hold a password."""
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
                *(sys.executable, "-m", "eval_client.cli.main", *arguments),
                stdin=PIPE,
                stdout=file,
                stderr=STDOUT,
                env={**os.environ, "PROCTOR_STORE": url, **of_shard(number)},
                start_new_session=True,
            )
        self._clients.append((process, log))

    def stop(self, at_once: bool) -> None:
        """Have all of them drain, or stop at once: what Ctrl-C does to this client, once and twice."""
        for number in (signal.SIGINT, *((signal.SIGTERM,) if at_once else ())):
            if number not in self._told:
                self._told.add(number)
                for process, _ in self._clients:
                    with contextlib.suppress(ProcessLookupError):
                        process.send_signal(number)

    async def ended(self, over: Coroutine[None, None, None]) -> list[str]:
        """What there is to say about those that did not end well, once all have, or soon after the run is `over`."""
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

    async def put_away(self) -> None:
        """Kill what is left."""
        for process, _ in self._clients:
            assert process.stdin is not None
            process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                process.kill()  # one that was suspended does not notice
        await asyncio.gather(*(process.wait() for process, _ in self._clients))


def _end(process: Process) -> str:
    return "stood still, and was killed" if process.returncode is None else f"ended with {process.returncode}"


@contextlib.asynccontextmanager
async def shard_processes(
    store: Store, folder: Path, options: Sequence[str], shards: int
) -> AsyncIterator[ShardProcesses]:
    """So many clients, this one counted; none of the others is left afterwards."""
    others = ShardProcesses()
    try:
        for number in range(2, shards + 1):
            await others.start(store, folder, options, number)
        yield others
    finally:
        await others.put_away()
