"""Shows a run in progress: a live screen on a terminal, plain lines elsewhere, with the same content."""

import asyncio
import contextlib
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eval_client.core import Pair
from eval_client.core.run_view import PairView, RunView, clock
from eval_client.run.context import RunContext
from eval_client.run.reporters import StallReporter, shared_lines
from eval_client.store.journal import Journal
from proctor import breakpoints
from proctor.event_loop import beside
from proctor.tables.table import money_text

if TYPE_CHECKING:
    from rich.console import Console

LIVE_EVERY_S = 0.25
PLAIN_EVERY_S, QUIET_S = 5.0, 60.0
"""Plain lines follow each other after so long at least; the second where no trial has ended meanwhile."""
LOOK_S = 0.5
"""How often lines look for new trouble, which is printed at once."""
REMIND_S = 300.0
"""How often plain lines repeat a trouble that lasts."""
_NUMBER = re.compile(r"\d+")
PUBLISH_S, COSTS, SELDOM_S = 1.0, 100.0, 5.0
"""Published views follow each other after a second, or after so many times as long as one took to make, but within
SELDOM_S."""


def line(run: RunView, waits: Iterable[str]) -> str:
    """A view in one line, with what its trials wait for."""
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
    return " | ".join([*parts, *waits, *run.shared, *run.troubles])


@contextlib.contextmanager
def screen(context: RunContext, console: "Console | None") -> Iterator[None]:
    """Publish the run's live view while inside, and show it: nothing without a console, lines where it is no terminal.

    Needs a running loop.
    """
    begun = time.monotonic()
    scored = dict(context.progress.scored)
    troubles = StallReporter(context, begun)

    def now() -> RunView:
        moment = time.monotonic()
        return view(context, troubles.look(moment), begun, scored, moment)

    with _published(context.journal, now):
        if console is None:
            yield
        elif console.is_terminal and not console.is_dumb_terminal:
            from eval_client.run.live import Live, table  # 20 ms, which only a terminal needs

            live = Live(console, lambda: table(now()))
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
class _Lines:
    """Prints a line when trials end or are lost, and each minute; a cause of waiting once, troubles every REMIND_S."""

    _console: "Console"
    _troubles: StallReporter
    _now: Callable[[], RunView]
    _printed_at: float
    _told: dict[str, float] = field(default_factory=dict)
    """trouble, without its numbers -> when it was printed"""
    _waited_for: set[str] = field(default_factory=set)
    _counted: tuple[int, ...] = ()
    """What the last line said of trials."""

    def look(self) -> None:
        """Print a line if one is due."""
        now = time.monotonic()
        present = {_NUMBER.sub("#", trouble) for trouble in self._troubles.look(now)}
        self._told = {trouble: at for trouble, at in self._told.items() if trouble in present}
        new = any(now - self._told.get(trouble, -REMIND_S) >= REMIND_S for trouble in present)
        since_s = now - self._printed_at
        if new or since_s >= QUIET_S or (since_s >= PLAIN_EVERY_S and self._changed(self._now())):
            self.print()

    def _changed(self, run: RunView) -> bool:
        return _counts(run) != self._counted or not run.waits(idle=True).keys() <= self._waited_for

    def print(self) -> None:
        """Print a line of the present view."""
        run, now = self._now(), time.monotonic()
        fresh = [each for each in run.troubles if now - self._told.get(_NUMBER.sub("#", each), -REMIND_S) >= REMIND_S]
        self._told |= {_NUMBER.sub("#", trouble): now for trouble in fresh}
        waits = [text for cause, text in run.waits(idle=True).items() if cause not in self._waited_for]
        self._waited_for |= run.waits(idle=True).keys()
        self._printed_at, self._counted = now, _counts(run)
        text = line(run.model_copy(update={"troubles": tuple(fresh)}), waits)
        self._console.print(text, soft_wrap=True, highlight=False)


def _counts(run: RunView) -> tuple[int, ...]:
    return run.attempts_lost, *(count for pair in run.pairs for count in (pair.scored, pair.unscored))


async def _repeat(every_s: float, show: Callable[[], object]) -> None:
    """Call `show` again and again, in the running loop, so that no state changes meanwhile."""
    while True:
        await asyncio.sleep(every_s)
        show()


def view(
    context: RunContext, troubles: tuple[str, ...], begun: float, scored_before: Mapping[Pair, int], now: float
) -> RunView:
    """The present view of a run; `begun` and `now` are of one monotonic clock.

    The time left is estimated from the trials that have ended since `begun`, when `scored_before` had a score.
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
    spend = context.endpoints.spend
    draining = ("draining: nothing more is started",) if progress.draining else ()
    unknown = tuple(filter(None, (spend.unknown(),)))
    limits = context.endpoints.limits
    return RunView(
        run=context.run,
        elapsed_s=now - begun,
        left_s=_left_s(context, pairs, scored_before, now - begun),
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


def _left_s(
    context: RunContext, pairs: Iterable[PairView], scored_before: Mapping[Pair, int], elapsed_s: float
) -> float | None:
    """The time that the slowest pair needs: its waiting trials at its pace so far, then one as long as its longest.

    None while a pair that plays, or will, has ended no trial.
    """
    progress, longest_s = context.progress, 0.0
    for pair in pairs:
        key = pair.agent, pair.task
        starts = not progress.draining and key not in context.schedule.refused
        under_way = progress.running.get(key, 0)
        waiting = pair.planned - pair.done - under_way if starts else 0
        ended = pair.done - scored_before.get(key, 0)
        if not waiting + under_way:
            continue
        if not ended:
            return None
        longest_s = max(longest_s, waiting * elapsed_s / ended + progress.slowest_s[key])
    return longest_s


def _mean(total: float, count: int) -> float | None:
    return total / count if count else None


def _waits(context: RunContext, agent: str, task: str) -> str | None:
    progress = context.progress
    kind = context.schedule.flow.waits_for((agent, task))
    return progress.task_waits.get(task, kind) if kind == "task" else kind
