"""Keeps a client's part of the endpoints that it shares: with other runs, and with the other clients of its own."""

import asyncio
import contextlib
import hashlib
import logging
import time
from functools import partial

import sqlalchemy as sa

from eval_client.core.pool import Pool, PoolClient, Said, Share, exchange
from eval_client.core.shares import EndpointFeedback
from eval_client.endpoints.endpoints import Endpoints
from eval_client.plan import Endpoint
from eval_client.run.runner import Runner
from eval_client.store.connection import passes
from eval_client.store.member import Member
from eval_client.store.pools.base import PoolError, Pools, Settle
from eval_client.store.pools.files import FilePools, state_folder
from eval_client.store.pools.rows import RowPools

log = logging.getLogger(__name__)

EXCHANGE_S = 1.0
LEAST_PAUSE_S = 0.02
"""Between two rounds of exchanges."""
SHORTEST_AGAIN_S = 0.05
"""Until more moments are asked for, where requests wait for those of others to go by."""
LEAVE_S = 2.0


class Sharing:
    """A loop beside a runner; its calls to files and the database go to threads.

    Where a pool can't be had, this client has the whole of what its plan says to itself.
    """

    def __init__(self, member: Member, runner: Runner, endpoints: Endpoints) -> None:
        self._member, self._runner, self._endpoints = member, runner, endpoints
        self._server = member.store.engine.dialect.name != "sqlite"
        self._places: dict[str, Pools | None] = {name: self._place(one) for name, one in endpoints.pooled.items()}
        where = "" if self._server else str(member.store.engine.url)
        self._run = hashlib.blake2b(f"{where}\0{member.store.run}".encode(), digest_size=16).hexdigest()
        """The same for all clients of the run, and for no other run in their place of pools."""
        self._own: dict[str, Pool] = {name: Pool() for name in self._places}
        self._known: set[str] = set()
        """Endpoints whose pools this client has told what it takes over."""
        self._due_at = dict.fromkeys(self._places, float("-inf"))
        self._wake = asyncio.Event()
        self._left = False
        for name in self._places:
            endpoints.gates[name].on_need = partial(self._hurry, name)
        endpoints.on_throttled.append(self._hurry_all)

    async def run(self) -> None:
        """Until cancelled; then the others get at once what this client has. Nothing where nothing is shared."""
        if not self._places:
            return
        try:
            while True:
                await self._round()
        finally:
            await self._leave()

    async def _round(self) -> None:
        self._wake.clear()
        for name, due_at in self._due_at.items():
            if due_at <= time.monotonic():
                await self._exchange(name)
        await asyncio.sleep(LEAST_PAUSE_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(min(self._due_at.values()) - time.monotonic()):
                await self._wake.wait()

    def _place(self, endpoint: Endpoint) -> Pools | None:
        """Where the endpoint's pool lies; None where nobody else has part in it."""
        if self._server:
            return RowPools(self._member.store.engine)
        return FilePools(state_folder()) if endpoint.shared else None

    def _hurry(self, name: str) -> None:
        self._due_at[name] = float("-inf")
        self._wake.set()

    def _hurry_all(self) -> None:
        for name in self._due_at:
            self._hurry(name)

    async def _exchange(self, name: str) -> None:
        gate, heard = self._endpoints.gates[name], self._endpoints.heard[name]
        self._endpoints.heard[name] = EndpointFeedback()
        said = self._said(name, heard)
        self._due_at[name] = time.monotonic() + EXCHANGE_S
        share = None
        try:
            share = await self._told(name, said)
        finally:
            if share is None:
                self._endpoints.heard[name].and_also(heard)
                gate.debt += said.ask.debt
        if share is not None:
            self._known.add(name)
            self._apply(name, said, share)

    def _said(self, name: str, heard: EndpointFeedback) -> Said:
        endpoint, member = self._endpoints.pooled[name], self._member
        client = PoolClient(
            run=self._run,
            endpoint=name,
            name=member.store.run[:128],
            number=member.shard,
            ceiling=endpoint.concurrency,
            rpm=endpoint.rpm,
            tpm=endpoint.tpm,
            slice=self._runner.capacity_limits.slices(self._runner.startable())[f"endpoint {name}"],
        )
        return Said(
            key=self._key(name),
            client=client,
            heard=heard,
            ask=self._endpoints.gates[name].ask(time.monotonic()),
            takes_over=name not in self._known and not member.joined,
        )

    async def _told(self, name: str, said: Said) -> Share | None:
        """What the pool gives for what was said; None where the database is away, which holds up all else as well."""
        shares: list[Share] = []

        def settle(pool: Pool, now: float) -> Pool:
            if self._left:
                return pool
            changed, share = exchange(pool, now, said)
            shares.append(share)
            return changed

        place = self._places[name]
        try:
            if place is None:
                self._own[name] = settle(self._own[name], time.monotonic())
            else:
                await asyncio.to_thread(self._change, place, name, settle)
                self._endpoints.unshared.pop(name, None)
        except sa.exc.SQLAlchemyError as error:
            if not passes(error):
                raise
        except PoolError as error:
            if name not in self._endpoints.unshared:
                log.warning("endpoint %s is not shared with other runs: %s", name, error)
            self._endpoints.unshared[name] = str(error)
            shares.clear()
            self._own[name] = settle(self._own[name], time.monotonic())
        return shares[-1] if shares else None

    def _change(self, place: Pools, name: str, settle: Settle) -> None:
        url, key = self._endpoints.addresses[name]
        shared = self._endpoints.pooled[name].shared
        place.change(place.shared_name(url, key) if shared else place.own_name(self._run, name), settle)

    def _apply(self, name: str, said: Said, share: Share) -> None:
        now, gate, slice = time.monotonic(), self._endpoints.gates[name], said.client.slice
        ahead = now - share.now
        self._endpoints.limits[name].adopt(share.level.limit, share.level.cool_until + ahead)
        gate.take(share.rates, tuple(slot._replace(due=slot.due + ahead) for slot in share.slots))
        self._endpoints.shares[name] = share
        had_none = not self._runner.flow.use()["endpoint"][name][1]
        self._runner.grant({f"endpoint {name}": share.grant})
        if had_none and share.grant:
            self._runner.on_need()
        again_s = gate.asks_again_in_s(now)
        if again_s is not None:
            self._due_at[name] = min(self._due_at[name], now + max(again_s, SHORTEST_AGAIN_S))
        if slice.held > max(self._runner.flow.use()["endpoint"][name]):
            self._hurry(name)  # what was given up is told at once, for others wait for it

    async def _leave(self) -> None:
        self._left = True
        if self._server and self._runner.abandoned:
            return  # the database may be why; what this client had is free when its lease is over
        with contextlib.suppress(PoolError, sa.exc.SQLAlchemyError, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                for name, place in self._places.items():
                    if place is not None and name not in self._endpoints.unshared:
                        await asyncio.to_thread(self._change, place, name, partial(_without, self._key(name)))

    def _key(self, name: str) -> str:
        return f"{self._run}/{self._member.shard}/{name}"


def _without(key: str, pool: Pool, now: float) -> Pool:
    return pool.without(key)
