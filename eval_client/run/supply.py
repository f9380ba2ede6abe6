"""Supplies a client with trials of its run: of each pair a batch ahead of need."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from eval_client.core.events import LowMarks, NoMoreTrials, TrialsFree
from eval_client.core.flow import Pair
from eval_client.run.runner import Runner
from eval_client.store import claims
from eval_client.store.connection import retry_until_available
from eval_client.store.records import Trial
from eval_client.store.store import Store

HELD = 4_096
"""Trials that a client holds ahead of need, over all pairs; more where there are many pairs."""
LEAST = 16
"""The same of each pair."""
PAIRS = 100
"""Pairs of which trials are taken at once."""
LEAST_PAUSE_S = 0.02
"""Shortest pause between two batches."""

Take = Callable[[Mapping[Pair, int]], Awaitable[Sequence[Trial]]]
"""Takes up to the wanted number of trials of each pair from the store."""


class TrialSupply:
    """Which trials a client takes, and when: once few of a pair wait."""

    def __init__(self, runner: Runner, take: Take) -> None:
        self._runner, self._schedule, self._take = runner, runner.schedule, take
        self.free: dict[Pair, int] = {}
        """pair -> trials of the store without a score that no client holds"""
        self.shards = 1
        """Live clients of the run."""

    def left(self) -> dict[Pair, int]:
        """pair -> free trials that this client would play, or give up"""
        if self._schedule.stopped is not None:
            return {}
        left_alone = self._schedule.lost - self._schedule.given_up
        return {
            (agent, task): count
            for (agent, task), count in self.free.items()
            if (agent, task) not in self._schedule.refused and task not in left_alone
        }

    async def refill(self) -> bool:
        """Take trials of the pairs of which the fewest wait; whether there are more such pairs."""
        short = self._short()
        wanted = dict(short[:PAIRS])
        if wanted:
            trials = await self._take(wanted)
            taken = Counter((trial.agent, trial.task) for trial in trials)
            for pair, count in wanted.items():
                self.free[pair] -= count
                if taken[pair] < count or not self.free[pair]:
                    del self.free[pair]
        self._runner.handle(TrialsFree(self.left()))
        if wanted:
            self._runner.take(trials)
        return len(short) > PAIRS

    def _short(self) -> list[tuple[Pair, int]]:
        """(pair, trials to take), the pairs of which the fewest wait first"""
        rooms, waiting, marks = self._schedule.limits.rooms(), self._schedule.backlog.waiting(), {}
        left, found = self.left(), []
        for pair, free in left.items():
            held = waiting.get(pair, 0)
            target = max(LEAST, HELD // len(left))
            if pair[1] in self._schedule.given_up:
                target = claims.GIVEN_UP_BATCH
            elif not self._schedule.alone:
                target = min(target, claims.batch(rooms[pair], free, self.shards))
            marks[pair] = target // 2
            if held <= 3 * target // 4 < target:  # others are nearly as short as the one that is
                found.append((held, pair, min(target - held, free)))
        self._runner.handle(LowMarks(marks))
        return [(pair, count) for _, pair, count in sorted(found, key=lambda each: each[0])]


class LoneSupply:
    """The supply of a client that plays its run alone, which reads each trial once."""

    def __init__(self, runner: Runner, store: Store) -> None:
        self._runner, self._unread = runner, claims.Unread(store.engine, store.run)
        self._supply = TrialSupply(runner, self._read)

    async def begin(self) -> None:
        """Take the first trials of all pairs."""
        self._supply.free = await retry_until_available(self._unread.count)
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
        more = await self._supply.refill()
        if not self._supply.left():
            self._runner.handle(NoMoreTrials())
        return more

    async def _read(self, wanted: Mapping[Pair, int]) -> list[Trial]:
        return await retry_until_available(self._unread.read, wanted)
