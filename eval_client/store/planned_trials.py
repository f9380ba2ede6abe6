"""The trials that a plan has, with their ids."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from eval_client.core.flow import Pair
from eval_client.plan.plan import Plan
from eval_client.store.records import Trial


class PairCopy(NamedTuple):
    """A pair whose planned trials are those of another pair of its task, but for the agent and the ids."""

    agent: str
    first: int
    """The id of its first trial."""
    of: range
    """The ids of the other pair's trials."""


class PlannedTrials:
    """The trials of a new run, in the order of their ids: by pair, then epoch, then sample; made one by one."""

    def __init__(
        self,
        plan: Plan,
        samples: Mapping[str, Mapping[str, str]],
        plays: Callable[[str, str], bool] = lambda task, sample: True,
    ) -> None:
        """`samples` has the cluster of each by task and sample. Trials have the same ids whichever of them it plays."""
        self._epochs, self._samples, self._plays = plan.epochs, samples, plays
        self._ids: dict[Pair, range] = {}
        first = 0
        for agent, task in plan.pairs():
            self._ids[agent, task] = range(first, first + plan.epochs * len(samples[task]))
            first = self._ids[agent, task].stop

    def __iter__(self) -> Iterator[Trial]:
        for pair in self._ids:
            yield from self._of_pair(pair)

    def first_of_tasks(self) -> Iterator[Trial]:
        """The trials of the first agent of each task."""
        for pair in self._first_pairs().values():
            yield from self._of_pair(pair)

    def copies(self) -> Iterator[PairCopy]:
        """The other agents' pairs, whose trials are the same but for the agent and the ids."""
        firsts = self._first_pairs()
        for (agent, task), ids in self._ids.items():
            if firsts[task] != (agent, task):
                yield PairCopy(agent, ids.start, self._ids[firsts[task]])

    def _first_pairs(self) -> dict[str, Pair]:
        return {task: (agent, task) for agent, task in reversed(self._ids)}

    def _of_pair(self, pair: Pair) -> Iterator[Trial]:
        agent, task = pair
        keys = ((epoch, each) for epoch in range(self._epochs) for each in self._samples[task].items())
        for number, (epoch, (sample, cluster)) in zip(self._ids[pair], keys, strict=True):
            if self._plays(task, sample):
                yield Trial(id=number, agent=agent, task=task, sample=sample, epoch=epoch, cluster=cluster)
