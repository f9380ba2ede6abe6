"""Pure: what two agents scored on the samples that both of them were to play."""

import math
from typing import NamedTuple

Interval = tuple[float, float]
"""Lower and upper end."""


class Scores(NamedTuple):
    """One agent's scores on one sample, in 0..1, and the number of planned epochs that have none."""

    scores: tuple[float, ...]
    missing: int = 0
    cluster: str | None = None

    @property
    def mean(self) -> float:
        """The mean over the scored epochs. There has to be one."""
        return math.fsum(self.scores) / len(self.scores)

    def mean_with(self, missing: float) -> float:
        """The mean over all planned epochs, if each missing score were `missing`."""
        return (math.fsum(self.scores) + self.missing * missing) / (len(self.scores) + self.missing)


class SamplePair(NamedTuple):
    """One planned sample, with the scores of A and of B."""

    cluster: str
    """Samples with the same cluster share a world, and are not independent."""
    a: Scores
    b: Scores

    @property
    def matched(self) -> bool:
        """Whether both sides scored the sample at least once."""
        return bool(self.a.scores and self.b.scores)

    @property
    def difference(self) -> float:
        """Mean of A less mean of B. The sample has to be matched."""
        return self.a.mean - self.b.mean
