"""The metrics of many steps (Mind2Web, arXiv 2306.06070, section 4; AgentBench, arXiv 2308.03688, Appendix I)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from proctor.summary import mean
from proctor.types import Finish, FinishReason, Summary

PRIMARY = "step_sr"
MEASURES = ("element_acc", "action_f1", PRIMARY)
RECALL = (1, 5, 10, 20, 50)
COVERAGE = "Means cover scored steps; a step that ended in a fault is played again and enters no mean, in any profile."
Tries = dict[str, list[list[Finish]]]


def summarize(finishes: Sequence[Finish], notes: tuple[str, ...]) -> Summary:
    """All metrics: means in percent, and counts. A mean over nothing is absent.

    Plain names: mean over steps. macro: mean of the tasks' means. conditional: mean over steps with a right element
    among the ten best. task_sr: fraction of solved tasks among those whose steps were all evaluated. Steps played in
    several epochs count as one try of their task per epoch.
    """
    scored = [finish for finish in finishes if finish.score is not None]
    reachable = [finish for finish in scored if _rank(finish) < 10]
    tasks: dict[str, list[Finish]] = defaultdict(list)
    for finish in scored:
        tasks[str(finish.detail["annotation_id"])].append(finish)
    whole = [each for steps in tasks.values() for each in _tries(steps)]
    values = {name: _values(scored, name) for name in MEASURES}
    values |= {f"macro_{name}": [mean(_values(steps, name)) for steps in tasks.values()] for name in MEASURES}
    values["task_sr"] = [float(all(step.score == 1.0 for step in steps)) for steps in whole]
    values |= {f"recall@{k}": [float(_rank(finish) < k) for finish in scored] for k in RECALL}
    values |= {f"conditional_{name}": _values(reachable, name) for name in MEASURES}
    metrics = {name: 100 * mean(each) for name, each in values.items() if each}
    metrics |= {"calls": mean(_values(scored, "calls"))} if scored else {}
    metrics |= {"task_sr_tasks": float(len(whole))} | _counts(scored)
    metrics |= {"requested": float(len(finishes)), "scored": float(len(scored))}
    return Summary(primary=PRIMARY, metrics=metrics, notes=(*notes, COVERAGE))


def _counts(scored: Sequence[Finish]) -> dict[str, float]:
    def count(fits: Callable[[Finish], bool]) -> float:
        return float(sum(map(fits, scored)))

    return {
        "no_positive": count(lambda finish: finish.detail["flag"] == "no_positive"),
        "no_positive_recorded": count(lambda finish: finish.detail["recorded_positives"] == 0),
        "not_asked": count(lambda finish: finish.detail["flag"] == "not_asked"),
        "ranked_by_words": count(lambda finish: finish.detail["ranker"] == "bm25"),
        "missing_candidates": sum(_values(scored, "missing_candidates")),
        "unparsed": sum(_values(scored, "unparsed")),
        **{
            reason.value: count(lambda finish, reason=reason: finish.reason is reason)  # type: ignore[misc]
            for reason in (FinishReason.CONTEXT_LIMIT, FinishReason.INVALID_ACTION, FinishReason.INVALID_FORMAT)
        },
    }


def _tries(steps: Iterable[Finish]) -> list[tuple[Finish, ...]]:
    """One tuple of all steps for each complete try of a task."""
    played: dict[object, list[Finish]] = defaultdict(list)
    for finish in steps:
        played[finish.detail["action_uid"]].append(finish)
    expected = next(iter(played.values()))[0].detail["steps"]
    return list(zip(*played.values(), strict=False)) if len(played) == expected else []


def _rank(finish: Finish) -> float:
    rank = finish.detail["positive_rank"]
    return float(rank) if isinstance(rank, int) else float("inf")


def _values(finishes: Iterable[Finish], name: str) -> list[float]:
    return [finish.metrics[name] for finish in finishes]
