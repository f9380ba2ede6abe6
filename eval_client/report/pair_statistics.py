"""What a run's scores say about each pair beside the mean: its bounds, and which agents can't be told apart."""

import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from eval_client.core.flow import Pair
from eval_client.core.statistics.missing import mean_bounds
from eval_client.core.statistics.paired import difference
from eval_client.core.statistics.samples import Scores
from eval_client.core.statistics.several import holm
from eval_client.report.compare.compare import letters_by_task
from eval_client.report.compare.measure import Settings, planned_pairs
from eval_client.report.compare.sides import MOST_AGENTS, agents_of
from eval_client.report.report import PairReport
from eval_client.store.store import Store
from eval_client.store.trials.scores import PairScores, planned_scores
from proctor.types import Value

MOST_WORK, TEST_WORK = 15_000, 150
"""Letters are for runs whose tests take less work: one for each sample, and TEST_WORK for each test."""
TOO_MANY = "more than {most} agents: `proctor compare` takes two, or one against all others"
TOO_MUCH = "too many tests to make beside a page; compare the agents to see them"


class MissingBounds(Value):
    """The mean score over all planned samples."""

    low: float
    """If all missing scores were 0."""
    high: float
    """If they were 1."""


class PairStatistics(Value):
    """One agent on one task."""

    missing: MissingBounds
    letters: str | None
    """Agents of a task share one if, and only if, no test tells them apart; None where letters are left out."""


class Letters(NamedTuple):
    """The letters of a run's agents, task by task."""

    of_task: Mapping[str, Mapping[str, str]]
    """task -> agent -> letters; empty where they are left out."""
    left_out: str = ""
    """Why there are none; empty too where there is nothing to tell apart."""


def pair_statistics(store: Store, pairs: Sequence[PairReport], found: Letters) -> dict[Pair, PairStatistics]:
    """The statistics of the pairs of a run's report. Raises StoreError, DatabaseError."""
    scores = planned_scores(store, tuple(dict.fromkeys(pair.agent for pair in pairs)))
    return {
        (agent, task): _statistics(of_pair, found.of_task.get(task, {}).get(agent))
        for (agent, task), of_pair in scores.items()
    }


def run_letters(store: Store, pairs: Sequence[PairReport]) -> Letters:
    """The letters of a run, those of `proctor compare RUN`; left out where they would cost too much.

    Raises StoreError, DatabaseError.
    """
    agents = agents_of(store.manifest())
    if len(agents) < 2:
        return Letters({})
    if len(agents) > MOST_AGENTS:
        return Letters({}, TOO_MANY.format(most=MOST_AGENTS))
    if _work(pairs) > MOST_WORK:
        return Letters({}, TOO_MUCH)
    return Letters(_letters(agents, planned_scores(store, agents)))


def _work(pairs: Sequence[PairReport]) -> int:
    planned: dict[str, list[int]] = {}
    for pair in pairs:
        planned.setdefault(pair.task, []).append(pair.planned)
    tests = {task: len(each) * (len(each) - 1) // 2 for task, each in planned.items()}
    return sum(tests[task] * (TEST_WORK + max(each)) for task, each in planned.items())


def _letters(agents: Sequence[str], scores: Mapping[Pair, PairScores]) -> dict[str, dict[str, str]]:
    """No test is made of two agents without a scored sample in common, and they are not told apart."""
    settings = Settings()
    tests: list[tuple[str, frozenset[str], float]] = []
    for a, b in combinations(agents, 2):
        for task in [task for agent, task in scores if agent == a and (b, task) in scores]:
            both = planned_pairs(scores[a, task], scores[b, task]).values()
            if matched := [pair for pair in both if pair.matched]:
                p = difference(matched, settings.alpha, random.Random(settings.seed)).p
                tests.append((task, frozenset((a, b)), p))
    adjusted = holm([p for _, _, p in tests])
    corrected = [(task, pair, p) for (task, pair, _), p in zip(tests, adjusted, strict=True)]
    return letters_by_task(agents, corrected, settings.alpha)


def _statistics(scores: PairScores, found: str | None) -> PairStatistics:
    low, high = mean_bounds([Scores(each.scores, each.missing) for each in scores.values()])
    return PairStatistics(missing=MissingBounds(low=low, high=high), letters=found)
