"""Pure: an endpoint's concurrency limit, halved on a 429 and growing back while requests succeed."""

from dataclasses import dataclass

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
