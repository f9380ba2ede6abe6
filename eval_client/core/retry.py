"""Pure: whether and when a trial is tried again after a fault."""

from dataclasses import dataclass

from proctor.retry import RetryPolicy


@dataclass(frozen=True)
class AttemptPolicy(RetryPolicy):
    """At most `max_tries` attempts; before attempt n+1 a wait from 0 to min(30, 2**(n-1)) seconds."""

    base_s: float = 1.0
