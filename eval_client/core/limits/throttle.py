"""Pure: an endpoint's concurrency limit over all its clients, halved on a 429 and growing while requests succeed."""

from dataclasses import dataclass

from pydantic import Field

from proctor.types import Value

COOL_S = 1.0
"""The pause after a 429 without Retry-After. Further 429s within the pause don't halve the limit again."""
LONGEST_COOL_S = 60.0


@dataclass
class EndpointLimit:
    """Trials at once by additive increase and multiplicative decrease, between 1 and `ceiling`."""

    ceiling: int
    limit: float = 0.0
    cool_until: float = float("-inf")
    retries: int = 0
    """Requests that were repeated, for reports."""

    def __post_init__(self) -> None:
        self.limit = float(self.ceiling)

    @property
    def capacity(self) -> int:
        """Trials at once, at present."""
        return int(self.limit)

    def throttled(self, now: float, retry_after_s: float | None) -> None:
        """Record a 429: halve the limit, unless within a pause, and pause."""
        self.retries += 1
        if now >= self.cool_until:
            self.limit = max(1.0, self.limit / 2)
        self.cool_until = max(self.cool_until, now + min(retry_after_s or COOL_S, LONGEST_COOL_S))

    def retried(self) -> None:
        """Record a request that failed in another way and is repeated."""
        self.retries += 1

    def succeeded(self) -> None:
        """Record an answered request. After as many as the limit, the limit has grown by about 1."""
        self.limit = min(float(self.ceiling), self.limit + 1.0 / self.limit)

    def cool_for_s(self, now: float) -> float:
        """Seconds left of the pause."""
        return max(0.0, self.cool_until - now)

    def adopt(self, limit: float, cool_until: float) -> None:
        """Apply a level shared with other clients; a pause never becomes shorter."""
        self.limit = min(float(self.ceiling), limit)
        self.cool_until = max(self.cool_until, cool_until)


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
