"""The metrics of many tasks: means over all and by category."""

from collections import Counter
from collections.abc import Sequence

from proctor.summary import means
from proctor.types import Finish, FinishReason, Summary

PRIMARY = "score"
RULES = "rules of one form"
"""Name of the driver without a model."""
OLD_RULES = "rules"
"""Its name up to version 0.2, when it read free English, with mistakes."""
ACTION = (
    *("strict", "compat", "floor", "talked_to", "partners_met", "invitations"),
    *("commitments_made", "commitments_kept", "commitments_dropped", "no_shows"),
)
LANGUAGE = ("sr_conversation", "gcsr_conversation", "sr_summary", "gcsr_summary")
COUNTS = ("calls", "format_errors", "action_errors")
OWN_WORLD = (
    "The world's rules, the prompts and the background characters are Proctor's own; scores are not comparable with"
    " published tables."
)
ONE_FORM = "The people are rules that understand one form; evaluate models with `driver:` a model."
RULES_CAUTION = "its people are rules that understand one form; evaluate models with `driver:` a model"
OLD = (
    "The people are rules of an earlier version, which read free English with mistakes; scores are not comparable with"
    " later ones. Play it again, and evaluate models with `driver:` a model."
)
DRIVERS = {RULES: ONE_FORM, OLD_RULES: OLD}
"""What a reader must know of a driver without a model."""
MACRO = "Plain rates are means over tasks (macro), those called micro_ are over conversations."
FLOOR = "`floor` is the score of the same tasks with a performer that stays at home and says nothing."


def summarize(finishes: Sequence[Finish]) -> Summary:
    """Means over the scored tasks that have a metric; a metric without tasks is absent. Faults enter no mean."""
    scored = [finish for finish in finishes if finish.score is not None]
    metrics = means({PRIMARY: [finish.score or 0.0 for finish in scored]})
    language = any(finish.detail.get("level") == "language" for finish in scored)
    names = (*(LANGUAGE if language else ACTION), *COUNTS)
    metrics |= means({name: [finish.metrics[name] for finish in scored if name in finish.metrics] for name in names})
    if language:
        metrics |= _micro(scored)
    categories = Counter(str(finish.detail.get("category")) for finish in scored)
    for category, count in sorted(categories.items()):
        values = [finish.score or 0.0 for finish in scored if finish.detail.get("category") == category]
        metrics |= means({f"{PRIMARY}_{category}": values}) | {f"tasks_{category}": float(count)}
    for reason in FinishReason:
        if not reason.is_fault:
            metrics[reason.value] = float(sum(finish.reason is reason for finish in scored))
    metrics |= {"requested": float(len(finishes)), "tasks": float(len(scored))}
    drivers = sorted({str(finish.detail.get("driver")) for finish in scored})
    driven = [f"Background characters driven by: {', '.join(drivers)}."] if drivers else []
    driven += [DRIVERS[driver] for driver in drivers if driver in DRIVERS]
    judges = sorted({str(finish.detail.get("judge")) for finish in scored})
    notes = (f"Judged by: {', '.join(judges)}.", MACRO) if language else (FLOOR,)
    return Summary(primary=PRIMARY, metrics=metrics, notes=(*driven, *notes))


def _micro(scored: Sequence[Finish]) -> dict[str, float]:
    """Rates over conversations: tasks weighted by their numbers of judged ones. Also the numbers of unscored ones."""
    metrics = {"scenarios": sum(finish.metrics.get("scenarios", 0.0) for finish in scored)}
    for level in ("conversation", "summary"):
        judged = [finish for finish in scored if finish.metrics.get(f"judged_{level}")]
        weights = [finish.metrics[f"judged_{level}"] for finish in judged]
        for rate in ("sr", "gcsr") if judged else ():
            values = [finish.metrics[f"{rate}_{level}"] for finish in judged]
            weighted = sum(value * weight for value, weight in zip(values, weights, strict=True))
            metrics[f"micro_{rate}_{level}"] = weighted / sum(weights)
        metrics[f"unscored_{level}"] = sum(finish.metrics.get(f"unscored_{level}", 0.0) for finish in scored)
    return metrics
