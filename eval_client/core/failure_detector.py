"""Pure: which of the other clients of a run have fallen silent."""

from collections.abc import Mapping
from dataclasses import dataclass, field

LEASE_S = 10.0
"""A shard that was not heard for so long is lost; what it held is played by the others."""
BEAT_S = 1.0
LONGEST_LOOK_S = 2.0
"""More than this can't be said to have been silence: the onlooker, or the database, may have stood still itself."""


@dataclass
class FailureDetector:
    """Watches counters that live shards count up, by the onlooker's own clock alone.

    Time passes only while the onlooker's own counter grows: where its beats don't get through, others' can't either.
    """

    own: int | None = None
    """The onlooker's shard."""
    _own_count: int | None = None
    _seen: dict[int, tuple[int, float]] = field(default_factory=dict)
    """shard -> (its counter, for how many seconds that has stood)"""
    _looked_at: float | None = None

    def look(self, now: float, beats: Mapping[int, int]) -> list[int]:
        """The shards that are lost, of those that count as live; `now` is monotonic."""
        if self.own is not None and beats.get(self.own) == self._own_count:
            return []
        self._own_count = beats.get(self.own) if self.own is not None else None
        passed_s = 0.0 if self._looked_at is None else min(now - self._looked_at, LONGEST_LOOK_S)
        self._looked_at = now
        self._seen = {shard: (count, self._silence_s(shard, count, passed_s)) for shard, count in beats.items()}
        return [shard for shard, (_, silent_s) in self._seen.items() if silent_s >= LEASE_S and shard != self.own]

    def _silence_s(self, shard: int, count: int, passed_s: float) -> float:
        before, silent_s = self._seen.get(shard, (None, 0.0))
        return silent_s + passed_s if count == before else 0.0
