"""The view of a run that screens show, as values."""

from collections import Counter

from pydantic import Field

from eval_client.monitor.shared import shared_lines
from eval_client.run.context import RunContext
from proctor.types import Value


class PairView(Value):
    """The row of a pair of agent and task."""

    agent: str
    task: str
    planned: int
    scored: int
    unscored: int
    running: int
    mean: float | None
    waits_for: str | None

    @property
    def done(self) -> int:
        """Trials with a final row."""
        return self.scored + self.unscored


class RunView(Value):
    """The content of a screen at one moment."""

    run: str
    elapsed_s: float
    left_s: float | None
    pairs: tuple[PairView, ...]
    use: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """capacity limit, such as `agent gpt` -> (trials under way, trials allowed)"""
    turns: int
    retries: int
    attempts_lost: int
    prompt_tokens: int
    completion_tokens: int
    money: float
    troubles: tuple[str, ...]
    shared: tuple[str, ...] = ()
    """Lines on endpoints that other runs use as well, or whose rates are limited."""
    cooling: dict[str, float] = Field(default_factory=dict)
    """endpoint -> seconds left of its pause after a 429"""

    @property
    def done(self) -> int:
        """Trials with a final row."""
        return sum(pair.done for pair in self.pairs)

    @property
    def planned(self) -> int:
        """Number of trials of the run."""
        return sum(pair.planned for pair in self.pairs)


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
        prompt_tokens=spend.tokens.prompt,
        completion_tokens=spend.tokens.completion,
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


def clock(seconds: float | None) -> str:
    """Seconds as H:MM:SS."""
    if seconds is None:
        return "?"
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}"
