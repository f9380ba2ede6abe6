"""Pure: how the clients of one run share a limit, and what an endpoint bears over all of them.

Each shard tells what it holds of every limit and what it could use; it takes back at once what is not its fair share,
and takes more only of what nobody holds. So what all hold together never grows beyond the limit, whoever asks when.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pydantic import Field

from eval_client.core.throttle import LONGEST_COOL_S, EndpointLimit
from proctor.types import Value


class Quota(Value):
    """A shard's part of one limit, in trials at once."""

    held: int = Field(ge=0)
    """What it uses or may begin to use without asking."""
    wanted: int = Field(ge=0)
    """What it uses, and what it could use more."""


class ShardState(Value):
    """What a shard tells the others."""

    slices: dict[str, Quota] = Field(default_factory=dict)
    """By limit: `endpoint NAME`, `agent NAME` or `task NAME`."""
    spent: dict[str, tuple[int, int]] = Field(default_factory=dict)
    """agent -> (prompt, completion) tokens paid by this client; the first one counts what was paid before as well."""
    unreachable: frozenset[str] = frozenset()
    """Tasks for which this client has waited longer than `limits.patience_s`."""


class EndpointLevel(Value):
    """What an endpoint takes over all that share it."""

    limit: float = Field(ge=1, allow_inf_nan=False)
    cool_until: float = Field(allow_inf_nan=False)
    """In seconds of the clock that all who share the level go by."""


@dataclass
class EndpointFeedback:
    """What an endpoint has told one shard since it last told the others."""

    answered: int = 0
    throttled: bool = False
    retry_after_s: float | None = None

    def was_throttled(self, retry_after_s: float | None) -> None:
        """A 429 came, with the pause that it asked for."""
        self.throttled = True
        if retry_after_s is not None:
            self.retry_after_s = max(retry_after_s, self.retry_after_s or 0.0)

    def and_also(self, other: "EndpointFeedback") -> None:
        """Take over what another has heard."""
        self.answered += other.answered
        if other.throttled:
            self.was_throttled(other.retry_after_s)


def divide(limit: int, wanted: Mapping[int, int]) -> dict[int, int]:
    """A limit divided by demand: nobody gets more than it wants, nor 2 more than one who would like more.

    Keys are shards. The first unit goes to the lowest numbers, so for every limit to the same ones: whoever lacks one
    limit is of no use to itself with another.
    """
    first = set(sorted(shard for shard, count in wanted.items() if count)[: max(0, limit)])
    parts, left, lacking = {}, max(0, limit) - len(first), len(wanted)
    for shard in sorted(wanted, key=lambda shard: (wanted[shard], -shard)):
        more = min(wanted[shard] - (shard in first), left // lacking)
        parts[shard] = more + (shard in first)
        left -= more
        lacking -= 1
    return parts


def granted(limit: int, shard: int, slices: Mapping[int, Quota]) -> int:
    """How many of a limit a shard may use from now on, given what every live shard tells."""
    fair = divide(limit, {number: slice.wanted for number, slice in slices.items()})[shard]
    unheld = limit - sum(slice.held for number, slice in slices.items() if number != shard)
    return max(0, min(fair, unheld))


def given_up(live: Collection[ShardState]) -> frozenset[str]:
    """The tasks that no live shard can reach: nobody would ever play their trials."""
    return frozenset.intersection(*(standing.unreachable for standing in live))


def raised(level: EndpointLevel | None, ceiling: int, heard: EndpointFeedback, now: float) -> EndpointLevel:
    """An endpoint's level after what one shard heard of it; `now` is by the database's clock.

    A pause that lasts longer than any does was begun before that clock was set back, and is over.
    """
    limit = EndpointLimit(ceiling)
    if level is not None:
        limit.adopt(level.limit, level.cool_until if level.cool_until <= now + LONGEST_COOL_S else now)
    for _ in range(heard.answered):
        limit.succeeded()
    if heard.throttled:
        limit.throttled(now, heard.retry_after_s)
    return EndpointLevel(limit=limit.limit, cool_until=max(0.0, limit.cool_until))
