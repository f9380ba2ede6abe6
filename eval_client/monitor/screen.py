"""Shows a run under way: a live screen on a terminal, plain lines elsewhere, the same facts on both."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field
from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from environments.types import Value
from eval_client.monitor.troubles import Troubles
from eval_client.scene import Scene

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
        f"left {_clock(run.left_s)}",
    ]
    waits = {f"{pair.task}: {pair.waits_for}" for pair in run.pairs if pair.waits_for and not pair.running}
    return " | ".join([*parts, *(f"waits for {wait}" for wait in sorted(waits)), *run.troubles])


def table(run: RunView) -> Group:
    """The facts as a screen."""
    bar = ProgressBar(total=max(1, run.planned), completed=run.done, width=40)
    head = Table.grid(padding=(0, 2))
    head.add_row(f"[bold]{escape(run.run)}[/]", bar, f"{run.done}/{run.planned}", f"left {_clock(run.left_s)}")
    rows = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("agent", "task"):
        rows.add_column(name)
    for name in ("done", "running", "unscored", "score"):
        rows.add_column(name, justify="right")
    rows.add_column("waits for", overflow="fold")
    for pair in run.pairs:
        rows.add_row(
            escape(pair.agent),
            escape(pair.task),
            f"{pair.scored + pair.unscored}/{pair.planned}",
            str(pair.running),
            str(pair.unscored),
            "-" if pair.mean is None else f"{pair.mean:.3f}",
            escape(pair.waits_for or ""),
        )
    caps = "  ".join(f"{name} {used}/{capacity}" for name, (used, capacity) in run.use.items())
    tokens = f"tokens {run.prompt_tokens:,} in, {run.completion_tokens:,} out"
    money = f"  money {run.money:.2f}" if run.money else ""
    foot = f"turns {run.turns}  retries {run.retries}  attempts lost {run.attempts_lost}  {tokens}{money}"
    return Group(head, rows, escape(caps), escape(foot), *(f"[yellow]{escape(trouble)}[/]" for trouble in run.troubles))


@contextlib.contextmanager
def screen(scene: Scene, console: Console, folder: Path, quiet: bool) -> Iterator[None]:
    """Show the run while inside. Nothing when quiet; lines when the console is no terminal. Needs a running loop."""
    begun = time.monotonic()
    done = sum(scene.runner.progress.scored.values())

    troubles = Troubles(scene, folder, begun)

    def now() -> RunView:
        moment = time.monotonic()
        return view(scene, troubles.look(moment), begun, done, moment)

    with contextlib.closing(troubles):
        if quiet:
            with _every(LOOK_S, lambda: troubles.look(time.monotonic())):
                yield
        elif console.is_terminal:
            with Live(table(now()), console=console, auto_refresh=False) as live:
                with _every(LIVE_EVERY_S, lambda: live.update(table(now()), refresh=True)):
                    yield
                live.update(table(now()), refresh=True)
        else:
            lines = _Lines(console, troubles, now, begun)
            with _every(LOOK_S, lines.look):
                yield
            lines.print()


@dataclass
class _Lines:
    """A line every PLAIN_EVERY_S, and at once where a trouble begins."""

    _console: Console
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


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
