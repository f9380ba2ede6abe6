"""Plays a run's trials: tells the schedule of events, and carries its instructions out."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias, TypeVar

from eval_client.core import events
from eval_client.core.progress import RunResult
from eval_client.core.schedule import Schedule
from eval_client.core.spend import Spend
from eval_client.trial.attempt_log import PendingTrial
from eval_client.trial.player import Played, TrialPlayer

T = TypeVar("T")
Work: TypeAlias = Coroutine[None, None, T]


class Runner:
    """Plays one run, from pending trials to final rows. Use it once.

    `on_stop` is called when the run drains or is abandoned, whatever it did before.
    """

    def __init__(self, schedule: Schedule, player: TrialPlayer, spend: Spend, on_stop: Callable[[], None]) -> None:
        self.schedule = schedule
        """For reading; what happens is told to `handle`."""
        self._player, self._spend, self._on_stop = player, spend, on_stop
        self._trials: dict[int, PendingTrial] = {}
        """Those that were started and are not settled."""
        self._under_way = set[asyncio.Task[Any]]()
        self._over = asyncio.Event()
        self._error: BaseException | None = None

    async def run(self) -> RunResult:
        """Play the trials that are taken. Raises Fenced if another client has taken over."""
        try:
            await self._over.wait()
        finally:
            await self._cancel()
        if self._error is not None:
            raise self._error
        result = self.schedule.result()
        if result.limit is not None and (spent := self._spend.exhausted()):  # more than when the first call stopped
            return dataclasses.replace(result, stopped=spent)
        return result

    def handle(self, event: events.Event) -> None:
        """Tell the schedule of an event, and carry out what it instructs."""
        for instruction in self.schedule.handle(event):
            self._carry_out(instruction)

    def fail(self, error: BaseException) -> None:
        """RunStopped at once; `run` raises this."""
        self._error = self._error or error
        self.handle(events.Abandon(str(error)))

    def _carry_out(self, instruction: events.Instruction) -> None:
        match instruction:
            case events.Start(job):
                pending = self._trials.setdefault(job.trial, PendingTrial(job))
                playing = self._player.play(pending, suspect=instruction.suspect, last_try=instruction.last_try)
                self._spawn(playing, f"trial {job.trial}", events.SlotFreed(job), partial(self._conclude, job, pending))
            case events.GiveUp(job, cause):
                giving_up = self._player.give_up(self._trials.pop(job.trial, PendingTrial(job)), cause)
                self._spawn(giving_up, f"give up trial {job.trial}", events.GaveUp(job))
            case events.Retry(job, wait_s):
                asyncio.get_running_loop().call_later(wait_s, self.handle, events.RetryDue(job))
            case events.RunStopped():
                self._on_stop()
            case events.RunFinished():
                self._over.set()

    def _spawn(
        self, work: Work[T], name: str, then: events.Event, conclude: Callable[[T], Work[None]] | None = None
    ) -> None:
        """Do some work, then `conclude` in a task of its own, so that no turn passes through this file."""
        task = asyncio.create_task(work, name=name)
        self._under_way.add(task)
        task.add_done_callback(lambda _: self._ended(task, then, conclude))

    def _ended(self, task: asyncio.Task[T], then: events.Event, conclude: Callable[[T], Work[None]] | None) -> None:
        self._under_way.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.fail(error)
        if conclude is None or task.cancelled() or error is not None:
            self.handle(then)
        else:
            self._spawn(conclude(task.result()), task.get_name(), then)

    async def _conclude(self, job: events.Job, pending: PendingTrial, played: Played) -> None:
        """Act on the outcome of an attempt."""
        limit = self._spend.limit_reached() if played.end.outcome is events.AttemptOutcome.BUDGET else None
        for instruction in self.schedule.handle(played.event(job, limit)):
            match instruction:
                case events.Settle():
                    await self._player.settle(pending, played)
                    del self._trials[job.trial]
                case events.EndAttempt():
                    await self._player.end(pending, played)
                case _:
                    self._carry_out(instruction)

    async def _cancel(self) -> None:
        if not self._over.is_set():
            self.handle(events.Abandon("cancelled"))  # else each slot that is freed would start another trial
        for task in self._under_way:
            task.cancel()
        while self._under_way:  # a score that was reached is concluded nevertheless
            await asyncio.gather(*self._under_way, return_exceptions=True)
        self._player.close()
