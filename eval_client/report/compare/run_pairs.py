"""All agents of a run: their comparisons as far as they can be compared, and the letters of a page."""

import dataclasses
import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from eval_client.core.statistics.paired import difference
from eval_client.core.statistics.several import holm
from eval_client.report.compare.compare import compare_run, letters_by_task
from eval_client.report.compare.measure import Settings, planned_pairs
from eval_client.report.compare.sides import MOST_AGENTS, CompareError, Reference, Side, agents_of, find_pairs
from eval_client.report.compare.values import Comparisons
from eval_client.report.pair_report import PairReport
from eval_client.report.scrub import publishable
from eval_client.store.store import Store
from eval_client.store.trials.scores import PairScores, planned_scores

MOST_WORK, TEST_WORK = 15_000, 150
"""Letters are for runs whose tests take less work: one for each sample, and TEST_WORK for each test."""
TOO_MANY = f"more than {MOST_AGENTS}: `proctor compare` takes two, or one against all others"
TOO_MUCH = "too many tests to make beside a page; compare the agents to see them"
UNMATCHED = "{a} and {b} are not compared on {task}: they have no scored sample in common."


class Letters(NamedTuple):
    """The letters of a run's agents: those of a task share one if, and only if, no test tells them apart."""

    of_task: Mapping[str, Mapping[str, str]]
    """task -> agent -> letters; empty where they are left out."""
    left_out: str = ""
    """Why there are none; empty too where there is nothing to tell apart."""


class Compared(NamedTuple):
    """All pairs of a run's agents, as far as they can be compared, and what could not."""

    found: Comparisons | None
    left_out: tuple[str, ...] = ()
    """Sentences."""


def run_letters(store: Store, pairs: Sequence[PairReport]) -> Letters:
    """The letters of a run, those of `proctor compare RUN`; left out where they would cost too much.

    Raises StoreError, DatabaseError.
    """
    agents = agents_of(store.manifest())
    if len(agents) > MOST_AGENTS:
        return Letters({}, f"{len(agents)} agents, {TOO_MANY}")
    if len(agents) > 1 and _work(pairs) > MOST_WORK:
        return Letters({}, TOO_MUCH)
    return Letters(_letters(agents, planned_scores(store, agents)) if len(agents) > 1 else {})


def _work(pairs: Sequence[PairReport]) -> int:
    planned: dict[str, list[int]] = {}
    for pair in pairs:
        planned.setdefault(pair.task, []).append(pair.planned)
    return sum(len(each) * (len(each) - 1) // 2 * (TEST_WORK + max(each)) for each in planned.values())


def _letters(agents: Sequence[str], scores: Mapping[tuple[str, str], PairScores]) -> dict[str, dict[str, str]]:
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


def compared(store: Store) -> Compared:
    """What `proctor compare RUN` finds, without tasks on which two agents have no scored sample in common.

    Raises StoreError, DatabaseError.
    """
    agents = agents_of(store.manifest())
    if len(agents) < 2:
        return Compared(None, ("Nothing to compare: the run has one agent.",))
    if len(agents) > MOST_AGENTS:
        return Compared(None, (f"Not compared: with {len(agents)} agents, {TOO_MANY}.",))
    pairs, left_out = [], []
    for a, b in find_pairs(Reference(store.run, None, None, None), None, lambda _: store):
        common = [task for task in a.tasks if task in b.tasks]
        both = {task: planned_pairs(a.tasks[task].scores, b.tasks[task].scores).values() for task in common}
        matched = [task for task in common if any(pair.matched for pair in both[task])]
        left_out += [UNMATCHED.format(a=a.agent, b=b.agent, task=task) for task in common if task not in matched]
        if matched:
            pairs.append((_only(a, matched), _only(b, matched)))
    if not pairs:
        return Compared(None, tuple(left_out) or ("Nothing to compare: no task has two agents.",))
    try:
        return Compared(compare_run(pairs, Settings(), lettered=True), tuple(left_out))
    except CompareError as error:
        return Compared(None, (publishable(f"Not compared: {error}."),))


def _only(side: Side, tasks: Sequence[str]) -> Side:
    return dataclasses.replace(side, tasks={task: side.tasks[task] for task in tasks})
