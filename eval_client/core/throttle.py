"""Pure: how many trials an endpoint takes at once; halved on 429, growing back while requests succeed."""

from dataclasses import dataclass

COOL_S = 1.0
"""A pause after a 429 that names none; within it further 429s are of the same wave and do not halve again."""
LONGEST_COOL_S = 60.0


@dataclass
class EndpointLimit:
    """Additive increase, multiplicative decrease, between 1 and `ceiling`."""

    ceiling: int
    limit: float = 0.0
    cool_until: float = float("-inf")
    retries: int = 0
    """Requests that had to be repeated, for the record."""

    def __post_init__(self) -> None:
        self.limit = float(self.ceiling)

    @property
    def capacity(self) -> int:
        """Trials at once, for now."""
        return int(self.limit)

    def throttled(self, now: float, retry_after_s: float | None) -> None:
        """The endpoint answered 429."""
        self.retries += 1
        if now >= self.cool_until:
            self.limit = max(1.0, self.limit / 2)
        self.cool_until = max(self.cool_until, now + min(retry_after_s or COOL_S, LONGEST_COOL_S))

    def retried(self) -> None:
        """A request failed otherwise and is repeated."""
        self.retries += 1

    def succeeded(self) -> None:
        """A request was answered: after as many as there are trials at once, one more is allowed."""
        self.limit = min(float(self.ceiling), self.limit + 1.0 / self.limit)

    def cool_for_s(self, now: float) -> float:
        """Seconds that new requests should still be held back."""
        return max(0.0, self.cool_until - now)

    def adopt(self, limit: float, cool_until: float) -> None:
        """Take over what others have found out; a pause never becomes shorter."""
        self.limit = min(float(self.ceiling), limit)
        self.cool_until = max(self.cool_until, cool_until)
