"""What the figures of a comparison mean, in sentences."""

from eval_client.core.statistics.power import least_p
from eval_client.report.compare.texts import interval_text, p_text, plain, signed
from eval_client.report.compare.values import Both, TaskComparison

FEW_CLUSTERS, FEW_EFFECTIVE = 10, 5
_UNEQUALLY_MISSING = 0.05
_NOTABLE_GAIN = 1.05
_TESTS = {
    "mcnemar": "Exact McNemar",
    "sign_flip_exact": "All sign flips",
    "sign_flip_drawn": "9,999 drawn sign flips",
}


def notes_of(row: TaskComparison, alpha: float, power: float) -> tuple[str, ...]:
    """Test and verdict, then what could have been found, then other ways to look at it."""
    lines = (*_disagreement(row, alpha), *_power(row, power), *_other_intervals(row), *_primary(row), *_passes(row))
    return (_verdict(row, alpha), *lines)


def warnings_of(row: TaskComparison, alpha: float) -> tuple[str, ...]:
    """Why the figures deserve less trust than they seem to."""
    unlike = [f"Not alike: {'; '.join(row.unlike)}."] if row.unlike else []
    return (*_few_clusters(row, alpha), *_missing(row), *unlike)


def _verdict(row: TaskComparison, alpha: float) -> str:
    student = "" if row.test == "mcnemar" or row.t_p is None else f" (paired t: p {p_text(row.t_p)})"
    counts = f"samples: A won {row.wins}, B {row.losses}, tied {row.ties}"
    differs = row.p_holm < alpha
    said = ("A is better" if row.difference > 0 else "B is better") if differs else "Not shown to differ"
    excludes = row.interval is not None and not row.interval[0] <= 0 <= row.interval[1]
    if row.interval is None or excludes == differs:
        why = ""
    elif not differs and row.p < alpha:
        why = " (the test is corrected for the number of tests, the interval is not: the test decides)"
    elif row.test == "mcnemar":
        why = " (the interval is approximate, the test exact: the test decides)"
    else:
        why = " (the interval is Student's, the test by sign flips: the test decides)"
    return f"{_TESTS[row.test]}{student}, {counts}. {said}{why}."


def _disagreement(row: TaskComparison, alpha: float) -> list[str]:
    if row.test == "mcnemar" or row.t_p is None or (row.p < alpha) == (row.t_p < alpha):
        return []
    return [
        "Sign flips and Student's t disagree at this level: with skewed differences (many small, few large) flips find "
        "too much, with few clusters both are rough."
    ]


def _power(row: TaskComparison, power: float) -> list[str]:
    if row.detectable is None:
        return []
    found = f"A difference of {plain(row.detectable)} would have been found with probability {power:g}"
    if row.needed is None or row.needed.as_played <= row.samples:
        return [f"{found}."]
    twice = row.needed.twice_the_epochs
    instead = "" if twice is None else f", or {twice:,} with twice the epochs"
    return [f"{found}; one of {plain(abs(row.difference))} needs about {row.needed.as_played:,} samples{instead}."]


def _other_intervals(row: TaskComparison) -> list[str]:
    lines = []
    if row.pairing_gain is not None and row.pairing_gain >= _NOTABLE_GAIN:
        lines.append(f"The error of the pairs is {row.pairing_gain:.1f} times smaller than that of two separate means.")
    if row.bootstrap is not None:
        lines.append(f"Interval by bootstrap of clusters: {interval_text(row.bootstrap)}.")
    return lines


def _primary(row: TaskComparison) -> list[str]:
    primary = row.primary
    if primary is None or primary.is_mean_score:
        return []
    values = f"{plain(primary.a)} and {plain(primary.b)}"
    tested = f"The test is of the scores. The primary metric, {primary.name}, is not their mean: {values}"
    if primary.difference is None:
        return [f"{tested} over all scored trials (no difference: its environment can't compute it here)."]
    error = "" if primary.standard_error is None else f" ± {plain(primary.standard_error)} (jackknife)"
    return [f"{tested}, A-B {signed(primary.difference)}{error}."]


def _passes(row: TaskComparison) -> list[str]:
    if not row.passes:
        return []
    ks = ", ".join(f"{each.k}" for each in row.passes)
    lines = [
        f"{name} for k = {ks}: A {_column(values, 0)}; B {_column(values, 1)}."
        for name, values in (
            ("pass@k", [each.pass_at for each in row.passes]),
            ("pass^k", [each.pass_hat for each in row.passes]),
        )
    ]
    left_out = [f"{sum(each.left_out)} at k = {each.k}" for each in row.passes if any(each.left_out)]
    if left_out:
        lines.append(f"Samples left out for too few scored epochs: {', '.join(left_out)}.")
    return lines


def _column(values: list[Both], side: int) -> str:
    return ", ".join(plain(each[side]) for each in values)


def _few_clusters(row: TaskComparison, alpha: float) -> list[str]:
    units = "samples" if row.clusters == row.samples else "clusters"
    lines = []
    if row.clusters < FEW_CLUSTERS:
        lines.append(f"Few {units} ({row.clusters}): error and interval are rough.")
    elif row.effective_clusters < FEW_EFFECTIVE:
        lines.append(
            f"Few effective clusters ({row.effective_clusters:.1f} of {row.clusters}, since some have most of the "
            "samples): error and interval are rough."
        )
    if least_p(row.clusters) > alpha:
        lines.append(
            f"So few ({row.clusters}) can't show anything at this level: no p is below {least_p(row.clusters):g}."
        )
    elif row.differing and least_p(row.differing) > alpha:
        lines.append(f"So few {units} differ ({row.differing}) that no p is below {least_p(row.differing):g}.")
    return lines


def _missing(row: TaskComparison) -> list[str]:
    lines = []
    if row.missing.a or row.missing.b:
        holds = "its sign holds whatever they are" if row.holds else "its sign could change"
        low_a, high_a, low_b, high_b = (plain(each) for bounds in row.mean_bounds for each in bounds)
        lines.append(
            f"{row.missing.a:,} trials of A and {row.missing.b:,} of B are missing. Over all {row.planned:,} planned "
            f"samples A is {low_a} .. {high_a}, B {low_b} .. {high_b}, A-B {interval_text(row.bounds)}: {holds}."
        )
    if row.missing.p < _UNEQUALLY_MISSING:
        lines.append(
            f"The two sides miss different samples (exact McNemar: p {p_text(row.missing.p)}). They are not missing by "
            "chance, and the difference may come from that."
        )
    if row.planned_on_one_side:
        lines.append(f"{row.planned_on_one_side:,} samples are planned on one side only, and left out.")
    return lines
