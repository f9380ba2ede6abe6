"""Pure: how many trials an endpoint takes at once; halved on 429, growing back while requests succeed."""

from dataclasses import dataclass

COOL_S = 1.0
"""A pause after a 429 that names none; within it further 429s are of the same wave and do not halve again."""
LONGEST_COOL_S = 60.0


@dataclass
class EndpointLimit:
    """Additive increase, multiplicative decrease, between 1 and `ceiling`."""

    ceiling: int
    _limit: float = 0.0
    _cool_until: float = float("-inf")
    retries: int = 0
    """Requests that had to be repeated, for the record."""

    def __post_init__(self) -> None:
        self._limit = float(self.ceiling)

    @property
    def capacity(self) -> int:
        """Trials at once, for now."""
        return int(self._limit)

    def throttled(self, now: float, retry_after_s: float | None) -> None:
        """The endpoint answered 429."""
        self.retries += 1
        if now >= self._cool_until:
            self._limit = max(1.0, self._limit / 2)
        self._cool_until = max(self._cool_until, now + min(retry_after_s or COOL_S, LONGEST_COOL_S))

    def retried(self) -> None:
        """A request failed otherwise and is repeated."""
        self.retries += 1

    def succeeded(self) -> None:
        """A request was answered: after as many as there are trials at once, one more is allowed."""
        self._limit = min(float(self.ceiling), self._limit + 1.0 / self._limit)

    def cool_for_s(self, now: float) -> float:
        """Seconds that new requests should still be held back."""
        return max(0.0, self._cool_until - now)
