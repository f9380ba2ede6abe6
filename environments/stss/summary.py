"""The metrics of many tasks: means by category and over all (spec section 6.3)."""

from collections import Counter
from collections.abc import Sequence

from environments.types import Finish, FinishReason, Summary

PRIMARY = "score"
MEANS = (
    "strict",
    "compat",
    "floor",
    "talked_to",
    "partners_met",
    "invitations",
    "commitments_made",
    "commitments_kept",
    "no_shows",
    "calls",
    "format_errors",
    "action_errors",
)
OWN_WORLD = (
    "The world's rules, the prompts and the background characters are Proctor's own; scores are not comparable with"
    " published tables."
)
FLOOR = "`floor` is what the same tasks score when the performer stays at home and says nothing."


def summarize(finishes: Sequence[Finish]) -> Summary:
    """Means over all scored tasks, 0 where there are none; faults enter no mean."""
    scored = [finish for finish in finishes if finish.score is not None]
    metrics = {PRIMARY: _mean([finish.score or 0.0 for finish in scored])}
    metrics |= {name: _mean([finish.metrics.get(name, 0.0) for finish in scored]) for name in MEANS}
    categories = Counter(str(finish.detail.get("category")) for finish in scored)
    for category, count in sorted(categories.items()):
        values = [finish.score or 0.0 for finish in scored if finish.detail.get("category") == category]
        metrics |= {f"{PRIMARY}_{category}": _mean(values), f"tasks_{category}": float(count)}
    for reason in FinishReason:
        if not reason.is_fault:
            metrics[reason.value] = float(sum(finish.reason is reason for finish in scored))
    metrics |= {"requested": float(len(finishes)), "tasks": float(len(scored))}
    drivers = sorted({str(finish.detail.get("driver")) for finish in scored})
    driven = (f"Background characters driven by: {', '.join(drivers)}.",) if drivers else ()
    return Summary(primary=PRIMARY, metrics=metrics, notes=(OWN_WORLD, *driven, FLOOR))


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
