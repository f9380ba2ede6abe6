"""Coordinates a client with its run's other clients: claims trials, shares limits and spending, finds lost shards."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import sqlalchemy as sa

from eval_client.core.events import NoMoreTrials, QuotasGranted, TasksGivenUp, TrialsFree
from eval_client.core.failure_detector import BEAT_S, FailureDetector
from eval_client.core.flow import Pair
from eval_client.core.limits.shares import EndpointFeedback, ShardState
from eval_client.core.progress import RunResult
from eval_client.run.context import RunContext
from eval_client.run.limit_exchange import QuotaExchange
from eval_client.run.supply import LEAST_PAUSE_S, TrialSupply
from eval_client.store import claims, shards
from eval_client.store.connection import is_transient, retry_until_available
from eval_client.store.member import Member
from eval_client.store.records import Trial
from eval_client.store.store import Store

EXCHANGE_S = 1.0
PROGRESS_S = 3.0
COUNTING = 20.0
"""Times as long as the last count of all trials took, until the next."""
END_S = 0.5
CLOSING_S = 0.2

Answer = TypeVar("Answer")


class ShardCoordinator:
    """A loop beside a runner. Its database calls run in threads."""

    def __init__(self, context: RunContext) -> None:
        store, self._shard = context.member.store, context.member.shard
        self._engine, self._run = store.engine, store.run
        self._member, self._endpoints = context.member, context.endpoints
        self._runner, self._schedule = context.runner, context.schedule
        self._failure_detector = FailureDetector(self._shard)
        self._supply = TrialSupply(self._runner, self._claim)
        self._exchange_at = self._progress_at = self._count_at = self._end_at = 0.0
        self._wake = context.runner.need_more
        self._endpoints.on_throttled.append(self._throttled)

    async def run(self) -> None:
        """Run until cancelled. Raises Fenced."""
        while True:
            self._wake.clear()
            try:
                await self._work()
            except sa.exc.SQLAlchemyError as error:
                if not is_transient(error):
                    raise
                await asyncio.sleep(BEAT_S)
            await asyncio.sleep(LEAST_PAUSE_S)
            left_s = self._exchange_at - time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._wake.wait()

    async def _work(self) -> None:
        await self._give_back()
        if time.monotonic() >= self._exchange_at:
            self._exchange_at = time.monotonic() + EXCHANGE_S
            if fenced := self._member.fenced():
                raise fenced
            self._supply.shards = max(1, len(await self._call(end_lost_shards, self._failure_detector)))
            self._schedule.progress.others = self._supply.shards - 1
            await self._count_free()
            await self._exchange()
        if await self._supply.refill():
            self._wake.set()
        await self._update_progress()
        if self._schedule.quiet and not self._supply.left() and time.monotonic() >= self._end_at:
            self._end_at = time.monotonic() + END_S
            await self._check_end()

    async def _count_free(self) -> None:
        """Count the trials that no client holds, more seldom where that takes the database long."""
        began = time.monotonic()
        if began >= self._count_at or not self._supply.left():
            self._supply.free = await self._call(claims.free)
            self._count_at = began + COUNTING * (time.monotonic() - began)

    def _throttled(self) -> None:
        self._exchange_at = 0.0
        self._wake.set()

    async def _call(self, ask: Callable[..., Answer], *arguments: object) -> Answer:
        return await asyncio.to_thread(ask, self._engine, self._run, *arguments)

    async def _exchange(self) -> None:
        """Publish this client's quotas, endpoint feedback and spending; apply the limits computed from all shards."""
        pooled = {f"endpoint {name}" for name in map(self._endpoints.endpoint, self._endpoints.pooled)}
        self._runner.handle(TrialsFree(self._supply.left()))
        mine = ShardState(
            slices={name: quota for name, quota in self._schedule.quotas().items() if name not in pooled},
            spent=self._endpoints.spend.by_agent,
            unreachable=frozenset(self._schedule.lost),
        )
        feedback = {name: self._endpoints.feedback[name] for name in self._ceilings()}
        self._endpoints.feedback.update({name: EndpointFeedback() for name in feedback})
        quota_exchange = QuotaExchange(self._shard, mine, feedback, self._ceilings(), self._schedule.limits.whole())
        try:
            await self._call(shards.exchange, self._shard, quota_exchange)
        except BaseException:
            for name, unpublished in feedback.items():
                self._endpoints.feedback[name].merge(unpublished)
            raise
        now = time.monotonic()
        for name, level in quota_exchange.levels.endpoints.items():
            if name in self._endpoints.limits:
                self._endpoints.limits[name].adopt(level.limit, now + level.cool_until - quota_exchange.now)
        self._endpoints.spend.elsewhere = quota_exchange.elsewhere
        self._runner.handle(TasksGivenUp(quota_exchange.given_up))
        self._runner.handle(QuotasGranted(quota_exchange.grants))

    async def _update_progress(self) -> None:
        """Set the progress to that of all clients; until the next time, only this client's finishes are added."""
        if time.monotonic() < self._progress_at:
            return
        began, progress = time.monotonic(), self._schedule.progress
        counts = await self._call(claims.pair_counts)
        self._progress_at = began + max(PROGRESS_S, COUNTING * (time.monotonic() - began))
        for pair, (scored, total, unscored) in counts.items():
            progress.scored[pair], progress.score_sum[pair], progress.unscored[pair] = scored, total, unscored

    def _ceilings(self) -> dict[str, int]:
        """endpoint -> its `concurrency`, for endpoints that only this run's clients share"""
        limits = self._endpoints.limits.items()
        return {name: limit.ceiling for name, limit in limits if name not in self._endpoints.pooled}

    async def _claim(self, wanted: Mapping[Pair, int]) -> list[Trial]:
        return await self._call(claims.claim, self._shard, wanted)

    async def _give_back(self) -> None:
        if trials := list(self._runner.returned):
            await self._call(claims.give_back, self._shard, trials)
            self._runner.given_back(len(trials))

    async def _check_end(self) -> None:
        """End this client's part if no trial is left that it could play.

        This also finds trials of this shard that it claimed in a commit whose confirmation was lost.
        """
        pairs = await self._call(claims.pairs_pending)
        if not self._schedule.quiet or self._runner.returned:
            return
        if not pairs - self._schedule.refused.keys():
            self._runner.handle(NoMoreTrials())
        elif mine := await self._call(claims.held, self._shard):
            self._runner.take(mine)


def end_lost_shards(engine: sa.Engine, run: str, failure_detector: FailureDetector) -> dict[int, int]:
    """End the shards that have fallen silent, and free their trials; live shard -> its heartbeat counter."""
    counters = (
        shards.observed_heartbeats(engine, run) if failure_detector.own is None else shards.heartbeats(engine, run)
    )
    for silent in failure_detector.look(time.monotonic(), counters):
        shards.lose(engine, run, silent, counters[silent])
    return counters


def leaves_early(ended: RunResult) -> bool:
    """Whether a client ended before the run is over, so that others may go on."""
    return ended.stopped is not None or bool(ended.refused)


async def must_close(member: Member, ended: RunResult) -> bool:
    """Whether this client must write the run's final state; if not, another client has or will. Raises Fenced.

    A client that leaves early writes it if no other client is left. At the end of the run, the live client with the
    lowest shard writes it, and the others wait for that.
    """
    engine, run, shard = member.store.engine, member.store.run, member.shard
    if leaves_early(ended):
        return not await retry_until_available(shards.leave, engine, run, shard, True)
    failure_detector = FailureDetector(shard)
    while await retry_until_available(member.store.state) == "running":
        if fenced := member.fenced():
            raise fenced
        if min(await retry_until_available(end_lost_shards, engine, run, failure_detector), default=shard) == shard:
            return True
        await asyncio.sleep(CLOSING_S)
    return False


async def until_over(store: Store) -> None:
    """Return once the run's final state is written, or no client is live."""
    failure_detector = FailureDetector()
    while await retry_until_available(store.state) == "running":
        live = await retry_until_available(end_lost_shards, store.engine, store.run, failure_detector)
        if not live:
            return
        await asyncio.sleep(CLOSING_S)
