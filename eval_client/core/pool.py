"""Pure: how all runs that use one endpoint with one key share what it takes.

A pool is what they know of the endpoint together. Each client tells it what it holds, wants and heard, and gets its
part: trials at once, divided fairly between runs and then between the clients of each, and moments for its requests.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce

from pydantic import Field

from eval_client.core.failure_detector import LEASE_S
from eval_client.core.rates import Pace, RateRequest, Rates, RequestsAMinute, Slot, TokensAMinute, reserve
from eval_client.core.shares import EndpointFeedback, EndpointLevel, Quota, divide, granted, raised
from proctor.types import Value

TURN_S = 30.0
"""Where there are fewer trials at once than runs, others have their turn after so long."""
SKEW_S = 1.0
"""A client that was seen later than this from now was seen by a clock that has been set back since."""
LOOK_S = 2.0
"""Clients that live tell their pool something more often."""
LONGEST_OUTAGE_S = 60.0
"""After a silence that was longer the clients are gone."""


class PoolClient(Value):
    """A client of a run, as the others see it."""

    run: str = Field(max_length=128)
    """The same for all clients of a run, and for no other run."""
    endpoint: str = Field(max_length=128)
    """How the run's plan names the endpoint."""
    name: str = Field(max_length=128)
    """The run's name, for people."""
    number: int = Field(ge=0)
    """Its shard."""
    ceiling: int = Field(ge=1, le=10_000)
    """The endpoint's `concurrency` in this run's plan."""
    rpm: RequestsAMinute | None = None
    tpm: TokensAMinute | None = None
    slice: Quota
    seen: float = Field(default=0.0, allow_inf_nan=False)

    @property
    def group(self) -> tuple[str, str]:
        """The run's entry for the endpoint: what gets a part of its own."""
        return self.run, self.endpoint


class Pool(Value):
    """An endpoint over all its clients, in seconds of the clock that they share."""

    clients: dict[str, PoolClient] = Field(default_factory=dict)
    ceiling: int = 1
    """When `level` was set."""
    level: EndpointLevel | None = None
    pace: Pace = Field(default_factory=Pace)

    def live(self, now: float) -> dict[str, PoolClient]:
        """The clients that were heard within their leases."""
        return {key: client for key, client in self.clients.items() if -LEASE_S < client.seen - now <= SKEW_S}

    def excused(self, now: float) -> "Pool":
        """The pool where its place was away for a while: nobody could tell it anything, so nobody's lease is over."""
        silent_s = now - max((client.seen for client in self.clients.values()), default=now)
        if not LOOK_S < silent_s <= LONGEST_OUTAGE_S:
            return self
        later = {
            key: client.model_copy(update={"seen": client.seen + silent_s - LOOK_S})
            for key, client in self.clients.items()
        }
        return self.model_copy(update={"clients": later})

    def without(self, key: str) -> "Pool":
        """The pool after a client left it."""
        return self.model_copy(update={"clients": {name: one for name, one in self.clients.items() if name != key}})

    def idle(self, now: float) -> bool:
        """Whether nothing would be lost with it."""
        cool_until = self.level.cool_until if self.level else 0.0
        return not self.live(now) and max(cool_until, self.pace.requests_at, self.pace.tokens_at) <= now


@dataclass(frozen=True)
class Said:
    """What a client tells a pool."""

    key: str
    client: PoolClient
    heard: EndpointFeedback
    ask: RateRequest
    takes_over: bool = False
    """It is the first client of a run: whatever other clients of the run have left is over."""


@dataclass(frozen=True)
class Share:
    """What a client gets from a pool."""

    now: float
    level: EndpointLevel
    grant: int
    """Trials at once."""
    others: tuple[str, ...]
    """The names of the other runs, sorted."""
    rates: Rates
    slots: tuple[Slot, ...]


def exchange(pool: Pool, now: float, said: Said) -> tuple[Pool, Share]:
    """The pool after a client told what it has to tell, and what the client gets by that.

    The largest `concurrency` that a live run names holds for all together, and each keeps within its own. The smallest
    `rpm` and `tpm` hold for all, for those too that name none.
    """
    before, mine = pool.live(now), said.client.model_copy(update={"seen": now})
    others = {
        key: client
        for key, client in before.items()
        if key != said.key and not (said.takes_over and client.group == mine.group)
    }
    everybody = {**others, said.key: mine}
    ceiling = _ceiling(everybody.values())
    level = raised(_known_level(pool, ceiling, anybody=bool(before)), ceiling, said.heard, now)
    grant = _grant(int(level.limit), said.key, everybody, now)
    rates = reduce(Rates.both, (Rates(client.rpm, client.tpm) for client in everybody.values()))
    pace, slots = reserve(pool.pace, rates, max(now, level.cool_until), said.ask, len(everybody))
    told = mine.model_copy(update={"slice": mine.slice.model_copy(update={"held": max(mine.slice.held, grant)})})
    other_runs = {client.run: client.name for client in others.values() if client.run != mine.run}
    return (
        Pool(clients={**others, said.key: told}, ceiling=ceiling, level=level, pace=pace),
        Share(now, level, grant, tuple(sorted(other_runs.values())), rates, tuple(slots)),
    )


def _ceiling(clients: Collection[PoolClient]) -> int:
    """The largest of any run; a run that names the endpoint twice has both."""
    groups = {client.group: client.ceiling for client in clients}
    runs: dict[str, int] = {}
    for (run, _), ceiling in groups.items():
        runs[run] = runs.get(run, 0) + ceiling
    return max(runs.values())


def _known_level(pool: Pool, ceiling: int, *, anybody: bool) -> EndpointLevel | None:
    """What 429s have left of the ceiling; of earlier runs only the pause is remembered."""
    if pool.level is None or (anybody and pool.level.limit < pool.ceiling):
        return pool.level
    return pool.level.model_copy(update={"limit": float(ceiling)})


def _grant(limit: int, key: str, everybody: Mapping[str, PoolClient], now: float) -> int:
    """A client's part: fair between runs, then between the run's clients, of what nobody else holds."""
    mine = everybody[key]
    if len(everybody) == 1:
        return min(limit, mine.ceiling)
    group = {client.number: client.slice for client in everybody.values() if client.group == mine.group}
    fair = min(_fair(limit, mine.group, everybody.values(), now), mine.ceiling)
    unheld = limit - sum(client.slice.held for name, client in everybody.items() if name != key)
    return max(0, min(granted(fair, mine.number, group), unheld))


def _fair(limit: int, group: tuple[str, str], clients: Collection[PoolClient], now: float) -> int:
    groups = sorted({client.group for client in clients})
    turn = int(now // TURN_S) % len(groups)
    places = {one: place for place, one in enumerate(groups[turn:] + groups[:turn])}
    wanted = dict.fromkeys(range(len(groups)), 0)
    for client in clients:
        wanted[places[client.group]] += client.slice.wanted
    for client in clients:
        wanted[places[client.group]] = min(wanted[places[client.group]], client.ceiling)
    return divide(limit, wanted)[places[group]]
