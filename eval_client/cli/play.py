"""Executes a run for the commands: the screen, Ctrl-C, the report, the exit code."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import click

from environments import loop as event_loop
from eval_client.begin import Refused
from eval_client.cli.common import told
from eval_client.cli.usage import UsageProblem
from eval_client.execute import Order, execute
from eval_client.monitor import metrics_address
from eval_client.monitor.screen import screen
from eval_client.progress import Ended
from eval_client.scene import Scene
from eval_client.server_process import ServerProcessError
from eval_client.store.connection import patiently
from eval_client.store.shards import Fenced
from task_server.errors import TaskServerError

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPTED = 130
STORE_PATIENCE_S = 15.0
"""A draining run ends at once when a write has waited so long: whoever stops it (SIGKILL follows) waits no longer."""
LOOK_S = 1.0
STOPPED_BY_USER = "interrupted"


def _listen(_context: click.Context, _option: click.Parameter, where: str | None) -> socket.socket | None:
    if not where:
        return None
    try:
        socket_ = metrics_address.listener(where)
    except ValueError as error:
        raise UsageProblem(str(error)) from error
    os.environ[metrics_address.VARIABLE] = where  # for the clients of --shards
    return socket_


metrics_option = click.option(
    "--metrics",
    metavar="[HOST:]PORT",
    envvar=metrics_address.VARIABLE,
    callback=_listen,
    help="Serve Prometheus metrics at /metrics while the run is played; any host but loopback needs PROCTOR_TOKEN. "
    "The nth client of --shards takes the port n - 1 above.",
)


@dataclass
class _Interrupts:
    """What Ctrl-C does: before the first trial it ends the run; then once drains, twice stops at once."""

    order: Order
    quiet: bool
    metrics: socket.socket | None
    presses: int = 0
    _played: Scene | None = None
    _main: asyncio.Task[Ended] | None = None
    _giving_up: asyncio.Task[None] | None = None

    @cached_property
    def errors(self) -> "Console":
        """The one that the screen is shown on."""
        return error_console()

    async def guard(self) -> Ended:
        """Execute the run; CancelledError where it was ended at once."""
        loop = asyncio.get_running_loop()
        self._main = asyncio.create_task(execute(self.order, self._watched))
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._pressed)
        return await self._main

    @contextlib.contextmanager
    def _watched(self, played: Scene) -> Iterator[None]:
        self._played = played
        try:
            with screen(played, None if self.quiet else self.errors, self.order.folder), _exposed(played, self.metrics):
                yield
        finally:
            self._played = None
            if self._giving_up is not None:
                self._giving_up.cancel()

    def _pressed(self) -> None:
        self.presses += 1
        assert self._main is not None
        if self._played is None or self.presses > 2:
            self._main.cancel()
        elif self.presses == 1:
            self.errors.print("\ndraining: trials under way are played to their end; Ctrl-C again stops at once")
            self._played.runner.drain(STOPPED_BY_USER)
            self._giving_up = asyncio.create_task(self._give_up_on_store(self._played))
        else:
            self._played.runner.abandon(STOPPED_BY_USER)

    async def _give_up_on_store(self, played: Scene) -> None:
        """End a draining run at once when its store takes nothing: to drain would be to wait for that."""
        since, waiting_s = time.monotonic(), 0.0
        while waiting_s < STORE_PATIENCE_S:
            await asyncio.sleep(LOOK_S)
            asked = played.journal.waiting_since
            waiting_s = 0.0 if asked is None else time.monotonic() - max(since, asked)
        turns, results = played.journal.not_durable()
        trouble = played.runner.progress.trouble or "the store does not answer"
        lost = f"not stored: {turns} turns and {results} results, which a resume asks for again"
        self.errors.print(f"stopped at once: {trouble}; {lost}", markup=False, soft_wrap=True)
        played.runner.abandon(STOPPED_BY_USER)


def error_console() -> "Console":
    """Where a command says what is no result."""
    from rich.console import Console

    return Console(stderr=True)


def _exposed(played: Scene, metrics: socket.socket | None) -> contextlib.AbstractContextManager[None]:
    """Serves the run's metrics while inside, where there is a socket for them."""
    if metrics is None:
        return contextlib.nullcontext()
    from eval_client.monitor.exposition import exposed

    return exposed(played, metrics)


def play(order: Order, *, quiet: bool, metrics: socket.socket | None = None) -> None:
    """Execute, report, and exit with the code that tells how it ended. The run's metrics are served at a socket."""
    interrupts = _Interrupts(order, quiet, metrics)
    try:
        with told():
            ended = event_loop.run(interrupts.guard())
            code = tell(order, ended, interrupts.errors)
    except (asyncio.CancelledError, KeyboardInterrupt):
        _say_how_to_resume(order, interrupts.errors)
        sys.exit(INTERRUPTED)
    except (Refused, ServerProcessError, TaskServerError, Fenced) as error:
        raise UsageProblem(str(error)) from error
    sys.exit(code)


def tell(order: Order, ended: Ended, errors: "Console") -> int:
    """Show the report of a run, and say what is left to do; the exit code."""
    from eval_client.report.render import report_console, show
    from eval_client.report.report import report

    result = event_loop.run(patiently(report, order.store, aside=False))
    show(result, report_console(), full=False)
    all_scored = all(pair.scored == pair.planned for pair in result.pairs)
    for loss in ended.losses:
        errors.print(loss, markup=False, soft_wrap=True)
    for agent, why in ended.refused.items():
        errors.print(f"agent {agent}: its endpoint refuses every request: {why}", style="red", markup=False)
    if ended.stopped is not None:
        errors.print(f"stopped: {ended.stopped}", markup=False, soft_wrap=True)
    if all_scored:
        errors.print(f"run: {order.folder}", markup=False, soft_wrap=True)
    else:
        _say_how_to_resume(order, errors)
    if ended.refused:
        return 2
    if ended.stopped == STOPPED_BY_USER:
        return INTERRUPTED
    return 0 if all_scored else 1


def _say_how_to_resume(order: Order, errors: "Console") -> None:
    where = "" if order.store.engine.dialect.name == "sqlite" else " (with PROCTOR_STORE or --store as now)"
    errors.print(f"resume with: proctor resume {order.folder}{where}", markup=False, soft_wrap=True)
