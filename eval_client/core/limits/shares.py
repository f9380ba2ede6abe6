"""Pure: how clients share a limit, and an endpoint's concurrency limit over all of them.

Each client publishes what it holds of a limit and what it wants. It gives up at once what exceeds its fair share, and
takes more only of what no client holds. So the sum of what all hold never grows beyond the limit, in whatever order
they ask.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import Field

from eval_client.core.limits.throttle import LONGEST_COOL_S, EndpointLimit
from proctor.types import Value


class Quota(Value):
    """A client's part of one limit, in trials at once."""

    held: int = Field(ge=0)
    """What the client uses, or may use without asking."""
    wanted: int = Field(ge=0)
    """What the client uses now plus what it could use more."""


class EndpointLevel(Value):
    """An endpoint's concurrency limit and pause, over all clients that share it."""

    limit: float = Field(ge=1, allow_inf_nan=False)
    cool_until: float = Field(allow_inf_nan=False)
    """When the pause after a 429 ends, in seconds of the clock that the clients share."""


@dataclass
class EndpointFeedback:
    """An endpoint's answers to one client since it last published them."""

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
