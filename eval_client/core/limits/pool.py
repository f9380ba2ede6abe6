"""Pure: how all runs that use one endpoint with one key share its limits.

A pool is their shared state of the endpoint. Each client reports what it holds, what it wants and how the endpoint
answered. It gets a share: trials at once, divided fairly between runs and then between the parts of each plan, and time
slots for its requests. It gives up at once what exceeds its fair share, and takes more only of what no client holds: so
the sum of what all hold never grows beyond the limit, in whatever order they ask.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import reduce

from pydantic import Field

from eval_client.core import RequestsAMinute, TokensAMinute
from eval_client.core.limits.rates import Pace, RateRequest, Rates, Slot, reserve
from eval_client.core.limits.throttle import EndpointFeedback, EndpointLevel, adjusted
from proctor.types import Value

LEASE_S = 10.0
"""A client that has not reported for so long is gone."""
TURN_S = 30.0
"""If the limit is smaller than the number of runs, the runs take turns of this length."""
SKEW_S = 1.0
"""A client whose last report is further in the future than this does not count: the clock has been set back since."""
LOOK_S = 2.0
"""Live clients report to their pool more often than this."""
LONGEST_OUTAGE_S = 60.0
"""After a longer silence of all clients, they are gone; a shorter one is an outage of the pool's store."""


class Quota(Value):
    """A client's part of one limit, in trials at once."""

    held: int = Field(ge=0)
    """What the client uses, or may use without asking."""
    wanted: int = Field(ge=0)
    """What the client uses now plus what it could use more."""


class PoolClient(Value):
    """A client of a run, as its pool and the other clients know it."""

    run: str = Field(max_length=128)
    """The same for all parts of a plan, and for no other run."""
    endpoint: str = Field(max_length=128)
    """The endpoint's name in the run's plan."""
    name: str = Field(max_length=128)
    """The run's name, to show to users."""
    number: int = Field(ge=0)
    """The part of the plan; 1 where it is played in one piece."""
    of: int = Field(default=1, ge=1)
    """The client counts with `1 / of` of the plan's limits, and other parts beside it with theirs."""
    ceiling: int = Field(ge=1, le=10_000)
    """The endpoint's `concurrency` in this run's plan."""
    rpm: RequestsAMinute | None = None
    tpm: TokensAMinute | None = None
    slice: Quota
    """What the client holds and wants of the endpoint's trials at once."""
    seen: float = Field(default=0.0, allow_inf_nan=False)
    """When the client last reported, by the pool's clock."""

    @property
    def group(self) -> tuple[str, str]:
        """The run's entry for the endpoint: the unit that gets a share. A part with limits of its own is one too."""
        return self.run, self.endpoint if self.of == 1 else f"{self.endpoint} {self.number}"


class Pool(Value):
    """An endpoint's state over all its clients. All times are in seconds of the clock that the clients share."""

    clients: dict[str, PoolClient] = Field(default_factory=dict)
    ceiling: int = 1
    """The largest `concurrency` when `level` was set."""
    level: EndpointLevel | None = None
    pace: Pace = Field(default_factory=Pace)

    def live(self, now: float) -> dict[str, PoolClient]:
        """The clients whose last report is within their lease."""
        return {key: client for key, client in self.clients.items() if -LEASE_S < client.seen - now <= SKEW_S}

    def excused(self, now: float) -> "Pool":
        """The pool with leases extended after an outage of its store: no client could report, so no lease is over."""
        silent_s = now - max((client.seen for client in self.clients.values()), default=now)
        if not LOOK_S < silent_s <= LONGEST_OUTAGE_S:
            return self
        later = {
            key: client.model_copy(update={"seen": client.seen + silent_s - LOOK_S})
            for key, client in self.clients.items()
        }
        return self.model_copy(update={"clients": later})

    def without(self, key: str) -> "Pool":
        """The pool without a client that has left."""
        return self.model_copy(update={"clients": {name: one for name, one in self.clients.items() if name != key}})

    def idle(self, now: float) -> bool:
        """Whether the pool can be deleted: no live client, no pause, no reserved slot."""
        cool_until = self.level.cool_until if self.level else 0.0
        return not self.live(now) and max(cool_until, self.pace.requests_at, self.pace.tokens_at) <= now


@dataclass(frozen=True)
class ClientReport:
    """A client's report to a pool."""

    key: str
    client: PoolClient
    feedback: EndpointFeedback
    rate_request: RateRequest
    takes_over: bool = False
    """The client has just begun, so another entry of its run and part is a left-over and is dropped."""


@dataclass(frozen=True)
class Share:
    """A client's share of a pool."""

    now: float
    level: EndpointLevel
    grant: int
    """Trials at once."""
    others: tuple[str, ...]
    """The names of the other runs, sorted."""
    rates: Rates
    slots: tuple[Slot, ...]


def exchange(pool: Pool, now: float, report: ClientReport) -> tuple[Pool, Share]:
    """The pool after a client's report, and the client's share.

    The largest `concurrency` in a live run's plan is the limit for all runs together; each run also keeps within its
    own. The smallest `rpm` and `tpm` hold for all runs, those without a rate in their plan included.
    """
    before, mine = pool.live(now), report.client.model_copy(update={"seen": now})
    others = {
        key: client
        for key, client in before.items()
        if key != report.key and not (report.takes_over and (client.group, client.number) == (mine.group, mine.number))
    }
    everybody = {**others, report.key: mine}
    ceiling = _ceiling(everybody.values())
    level = adjusted(_known_level(pool, ceiling, anybody=bool(before)), ceiling, report.feedback, now)
    grant = _grant(int(level.limit), report.key, everybody, now)
    rates = _rates(everybody.values())
    pace, slots = reserve(pool.pace, rates, max(now, level.cool_until), report.rate_request, len(everybody))
    mine = mine.model_copy(update={"slice": mine.slice.model_copy(update={"held": max(mine.slice.held, grant)})})
    other_runs = {client.run: client.name for client in others.values() if client.run != mine.run}
    return (
        Pool(clients={**others, report.key: mine}, ceiling=ceiling, level=level, pace=pace),
        Share(now, level, grant, tuple(sorted(other_runs.values())), rates, tuple(slots)),
    )


def _rates(clients: Collection[PoolClient]) -> Rates:
    """The smallest of each rate; what parts of a plan have of a rate counts together."""
    entries: dict[tuple[str, str], Rates] = {}
    for client in clients:
        mine, key = Rates(client.rpm, client.tpm), (client.run, client.endpoint)
        before = entries.get(key)
        entries[key] = mine if before is None else before.plus(mine) if client.of > 1 else before.both(mine)
    return reduce(Rates.both, entries.values())


def _ceiling(clients: Collection[PoolClient]) -> int:
    """The largest `concurrency` of any run; for a run that names the endpoint twice, the sum."""
    groups = {client.group: client.ceiling for client in clients}
    runs: dict[str, int] = {}
    for (run, _), ceiling in groups.items():
        runs[run] = runs.get(run, 0) + ceiling
    return max(runs.values())


def _known_level(pool: Pool, ceiling: int, *, anybody: bool) -> EndpointLevel | None:
    """The level that 429s have led to, for a new ceiling. If no client is live, only the pause is kept."""
    if pool.level is None or (anybody and pool.level.limit < pool.ceiling):
        return pool.level
    return pool.level.model_copy(update={"limit": float(ceiling)})


def _grant(limit: int, key: str, everybody: Mapping[str, PoolClient], now: float) -> int:
    """A client's trials at once: its fair part between runs, then between a plan's parts, of what no other holds."""
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


def divide(limit: int, wanted: Mapping[int, int]) -> dict[int, int]:
    """Divide a limit by demand; the keys are numbers of clients, the values units.

    None gets more than it wants. One that gets less than it wants is at most 1 unit behind any other. The first units
    go to the lowest numbers, the same for every limit: a client can't use one limit without the others.
    """
    first = set(sorted(number for number, count in wanted.items() if count)[: max(0, limit)])
    parts, left, lacking = {}, max(0, limit) - len(first), len(wanted)
    for number in sorted(wanted, key=lambda number: (wanted[number], -number)):
        more = min(wanted[number] - (number in first), left // lacking)
        parts[number] = more + (number in first)
        left -= more
        lacking -= 1
    return parts


def granted(limit: int, mine: int, quotas: Mapping[int, Quota]) -> int:
    """How many units of a limit a client may use from now on, given the published quotas of all live clients."""
    fair = divide(limit, {number: quota.wanted for number, quota in quotas.items()})[mine]
    unheld = limit - sum(quota.held for number, quota in quotas.items() if number != mine)
    return max(0, min(fair, unheld))
