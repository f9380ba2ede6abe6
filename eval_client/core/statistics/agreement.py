"""Pure: how far several judges agree on the same things."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Literal

from proctor.types import Judgements, Value

Row = Sequence[float | None]
"""One thing judged: a value of each judge; None where there is none."""


def alpha(rows: Iterable[Row], metric: Literal["interval", "nominal"]) -> float | None:
    """Krippendorff's alpha: 1 for perfect agreement, 0 for that of chance, below 0 for less than that.

    1 less the ratio of the disagreement within rows to that within all values, by squared differences (`interval`) or
    by whether two values are equal (`nominal`). Rows with fewer than two values are left out. None where no two values
    differ, or none are left: then nothing can be said. Source: K. Krippendorff, Computing Krippendorff's
    Alpha-Reliability (2011).
    """
    apart = _squares if metric == "interval" else _unequal
    kept = [values for row in rows if len(values := [value for value in row if value is not None]) > 1]
    everything = [value for values in kept for value in values]
    expected = apart(everything) / (len(everything) - 1) if kept else 0.0
    if not expected:
        return None
    return 1.0 - math.fsum(apart(values) / (len(values) - 1) for values in kept) / expected


def _squares(values: Sequence[float]) -> float:
    """The sum of the squared differences of all ordered pairs."""
    mean = fmean(values)
    return 2 * len(values) * math.fsum((value - mean) ** 2 for value in values) if len(set(values)) > 1 else 0.0


def _unequal(values: Sequence[float]) -> float:
    """The number of ordered pairs of unequal values."""
    return float(len(values) ** 2 - sum(count**2 for count in Counter(values).values()))


class JudgeAgreement(Value):
    """How far the judges of an agent's trials agree."""

    scale: Literal["rating", "yes_no"]
    judges: tuple[str, ...]
    judged: int
    """Things that all judges gave a value: replies, or conditions."""
    unread: int
    """Things of which an answer could not be read; they count in alpha and means alone."""
    exact: float | None
    """The share of those judged, 0..1, to which all judges gave the same value; None without any."""
    alpha: float | None
    """Krippendorff's, of the interval metric for ratings and the nominal one for yes and no."""
    apart: float | None
    """Of ratings the mean difference of the highest and the lowest; of yes and no how many are split evenly."""
    means: tuple[float | None, ...]
    """Each judge's mean rating, or its share of yes."""

    @property
    def texts(self) -> tuple[str, str, str, str]:
        """Exact match, alpha, how far apart, and the judges with their means, as tables show them."""
        exact, apart = ("-" if value is None else f"{value:.3g}" for value in (self.exact, self.apart))
        means = zip(self.judges, ("-" if mean is None else f"{mean:.3f}" for mean in self.means), strict=True)
        return (
            exact,
            "-" if self.alpha is None else f"{self.alpha:.3f}",
            f"mean range {apart}" if self.scale == "rating" else f"even splits: {apart}",
            ", ".join(f"{name} {mean}" for name, mean in means),
        )

    @property
    def line(self) -> str:
        """The same as one line."""
        exact, alpha, apart, means = self.texts
        return f"exact match {exact} of {self.judged}, alpha {alpha}, {apart}, means: {means}"


def agreements(found: Iterable[Judgements]) -> tuple[JudgeAgreement, ...]:
    """The agreement over all trials, of each group of judges that judged together."""
    rows: dict[tuple[Literal["rating", "yes_no"], tuple[str, ...]], list[tuple[float | None, ...]]] = {}
    for each in found:
        rows.setdefault((each.scale, each.judges), []).extend(each.rows)
    return tuple(_agreement(scale, judges, of_judges) for (scale, judges), of_judges in rows.items())


def _agreement(
    scale: Literal["rating", "yes_no"], judges: tuple[str, ...], rows: Sequence[tuple[float | None, ...]]
) -> JudgeAgreement:
    whole = [values for row in rows if len(values := [value for value in row if value is not None]) == len(judges)]
    if scale == "rating":
        apart = fmean(max(values) - min(values) for values in whole) if whole else None
    else:
        apart = float(sum(2 * sum(values) == len(values) for values in whole))
    given = [[value for value in column if value is not None] for column in zip(*rows, strict=True)]
    return JudgeAgreement(
        scale=scale,
        judges=judges,
        judged=len(whole),
        unread=len(rows) - len(whole),
        exact=sum(len(set(values)) == 1 for values in whole) / len(whole) if whole else None,
        alpha=alpha(rows, "interval" if scale == "rating" else "nominal"),
        apart=apart,
        means=tuple(fmean(values) if values else None for values in given) or (None,) * len(judges),
    )
