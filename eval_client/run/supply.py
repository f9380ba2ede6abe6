"""Supplies the runner with trials of its run: of each pair a batch ahead of need, each trial once."""

import asyncio
from collections import Counter

from eval_client.core import Pair
from eval_client.core.events import LowMarks, NoMoreTrials, TrialsFree
from eval_client.run.runner import Runner
from eval_client.store.connection import retry_until_available
from eval_client.store.planned_trials import Unread
from eval_client.store.store import Store

HELD = 4_096
"""Trials that are held ahead of need, over all pairs; more where there are many pairs."""
LEAST, GIVEN_UP = 16, 2_000
"""The same of each pair at least, and of each pair whose task is given up."""
PAIRS = 100
"""Pairs of which trials are taken at once."""
LEAST_PAUSE_S = 0.02
"""Shortest pause between two batches."""


class TrialSupply:
    """Which trials are read, and when: once few of a pair wait."""

    def __init__(self, runner: Runner, store: Store) -> None:
        self._runner, self._schedule = runner, runner.schedule
        self._unread = Unread(store.engine, store.run)
        self._free: dict[Pair, int] = {}
        """pair -> its trials without a score that were not read yet"""

    async def begin(self) -> None:
        """Take the first trials of all pairs."""
        self._free = await retry_until_available(self._unread.count)
        while await self._refill():
            pass

    async def run(self) -> None:
        """Take more as they are needed, until cancelled."""
        while True:
            await self._runner.need_more.wait()
            self._runner.need_more.clear()
            if await self._refill():
                self._runner.need_more.set()
            await asyncio.sleep(LEAST_PAUSE_S)

    async def _refill(self) -> bool:
        """Take trials of the pairs of which the fewest wait; whether there are more such pairs."""
        short = self._short()
        if wanted := dict(short[:PAIRS]):
            trials = await retry_until_available(self._unread.read, wanted)
            taken = Counter((trial.agent, trial.task) for trial in trials)
            for pair, count in wanted.items():
                self._free[pair] -= count
                if taken[pair] < count or not self._free[pair]:
                    del self._free[pair]
        self._runner.handle(TrialsFree(self._left()))
        if wanted:
            self._runner.take(trials)
        if not self._left():
            self._runner.handle(NoMoreTrials())
        return len(short) > PAIRS

    def _left(self) -> dict[Pair, int]:
        """pair -> trials that were not read yet, and will be played or given up"""
        if self._schedule.stopped is not None:
            return {}
        return {pair: count for pair, count in self._free.items() if pair not in self._schedule.refused}

    def _short(self) -> list[tuple[Pair, int]]:
        """(pair, trials to take), the pairs of which the fewest wait first"""
        waiting, left = self._schedule.backlog.waiting(), self._left()
        marks, found = {}, []
        for pair, free in left.items():
            held = waiting.get(pair, 0)
            target = GIVEN_UP if pair[1] in self._schedule.lost else max(LEAST, HELD // len(left))
            marks[pair] = target // 2
            if held <= 3 * target // 4:  # others are nearly as short as the one that is
                found.append((held, pair, min(target - held, free)))
        self._runner.handle(LowMarks(marks))
        return [(pair, count) for _, pair, count in sorted(found, key=lambda each: each[0])]
