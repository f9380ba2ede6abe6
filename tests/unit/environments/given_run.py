"""A run that a test hands to the commands of a world."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from proctor.plugins import FinishedTrial, RecordedPair, RecordedRun


def pairs_of(trials: Sequence[FinishedTrial]) -> list[RecordedPair]:
    """The pairs of agent and task in some trials, in their order."""
    counts = Counter((trial.agent, trial.task) for trial in trials)
    return [RecordedPair(run="r", agent=a, task=t, planned=count, comparable=None) for (a, t), count in counts.items()]


class GivenRun(RecordedRun):
    """A run of these trials, beside others."""

    def __init__(
        self, trials: Sequence[FinishedTrial], name: str = "r", others: Mapping[str, RecordedRun] | None = None
    ) -> None:
        self._trials, self.name, self._others = trials, name, others or {}

    def other(self, run: str) -> RecordedRun:
        return self._others[run]

    def __iter__(self) -> Iterator[FinishedTrial]:
        return iter(self._trials)

    def pairs(self) -> list[RecordedPair]:
        return pairs_of(self._trials)
