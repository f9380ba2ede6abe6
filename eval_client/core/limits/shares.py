"""Pure: how the clients (shards) of one run share a limit, and an endpoint's concurrency limit over all of them.

Each shard publishes what it holds of every limit and what it wants. It gives up at once what exceeds its fair share,
and takes more only of what no shard holds. So the sum of what all hold never grows beyond the limit, in whatever order
they ask.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic import Field

from eval_client.core.limits.throttle import LONGEST_COOL_S, EndpointLimit
from eval_client.core.spend import Tokens
from proctor.types import Value


class Quota(Value):
    """A shard's part of one limit, in trials at once."""

    held: int = Field(ge=0)
    """What the shard uses, or may use without asking."""
    wanted: int = Field(ge=0)
    """What the shard uses now plus what it could use more."""


class ShardState(Value):
    """The state that a shard publishes to the others."""

    slices: dict[str, Quota] = Field(default_factory=dict)
    """By limit: `endpoint NAME`, `agent NAME` or `task NAME`."""
    spent: dict[str, Tokens] = Field(default_factory=dict)
    """agent -> tokens paid by this shard; the first shard counts what was paid before as well."""
    unreachable: frozenset[str] = frozenset()
    """Tasks that this shard has waited for longer than `limits.patience_s`."""


class EndpointLevel(Value):
    """An endpoint's concurrency limit and pause, over all clients that share it."""

    limit: float = Field(ge=1, allow_inf_nan=False)
    cool_until: float = Field(allow_inf_nan=False)
    """When the pause after a 429 ends, in seconds of the clock that the clients share."""


@dataclass
class EndpointFeedback:
    """An endpoint's answers to one shard since the shard last published them."""

    answered: int = 0
    throttled: bool = False
    retry_after_s: float | None = None

    def was_throttled(self, retry_after_s: float | None) -> None:
        """Record a 429, with the pause that it asked for."""
        self.throttled = True
        if retry_after_s is not None:
            self.retry_after_s = max(retry_after_s, self.retry_after_s or 0.0)

    def merge(self, other: "EndpointFeedback") -> None:
        """Add other feedback to this."""
        self.answered += other.answered
        if other.throttled:
            self.was_throttled(other.retry_after_s)


def divide(limit: int, wanted: Mapping[int, int]) -> dict[int, int]:
    """Divide a limit by demand; the keys are shards, the values units.

    No shard gets more than it wants. A shard that gets less than it wants is at most 1 unit behind any other. The first
    units go to the lowest shard numbers, the same for every limit: a shard can't use one limit without the others.
    """
    first = set(sorted(shard for shard, count in wanted.items() if count)[: max(0, limit)])
    parts, left, lacking = {}, max(0, limit) - len(first), len(wanted)
    for shard in sorted(wanted, key=lambda shard: (wanted[shard], -shard)):
        more = min(wanted[shard] - (shard in first), left // lacking)
        parts[shard] = more + (shard in first)
        left -= more
        lacking -= 1
    return parts


def granted(limit: int, shard: int, quotas: Mapping[int, Quota]) -> int:
    """How many units of a limit a shard may use from now on, given the published quotas of all live shards."""
    fair = divide(limit, {number: quota.wanted for number, quota in quotas.items()})[shard]
    unheld = limit - sum(quota.held for number, quota in quotas.items() if number != shard)
    return max(0, min(fair, unheld))


def given_up(live: Collection[ShardState]) -> frozenset[str]:
    """The tasks that no live shard can reach: no shard would ever play their trials."""
    return frozenset.intersection(*(state.unreachable for state in live))


def adjusted(level: EndpointLevel | None, ceiling: int, feedback: EndpointFeedback, now: float) -> EndpointLevel:
    """An endpoint's level after one client's feedback; `now` is by the clock that the clients share.

    A pause that would last longer than LONGEST_COOL_S began before that clock was set back, and counts as over.
    """
    limit = EndpointLimit(ceiling)
    if level is not None:
        limit.adopt(level.limit, level.cool_until if level.cool_until <= now + LONGEST_COOL_S else now)
    for _ in range(feedback.answered):
        limit.succeeded()
    if feedback.throttled:
        limit.throttled(now, feedback.retry_after_s)
    return EndpointLevel(limit=limit.limit, cool_until=max(0.0, limit.cool_until))
