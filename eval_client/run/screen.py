"""Shows a run in progress: a live screen on a terminal, plain lines elsewhere, with the same content."""

import asyncio
import contextlib
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eval_client.core.run_view import PairView, RunView, clock
from eval_client.run.context import RunContext
from eval_client.run.stall_reporter import StallReporter, shared_lines
from eval_client.store.journal import Journal
from proctor import breakpoints
from proctor.event_loop import beside
from proctor.tables.table import money_text

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live

LIVE_EVERY_S = 0.25
PLAIN_EVERY_S = 5.0
LOOK_S = 0.5
"""How often lines look for new trouble, which is printed at once."""
REMIND_S = 300.0
"""How often plain lines repeat what has not changed."""
_NUMBER = re.compile(r"\d+")
PUBLISH_S, COSTS, SELDOM_S = 1.0, 100.0, 5.0
"""Published views follow each other after a second, or after so many times as long as one took to make, but within
SELDOM_S."""


def line(run: RunView) -> str:
    """A view in one line."""
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
        *([f"money {money_text(run.money)}"] if run.money else []),
        f"left {clock(run.left_s)}",
    ]
    waiting = [pair for pair in run.pairs if pair.waits_for and not pair.running]
    for cause in dict.fromkeys(pair.waits_for for pair in waiting):
        tasks = dict.fromkeys(pair.task for pair in waiting if pair.waits_for == cause)
        parts.append(f"waits for {cause}: {', '.join(tasks)}")
    return " | ".join([*parts, *run.shared, *run.troubles])


def _table(run: RunView) -> "Group":
    """A view as the content of a terminal."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    bar = ProgressBar(total=max(1, run.planned), completed=run.done, width=40)
    head = Table.grid(padding=(0, 2))
    head.add_row(Text(run.run, "bold"), bar, f"{run.done}/{run.planned}", f"left {clock(run.left_s)}")
    rows = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("agent", "task"):
        rows.add_column(name)
    for name in ("done", "running", "unscored", "mean score"):
        rows.add_column(name, justify="right")
    rows.add_column("waits for", overflow="fold")
    for pair in run.pairs:
        rows.add_row(
            pair.agent,
            pair.task,
            f"{pair.done}/{pair.planned}",
            str(pair.running),
            str(pair.unscored),
            "-" if pair.mean is None else f"{pair.mean:.3f}",
            pair.waits_for or "",
        )
    used = "  ".join(f"{name} {taken}/{capacity}" for name, (taken, capacity) in run.use.items())
    tokens = f"tokens {run.prompt_tokens:,} in, {run.completion_tokens:,} out"
    money = f"  money {money_text(run.money)}" if run.money else ""
    foot = f"turns {run.turns}  retries {run.retries}  attempts lost {run.attempts_lost}  {tokens}{money}"
    troubles = (Text(trouble, "yellow") for trouble in run.troubles)
    return Group(head, rows, *map(Text, (used, foot, *run.shared)), *troubles)


@contextlib.contextmanager
def screen(context: RunContext, console: "Console | None") -> Iterator[None]:
    """Publish the run's live view while inside, and show it: nothing without a console, lines where it is no terminal.

    Needs a running loop.
    """
    begun = time.monotonic()
    done = sum(context.progress.scored.values())
    troubles = StallReporter(context, begun)

    def now() -> RunView:
        moment = time.monotonic()
        return view(context, troubles.look(moment), begun, done, moment)

    with _published(context.journal, now):
        if console is None:
            yield
        elif console.is_terminal:
            live = _Live(console, lambda: _table(now()))
            live.show()
            try:
                with breakpoints.steps_aside(live.clear), beside(_repeat(LIVE_EVERY_S, live.show)):
                    yield
                live.show()
            finally:
                live.stop()
        else:
            lines = _Lines(console, troubles, now, begun)
            with beside(_repeat(LOOK_S, lines.look)):
                yield
            lines.print()


@contextlib.contextmanager
def _published(journal: Journal, now: Callable[[], RunView]) -> Iterator[None]:
    """While inside, write the present view with the journal's commits, for viewers, and at the end the last one."""

    async def repeat() -> None:
        while True:
            begun = time.perf_counter()
            if journal.published:
                journal.publish(now().model_dump_json())
            await asyncio.sleep(min(SELDOM_S, max(PUBLISH_S, COSTS * (time.perf_counter() - begun))))

    try:
        with beside(repeat()):
            yield
    finally:
        journal.publish(now().model_dump_json())


@dataclass
class _Live:
    """A table on a terminal that is drawn again and again, below what is printed and logged meanwhile."""

    _console: "Console"
    _table: Callable[[], "Group"]
    _shown: "Live | None" = None

    def show(self) -> None:
        """Draw it anew, unless somebody types at a breakpoint."""
        from rich.live import Live  # with tables and bars 20 ms, which only a terminal needs

        if not breakpoints.PROMPT.acquire(blocking=False):
            return
        try:
            if self._shown is None:
                is_terminal = sys.stdout is not None and sys.stdout.isatty()
                self._console.file = self._console.file  # the stream itself, below what takes its place
                self._shown = Live(console=self._console, auto_refresh=False, redirect_stdout=is_terminal)
                self._shown.start()
            self._shown.update(self._table(), refresh=True)
        finally:
            breakpoints.PROMPT.release()

    def clear(self) -> None:
        """Take it away; the next `show` draws it where the cursor is by then."""
        if self._shown is not None:
            self._shown.transient = True
        self.stop()

    def stop(self) -> None:
        """Leave it as it is."""
        if self._shown is not None:
            self._shown.stop()
        self._shown = None


@dataclass
class _Lines:
    """Prints a line every PLAIN_EVERY_S while something happens, and a trouble once, then every REMIND_S."""

    _console: "Console"
    _troubles: StallReporter
    _now: Callable[[], RunView]
    _printed_at: float
    _told: dict[str, float] = field(default_factory=dict)
    """trouble, without its numbers -> when it was printed"""
    _printed: str = ""
    """The last line, without what changes while nothing happens."""

    def look(self) -> None:
        """Print a line if one is due."""
        now = time.monotonic()
        present = {_NUMBER.sub("#", trouble) for trouble in self._troubles.look(now)}
        self._told = {trouble: at for trouble, at in self._told.items() if trouble in present}
        new = any(now - self._told.get(trouble, -REMIND_S) >= REMIND_S for trouble in present)
        if new or now - self._printed_at >= PLAIN_EVERY_S:
            self._print(now, at_once=new)

    def print(self) -> None:
        """Print a line of the present view."""
        self._print(time.monotonic(), at_once=True)

    def _print(self, now: float, *, at_once: bool) -> None:
        run = self._now()
        happens = line(run.model_copy(update={"troubles": (), "left_s": None}))
        if not at_once and happens == self._printed and now - self._printed_at < REMIND_S:
            return
        self._printed_at, self._printed = now, happens
        fresh = [each for each in run.troubles if now - self._told.get(_NUMBER.sub("#", each), -REMIND_S) >= REMIND_S]
        self._told |= {_NUMBER.sub("#", trouble): now for trouble in fresh}
        text = line(run.model_copy(update={"troubles": tuple(fresh)}))
        self._console.print(text, soft_wrap=True, highlight=False)


async def _repeat(every_s: float, show: Callable[[], object]) -> None:
    """Call `show` again and again, in the running loop, so that no state changes meanwhile."""
    while True:
        await asyncio.sleep(every_s)
        show()


def view(context: RunContext, troubles: tuple[str, ...], begun: float, done_at_begin: int, now: float) -> RunView:
    """The present view of a run; `begun` and `now` are of one monotonic clock.

    `done_at_begin` is the number of trials scored before `begun`; the time left is estimated from the others.
    """
    progress, flow = context.progress, context.schedule.flow
    playing = context.player.playing
    held = Counter(playing[session] for session in context.client.outage.held & playing.keys())
    pairs = tuple(
        PairView(
            agent=agent,
            task=task,
            planned=planned,
            scored=progress.scored.get((agent, task), 0),
            unscored=progress.unscored.get((agent, task), 0),
            running=progress.running.get((agent, task), 0) - held[agent, task],
            mean=_mean(progress.score_sum.get((agent, task), 0.0), progress.scored.get((agent, task), 0)),
            waits_for=_waits(context, agent, task),
        )
        for (agent, task), planned in progress.planned.items()
    )
    done = sum(pair.done for pair in pairs)
    elapsed, fresh = now - begun, done - done_at_begin
    total = sum(pair.planned for pair in pairs)
    spend = context.endpoints.spend
    draining = ("draining: nothing more is started",) if progress.draining else ()
    unknown = tuple(filter(None, (spend.unknown(),)))
    limits = context.endpoints.limits
    return RunView(
        run=context.run,
        elapsed_s=elapsed,
        left_s=elapsed / fresh * (total - done) if fresh > 0 else None,
        pairs=pairs,
        use={f"{kind} {name}": use for kind, nodes in flow.use().items() for name, use in nodes.items()},
        turns=context.journal.turns,
        retries=sum(limit.retries for limit in limits.values()),
        attempts_lost=progress.attempts_lost,
        prompt_tokens=spend.tokens.prompt_tokens,
        completion_tokens=spend.tokens.completion_tokens,
        money=spend.money,
        troubles=(*troubles, *unknown, *draining),
        shared=shared_lines(context.endpoints),
        cooling={name: left for name, limit in limits.items() if (left := limit.cool_for_s(now)) > 0},
    )


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


def _waits(context: RunContext, agent: str, task: str) -> str | None:
    progress = context.progress
    kind = context.schedule.flow.waits_for((agent, task))
    return progress.task_waits.get(task, kind) if kind == "task" else kind
