"""Metrics in the Prometheus text format, by prometheus_client.

Label values are names that an operator chose (tasks, agents, endpoints) or fixed words: never a sample's or a session's
id, so that the number of series does not grow with a run. Each part has a registry of its own, since one process may
hold several servers. A metric with labels that is updated often is kept as `functools.cache(metric.labels)`, which
looks up each of its series once.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of what `expose` gives."""

Labelled = TypeVar("Labelled", bound=tuple[str, ...])
"""One value for each label of a metric, in the order of its labels."""

SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
"""Upper bounds of buckets for local operations."""
MODEL_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of buckets for calls of a model."""


def gauge(name: str, meaning: str, labels: Sequence[str], values: Mapping[Labelled, float]) -> Metric:
    """A gauge with its current values."""
    return _filled(GaugeMetricFamily(name, meaning, labels=labels), values)


def counter(name: str, meaning: str, labels: Sequence[str], values: Mapping[Labelled, float]) -> Metric:
    """A counter with values that are counted elsewhere."""
    return _filled(CounterMetricFamily(name, meaning, labels=labels), values)


def expose(metrics: Iterable[Metric]) -> str:
    """All of them in the Prometheus text format, without the times at which their series were created."""
    return generate_latest(_Collected(metrics)).decode()


@dataclass(frozen=True)
class _Collected:
    metrics: Iterable[Metric]

    def collect(self) -> Iterator[Metric]:
        for metric in self.metrics:
            metric.samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
            yield metric


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily, values: Mapping[Labelled, float]
) -> GaugeMetricFamily | CounterMetricFamily:
    for of, value in values.items():
        family.add_metric(of, value)
    return family
