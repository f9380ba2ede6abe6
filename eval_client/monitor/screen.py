"""Shows a run under way: a live screen on a terminal, plain lines elsewhere, the same facts on both."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from eval_client.monitor.shared import shared_lines
from eval_client.monitor.stall_reporter import Troubles
from eval_client.run.context import Scene
from proctor.types import Value

if TYPE_CHECKING:
    from rich.console import Console

LIVE_EVERY_S = 0.25
PLAIN_EVERY_S = 5.0
LOOK_S = 0.5
"""Trouble that has just begun doesn't wait for the next line."""


class PairView(Value):
    """One row."""

    agent: str
    task: str
    planned: int
    scored: int
    unscored: int
    running: int
    mean: float | None
    waits_for: str | None


class RunView(Value):
    """Everything a screen shows, at one moment."""

    run: str
    elapsed_s: float
    left_s: float | None
    pairs: tuple[PairView, ...]
    use: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """cap -> (used, capacity)"""
    turns: int
    retries: int
    attempts_lost: int
    prompt_tokens: int
    completion_tokens: int
    money: float
    troubles: tuple[str, ...]
    shared: tuple[str, ...] = ()
    """What is to be said of endpoints that other runs use as well, or whose rates are limited."""

    @property
    def done(self) -> int:
        """Trials with a final row."""
        return sum(pair.scored + pair.unscored for pair in self.pairs)

    @property
    def planned(self) -> int:
        """All trials of the run."""
        return sum(pair.planned for pair in self.pairs)


def view(scene: Scene, troubles: tuple[str, ...], begun: float, done_at_begin: int, now: float) -> RunView:
    """The moment's facts; `begun` and `now` are of one monotonic clock."""
    progress, flow = scene.runner.progress, scene.runner.flow
    pairs = tuple(
        PairView(
            agent=agent,
            task=task,
            planned=planned,
            scored=progress.scored.get((agent, task), 0),
            unscored=progress.unscored.get((agent, task), 0),
            running=progress.running.get((agent, task), 0),
            mean=_mean(progress.score_sum.get((agent, task), 0.0), progress.scored.get((agent, task), 0)),
            waits_for=_waits(scene, agent, task),
        )
        for (agent, task), planned in progress.planned.items()
    )
    done = sum(pair.scored + pair.unscored for pair in pairs)
    elapsed, fresh = now - begun, done - done_at_begin
    total = sum(pair.planned for pair in pairs)
    spend = scene.endpoints.spend
    draining = ("draining: nothing more is started",) if progress.draining else ()
    unknown = tuple(filter(None, (spend.unknown(),)))
    return RunView(
        run=scene.run,
        elapsed_s=elapsed,
        left_s=elapsed / fresh * (total - done) if fresh > 0 else None,
        pairs=pairs,
        use={f"{kind} {name}": use for kind, nodes in flow.use().items() for name, use in nodes.items()},
        turns=progress.turns,
        retries=sum(limit.retries for limit in scene.endpoints.limits.values()),
        attempts_lost=progress.attempts_lost,
        prompt_tokens=spend.prompt_tokens,
        completion_tokens=spend.completion_tokens,
        money=spend.money,
        troubles=(*troubles, *unknown, *draining),
        shared=shared_lines(scene.endpoints),
    )


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


def _waits(scene: Scene, agent: str, task: str) -> str | None:
    progress = scene.runner.progress
    kind = scene.runner.flow.waits_for((agent, task))
    return progress.task_waits.get(task, kind) if kind == "task" else kind


def line(run: RunView) -> str:
    """The facts in one line."""
    scored = sum(pair.scored for pair in run.pairs)
    parts = [
        f"{run.run}: {run.done}/{run.planned} trials",
        f"scored {scored}",
        f"unscored {run.done - scored}",
        f"running {sum(pair.running for pair in run.pairs)}",
        f"turns {run.turns}",
        f"retries {run.retries}",
        f"attempts lost {run.attempts_lost}",
        f"tokens {run.prompt_tokens + run.completion_tokens}",
        f"left {clock(run.left_s)}",
    ]
    waits = {f"{pair.task}: {pair.waits_for}" for pair in run.pairs if pair.waits_for and not pair.running}
    return " | ".join([*parts, *(f"waits for {wait}" for wait in sorted(waits)), *run.shared, *run.troubles])


@contextlib.contextmanager
def screen(scene: Scene, console: "Console | None", folder: Path) -> Iterator[None]:
    """Show the run while inside. Nothing without a console; lines when it is no terminal. Needs a running loop."""
    begun = time.monotonic()
    done = sum(scene.runner.progress.scored.values())

    troubles = Troubles(scene, folder, begun)

    def now() -> RunView:
        moment = time.monotonic()
        return view(scene, troubles.look(moment), begun, done, moment)

    with contextlib.closing(troubles):
        if console is None:
            with _every(LOOK_S, lambda: troubles.look(time.monotonic())):
                yield
        elif console.is_terminal:
            from eval_client.monitor.live import live

            with live(console, now) as refresh:
                with _every(LIVE_EVERY_S, refresh):
                    yield
                refresh()
        else:
            lines = _Lines(console, troubles, now, begun)
            with _every(LOOK_S, lines.look):
                yield
            lines.print()


@dataclass
class _Lines:
    """A line every PLAIN_EVERY_S, and at once where a trouble begins."""

    _console: "Console"
    _troubles: Troubles
    _now: Callable[[], RunView]
    _printed_at: float
    _in_trouble: bool = False

    def look(self) -> None:
        """Print a line where one is due."""
        now, before = time.monotonic(), self._in_trouble
        self._in_trouble = bool(self._troubles.look(now))
        if now - self._printed_at >= PLAIN_EVERY_S or (self._in_trouble and not before):
            self._printed_at = now
            self.print()

    def print(self) -> None:
        """A line of this moment."""
        self._console.print(line(self._now()), soft_wrap=True, markup=False, highlight=False)


@contextlib.contextmanager
def _every(seconds: float, show: Callable[[], object]) -> Iterator[None]:
    """Show again and again while inside, in the running loop, where nothing changes meanwhile."""

    async def repeat() -> None:
        while True:
            await asyncio.sleep(seconds)
            show()

    showing = asyncio.create_task(repeat())
    try:
        yield
    finally:
        showing.cancel()


def clock(seconds: float | None) -> str:
    """Seconds as H:MM:SS."""
    if seconds is None:
        return "?"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
