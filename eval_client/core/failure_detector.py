"""Pure: detects which of a run's other clients have fallen silent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

LEASE_S = 10.0
"""A shard whose counter stays the same for this long is lost; the other shards play the trials it held."""
BEAT_S = 1.0
"""Seconds between two heartbeats of a shard."""
LONGEST_LOOK_S = 2.0
"""Most seconds of silence that one look counts: in a longer gap the observer or the database may have been stopped."""


@dataclass
class FailureDetector:
    """Watches the heartbeat counters of live shards, by the observer's own clock alone.

    Suspicion time advances only while the observer's own counter grows: if its own heartbeats can't be written, the
    silence of others proves nothing.
    """

    own: int | None = None
    """The observer's shard; None for an observer that sends no heartbeats."""
    _own_count: int | None = None
    _seen: dict[int, tuple[int, float]] = field(default_factory=dict)
    """shard -> (its counter, for how many seconds that has not changed)"""
    _looked_at: float | None = None

    def look(self, now: float, counters: Mapping[int, int]) -> list[int]:
        """The shards that are lost. `counters` has those that count as live; `now` is monotonic, in seconds."""
        if self.own is not None and counters.get(self.own) == self._own_count:
            return []
        self._own_count = counters.get(self.own) if self.own is not None else None
        passed_s = 0.0 if self._looked_at is None else min(now - self._looked_at, LONGEST_LOOK_S)
        self._looked_at = now
        self._seen = {shard: (count, self._silence_s(shard, count, passed_s)) for shard, count in counters.items()}
        return [shard for shard, (_, silent_s) in self._seen.items() if silent_s >= LEASE_S and shard != self.own]

    def _silence_s(self, shard: int, count: int, passed_s: float) -> float:
        before, silent_s = self._seen.get(shard, (None, 0.0))
        return silent_s + passed_s if count == before else 0.0
