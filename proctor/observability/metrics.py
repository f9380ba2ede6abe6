"""Counters, histograms and gauges in the Prometheus text format.

Label values are names that an operator chose (tasks, agents, endpoints) or fixed words: never a sample's or a session's
id, so that the number of series does not grow with a run.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeVar

Values = tuple[str, ...]
"""One value for each label of a metric, in the order of its labels."""
Labelled = TypeVar("Labelled", bound=Values)

SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
"""Upper bounds of buckets for local operations."""
MODEL_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of buckets for calls of a model."""


class Counter:
    """A number that only grows, for each combination of label values so far."""

    def __init__(self, name: str, meaning: str, *labels: str) -> None:
        self._name, self._meaning, self._labels = name, meaning, labels
        self._counts: dict[Values, float] = {} if labels else {(): 0}

    def add(self, *values: str, amount: float = 1) -> None:
        """Add `amount` to the series of these label values."""
        self._counts[values] = self._counts.get(values, 0) + amount

    def expose(self) -> str:
        """The metric with all its series."""
        return family(self._name, "counter", self._meaning, self._labels, self._counts)


@dataclass(slots=True)
class _Observed:
    counts: list[int]
    """Observations in each bucket; the last one has no upper bound."""
    total: float = 0.0


@dataclass
class Histogram:
    """Counts of observed values in buckets with these upper bounds."""

    name: str
    meaning: str
    bounds: Sequence[float] = SECONDS
    labels: tuple[str, ...] = ()
    _series: dict[Values, _Observed] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.labels:
            self._series[()] = self._empty()

    def observe(self, value: float, *values: str) -> None:
        """Count an observed value; `values` are those of the labels."""
        series = self._series.get(values)
        if series is None:
            series = self._series[values] = self._empty()
        series.counts[bisect_left(self.bounds, value)] += 1
        series.total += value

    def expose(self) -> str:
        """The metric with all its series."""
        lines = _head(self.name, "histogram", self.meaning)
        for values, series in self._series.items():
            labels = dict(zip(self.labels, values, strict=True))
            for bound, count in zip((*map(_number, self.bounds), "+Inf"), accumulate(series.counts), strict=True):
                lines.append(f"{self.name}_bucket{_labels({**labels, 'le': bound})} {count}")
            lines.append(f"{self.name}_sum{_labels(labels)} {_number(series.total)}")
            lines.append(f"{self.name}_count{_labels(labels)} {sum(series.counts)}")
        return "\n".join(lines) + "\n"

    def _empty(self) -> _Observed:
        return _Observed([0] * (len(self.bounds) + 1))


def gauge(name: str, meaning: str, labels: Sequence[str], values: Mapping[Labelled, float]) -> str:
    """A gauge with its current values."""
    return family(name, "gauge", meaning, labels, values)


def family(name: str, kind: str, meaning: str, labels: Sequence[str], values: Mapping[Labelled, float]) -> str:
    """One metric with all its labelled values."""
    lines = _head(name, kind, meaning)
    lines += [f"{name}{_labels(dict(zip(labels, of, strict=True)))} {_number(value)}" for of, value in values.items()]
    return "\n".join(lines) + "\n"


def _head(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]


def _number(value: float) -> str:
    """A number with all its digits; a whole one without a fraction."""
    return str(int(value)) if float(value).is_integer() else repr(float(value))


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
