"""The metrics of many finishes: accuracy by type, and the mean of the three categories (AgentBench v0.2, dbbench)."""

from collections.abc import Iterable, Sequence

from environments.database.dataset import CATEGORIES, SELECT_KINDS
from environments.types import Finish, Summary

NAMES = (*SELECT_KINDS, *CATEGORIES)
NOISE = (
    "Published SELECT labels are noisy: some were computed before rows were added to the table, some hold another "
    "aggregate; perfect SQL does not reach 1.0 on them."
)
COVERAGE = "Accuracies are over scored samples; `requested` and `scored` of each category stand beside them."
WORDING = "The instruction says in our own words what the published one says; the forms it asks for are the same."


def summarize(finishes: Sequence[Finish]) -> Summary:
    """All metrics; faults are counted as requested and enter no accuracy. A type without samples has accuracy 0."""
    scored = [finish for finish in finishes if finish.score is not None]
    metrics = {f"{name}_accuracy": _mean(finish.score for finish in scored if _bears(finish, name)) for name in NAMES}
    overall = {"overall_cat_accuracy": _category_mean(metrics)}
    for profile in ("compat", "strict"):
        by_profile = {
            f"{name}_accuracy": _mean(finish.metrics.get(profile) for finish in scored if _bears(finish, name))
            for name in CATEGORIES
        }
        overall[f"overall_cat_accuracy_{profile}"] = _category_mean(by_profile)
    counts = {"requested": float(len(finishes)), "scored": float(len(scored))}
    for name in CATEGORIES:
        counts[f"{name}_requested"] = float(sum(_bears(finish, name) for finish in finishes))
        counts[f"{name}_scored"] = float(sum(_bears(finish, name) for finish in scored))
    counts["setup_failed"] = float(sum(finish.detail.get("setup_failed") is True for finish in finishes))
    return Summary(primary="overall_cat_accuracy", metrics=overall | metrics | counts, notes=(NOISE, COVERAGE, WORDING))


def _bears(finish: Finish, name: str) -> bool:
    """Whether a finish counts for a name: its type or its category."""
    return name in (finish.detail.get("type"), finish.detail.get("category"))


def _category_mean(metrics: dict[str, float]) -> float:
    return sum(metrics[f"{name}_accuracy"] for name in CATEGORIES) / len(CATEGORIES)


def _mean(values: Iterable[float | None]) -> float:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else 0.0
