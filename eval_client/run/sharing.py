"""Keeps a run's share of its pooled endpoints: pooled with other runs, and with the other parts of its plan."""

import asyncio
import contextlib
import hashlib
import logging
import time
from functools import partial

from eval_client.core.events import QuotasGranted
from eval_client.core.limits.pool import ClientReport, Pool, PoolClient, Quota, Share, exchange
from eval_client.core.limits.throttle import EndpointFeedback
from eval_client.plan.entries import Endpoint
from eval_client.run.context import RunContext
from eval_client.store.connection import DatabaseError, is_transient, retry_until_available
from eval_client.store.pools import FilePools, PoolError, Pools, RowPools, Settle, pool_name, state_folder

log = logging.getLogger(__name__)

EXCHANGE_S = 1.0
LEAST_PAUSE_S = 0.02
"""Shortest pause between two rounds of exchanges."""
SHORTEST_AGAIN_S = 0.05
"""Shortest time before more slots are requested, while requests wait for the slots of other clients to pass."""
LEAVE_S = 2.0
"""Longest time for leaving all pools."""


class Sharing:
    """A loop beside a runner. Its file and database calls run in threads.

    If a pool can't be used, this client has the full limits of its plan to itself.
    """

    def __init__(self, context: RunContext) -> None:
        self._runner, self._schedule = context.runner, context.schedule
        self._store, self._endpoints = store, endpoints = context.store, context.endpoints
        self._fence, self._part, self._of = context.fence, context.manifest.part, context.divided_by
        self._server = store.engine.dialect.name != "sqlite"
        self._places: dict[str, Pools | None] = {}
        where = "" if self._server else str(store.engine.url)
        own = hashlib.blake2b(f"{where}\0{store.run}".encode(), digest_size=16).hexdigest()
        self._run = own if self._part is None else context.manifest.id
        """Identifies the run, or all parts of its plan, among all that keep their pools in the same place."""
        self._own: dict[str, Pool] = {}
        """endpoint -> the pool of this client alone, used without a place"""
        self._known: set[str] = set()
        """Endpoints to whose pools this client has reported."""
        self._due_at: dict[str, float] = {}
        self._wake = asyncio.Event()
        self._left = False
        self._join()
        endpoints.on_throttled.append(self._hurry_all)

    def _join(self) -> None:
        """Keep a pool of each endpoint and replica that has none yet."""
        for name, endpoint in self._endpoints.pooled.items():
            if name not in self._places:
                self._places[name], self._own[name] = self._place(endpoint), Pool()
                self._due_at[name] = float("-inf")
                self._endpoints.gates[name].on_need = partial(self._hurry, name)

    async def run(self) -> None:
        """Run until cancelled, then leave the pools, which frees this client's shares; no-op without pools."""
        if not self._places and not self._endpoints.replicas:
            return
        try:
            while True:
                await self._round()
        finally:
            await self._leave()

    async def _round(self) -> None:
        self._wake.clear()
        self._join()
        for name, due_at in list(self._due_at.items()):
            if due_at <= time.monotonic():
                await self._exchange(name)
        await asyncio.sleep(LEAST_PAUSE_S)
        with contextlib.suppress(TimeoutError):
            due_at = min(self._due_at.values(), default=time.monotonic() + EXCHANGE_S)
            async with asyncio.timeout(due_at - time.monotonic()):
                await self._wake.wait()

    def _place(self, endpoint: Endpoint) -> Pools | None:
        """Where the endpoint's pool is stored; None if only this client uses it."""
        if self._server:
            return RowPools(self._store.engine)
        return FilePools(state_folder() / "endpoints") if endpoint.shared else None

    def _hurry(self, name: str) -> None:
        self._due_at[name] = float("-inf")
        self._wake.set()

    def _hurry_all(self) -> None:
        for name in self._due_at:
            self._hurry(name)

    async def _exchange(self, name: str) -> None:
        gate, feedback = self._endpoints.gates[name], self._endpoints.feedback[name]
        self._endpoints.feedback[name] = EndpointFeedback()
        report = self._report(name, feedback)
        self._due_at[name] = time.monotonic() + EXCHANGE_S
        share = None
        try:
            share = await self._share(name, report)
        finally:
            if share is None:
                self._endpoints.feedback[name].merge(feedback)
                gate.debt += report.rate_request.debt
        if share is not None:
            self._known.add(name)
            self._apply(name, report, share)

    def _report(self, name: str, feedback: EndpointFeedback) -> ClientReport:
        endpoint, part = self._endpoints.pooled[name], self._part
        quota = self._schedule.quota(endpoint.name)
        if endpoint.name in self._endpoints.replicas:
            quota = self._endpoints.replicas[endpoint.name].quota(name, quota)
        client = PoolClient(
            run=self._run,
            endpoint=endpoint.name,
            name=self._store.run[:128],
            number=1 if part is None else part.number,
            of=self._of,
            ceiling=endpoint.concurrency,
            rpm=endpoint.rpm,
            tpm=endpoint.tpm,
            slice=quota,
        )
        return ClientReport(
            key=self._key(name),
            client=client,
            feedback=feedback,
            rate_request=self._endpoints.gates[name].ask(time.monotonic()),
            takes_over=name not in self._known,
        )

    async def _share(self, name: str, report: ClientReport) -> Share | None:
        """This client's share after a report to the pool; None if the database is away, which stops the run anyway."""
        shares: list[Share] = []

        def settle(pool: Pool, now: float) -> Pool:
            if self._left:
                return pool
            changed, share = exchange(pool, now, report)
            shares.append(share)
            return changed

        place = self._places[name]
        try:
            if place is None:
                self._own[name] = settle(self._own[name], time.monotonic())
            else:
                await asyncio.to_thread(self._change, place, name, settle)
                self._endpoints.unshared.pop(name, None)
        except DatabaseError as error:
            if not is_transient(error):
                raise
        except PoolError as error:
            if name not in self._endpoints.unshared:
                log.warning("endpoint %s is not shared with other runs: %s", name, error)
            self._endpoints.unshared[name] = str(error)
            shares.clear()
            self._own[name] = settle(self._own[name], time.monotonic())
        return shares[-1] if shares else None

    def _change(self, place: Pools, name: str, settle: Settle) -> None:
        shared = self._endpoints.pooled[name].shared
        of = ("endpoint", *self._endpoints.addresses[name]) if shared else ("run", self._run, name)
        place.change(pool_name(*of), settle)

    def _apply(self, name: str, report: ClientReport, share: Share) -> None:
        now, gate, quota = time.monotonic(), self._endpoints.gates[name], report.client.slice
        ahead = now - share.now
        self._endpoints.limits[name].adopt(share.level.limit, share.level.cool_until + ahead)
        gate.take(share.rates, tuple(slot._replace(due=slot.due + ahead) for slot in share.slots))
        self._endpoints.shares[name] = share
        endpoint = self._endpoints.endpoint(name)
        self._runner.handle(QuotasGranted({endpoint: self._endpoints.granted(name, share.grant)}))
        again_s = gate.asks_again_in_s(now)
        if again_s is not None:
            self._due_at[name] = min(self._due_at[name], now + max(again_s, SHORTEST_AGAIN_S))
        if quota.held > self._held(name, endpoint):
            self._hurry(name)  # report at once what was given up: others wait for it

    def _held(self, name: str, endpoint: str) -> int:
        """What this client uses now, or may use without asking."""
        replicas = self._endpoints.replicas.get(endpoint)
        held = max(self._schedule.flow.use()["endpoint"][endpoint])
        return held if replicas is None else replicas.quota(name, Quota(held=0, wanted=0)).held

    async def _leave(self) -> None:
        self._left = True
        if self._server and self._schedule.abandoned:
            return  # the database may be the reason; this client's share is freed when its lease is over
        with contextlib.suppress(PoolError, DatabaseError, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                for name, place in self._places.items():
                    if place is not None and name not in self._endpoints.unshared:
                        await asyncio.to_thread(self._change, place, name, partial(_without, self._key(name)))

    def _key(self, name: str) -> str:
        return f"{self._run}/{1 if self._part is None else self._part.number}/{self._fence}/{name}"


def _without(key: str, pool: Pool, now: float) -> Pool:
    return pool.without(key)


class SharedSpending:
    """A loop beside a runner: counts what the other parts of a plan spend, where one server has the stores of all."""

    def __init__(self, context: RunContext) -> None:
        self._store, self._fence, self._spend = context.store, context.fence, context.endpoints.spend
        part = context.manifest.part
        self._others = part.siblings if part is not None and context.divided_by == 1 else ()

    async def run(self) -> None:
        """Run until cancelled. Raises Fenced."""
        while self._others:
            await asyncio.sleep(EXCHANGE_S)
            await self.exchange()

    async def exchange(self) -> None:
        """Tell what this part has spent, and learn what the others have."""
        if self._others:
            spent = dict(self._spend.by_agent)
            self._spend.elsewhere = await retry_until_available(
                self._store.exchange_spent, self._fence, spent, self._others
            )
