"""Gates for continuous integration: whether B, the candidate, may replace A, the baseline."""

from eval_client.report.compare.texts import interval_text, p_text, plain
from eval_client.report.compare.values import Comparison, TaskComparison

ENOUGH_MATCHED = 0.95
"""Below this share of matched samples the missing scores count too."""


def with_gates(comparison: Comparison, if_worse: float | None, unless_as_good: float | None) -> Comparison:
    """The comparison with a line for each task and gate that fails.

    Margins are differences of scores, None where a gate is not asked for. `if_worse` fails where B is surely worse:
    A - B is above 0, the adjusted p below alpha and the interval above the margin. `unless_as_good` fails where the
    interval reaches above the margin, or there is none. Both fail where fewer than 95 % of the planned samples are
    matched and the missing scores could put A - B above the margin.
    """
    lines = []
    for row in comparison.tasks:
        for name, margin, why in (
            ("--fail-if-worse", if_worse, _worse),
            ("--fail-unless-as-good", unless_as_good, _not_as_good),
        ):
            if margin is not None and (found := why(row, margin, comparison.alpha) or _too_much_missing(row, margin)):
                lines.append(f"{name} {margin:g}: {row.name}: {found}")
    return comparison.model_copy(update={"gates": tuple(lines)})


def _worse(row: TaskComparison, margin: float, alpha: float) -> str | None:
    if row.difference <= 0 or row.p_holm >= alpha or row.interval is None or row.interval[0] <= margin:
        return None
    return (
        f"B is worse by {plain(row.difference)}, surely by more than {plain(margin)} "
        f"(interval {interval_text(row.interval)}, p {p_text(row.p_holm)})"
    )


def _not_as_good(row: TaskComparison, margin: float, _alpha: float) -> str | None:
    if row.interval is None:
        return "too few samples for an interval"
    if row.interval[1] <= margin:
        return None
    return f"B may be worse by up to {plain(row.interval[1])} (interval of A-B {interval_text(row.interval)})"


def _too_much_missing(row: TaskComparison, margin: float) -> str | None:
    if row.samples >= ENOUGH_MATCHED * row.planned or row.bounds[1] <= margin:
        return None
    return (
        f"{row.samples} of {row.planned} planned samples are matched, and the missing scores could make B worse by "
        f"{plain(row.bounds[1])}"
    )
