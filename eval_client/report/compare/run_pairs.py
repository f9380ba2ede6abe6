"""The comparisons of all agents of a run, as far as they can be compared."""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from eval_client.report.compare.compare import compare_run
from eval_client.report.compare.measure import Settings
from eval_client.report.compare.sides import MOST_AGENTS, CompareError, Reference, Side, TaskSide, agents_of, find_pairs
from eval_client.report.compare.values import Comparisons
from eval_client.report.published.scrub import publishable
from eval_client.store.store import Store

TOO_MANY = (
    "Not compared: with {count} agents, all pairs are too many (at most {most} agents); `proctor compare` takes two, "
    "or one against all others."
)
UNMATCHED = "{a} and {b} are not compared on {task}: they have no scored sample in common."


class Compared(NamedTuple):
    """All pairs of a run's agents, as far as they can be compared, and what could not."""

    found: Comparisons | None
    left_out: tuple[str, ...] = ()
    """Sentences."""


def compared(store: Store) -> Compared:
    """What `proctor compare RUN` finds, without tasks on which two agents have no scored sample in common.

    Raises StoreError, DatabaseError.
    """
    agents = agents_of(store.manifest())
    if len(agents) < 2:
        return Compared(None, ("Nothing to compare: the run has one agent.",))
    if len(agents) > MOST_AGENTS:
        return Compared(None, (TOO_MANY.format(count=len(agents), most=MOST_AGENTS),))
    pairs, left_out = [], []
    for a, b in find_pairs(Reference(store.run, None, None, None), None, lambda _: store):
        common = [task for task in a.tasks if task in b.tasks]
        matched = [task for task in common if _is_matched(a.tasks[task], b.tasks[task])]
        left_out += [UNMATCHED.format(a=a.agent, b=b.agent, task=task) for task in common if task not in matched]
        if matched:
            pairs.append((_only(a, matched), _only(b, matched)))
    if not pairs:
        return Compared(None, tuple(left_out) or ("Nothing to compare: no task has two agents.",))
    try:
        return Compared(compare_run(pairs, Settings(), lettered=True), tuple(left_out))
    except CompareError as error:
        return Compared(None, (publishable(f"Not compared: {error}."),))


def _is_matched(a: TaskSide, b: TaskSide) -> bool:
    """Whether both have scored a sample in common."""
    return any(mine.scores and sample in b.scores and b.scores[sample].scores for sample, mine in a.scores.items())


def _only(side: Side, tasks: Sequence[str]) -> Side:
    return dataclasses.replace(side, tasks={task: side.tasks[task] for task in tasks})
