"""Pure: whether and when a trial is tried again after a fault."""

from dataclasses import dataclass

FIRST_WAIT_S = 1.0
LONGEST_WAIT_S = 30.0


@dataclass(frozen=True, slots=True)
class AttemptPolicy:
    """At most `attempts` attempts, with full jitter: before attempt n+1 a wait from 0 to min(30, 2**(n-1)) seconds."""

    attempts: int

    def wait_s(self, attempts_made: int, chance: float) -> float | None:
        """Seconds until the next attempt; None to give up. `chance` is uniform in [0, 1)."""
        if attempts_made >= self.attempts:
            return None
        return chance * min(LONGEST_WAIT_S, FIRST_WAIT_S * 2.0 ** (attempts_made - 1))
