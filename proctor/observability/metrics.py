"""Metrics in the Prometheus text format, by prometheus_client, and those that every Proctor process has.

Label values are names that an operator chose (tasks, agents, endpoints) or fixed words: never a sample's or a session's
id, so that the number of series does not grow with a run. Each part has a registry of its own, since one process may
hold several servers. A metric with labels that is updated often is kept as `functools.cache(metric.labels)`, which
looks up each of its series once.
"""

import asyncio
import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import TypeVar

from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"
"""The content type of what `expose` gives."""

Labelled = TypeVar("Labelled", bound=tuple[str, ...])
"""One value for each label of a metric, in the order of its labels."""

SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)
"""Upper bounds of buckets for local operations."""
LAG_SECONDS = (0.005, 0.02, 0.1, 0.5, 2.0)
"""Upper bounds of buckets for the lag of an event loop."""
MODEL_SECONDS = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of buckets for calls of a model."""
_version = functools.cache(version)


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


class ProcessMetrics(CollectorRegistry):
    """The metrics of this process; `role` is the label of its kind, `now` a monotonic clock."""

    def __init__(self, role: str, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._now = now
        build = Gauge(
            "proctor_build_info", "The version of this process, and its role.", ["role", "version"], registry=self
        )
        build.labels(role, _version("proctor")).set(1)
        ProcessCollector(registry=self)
        self._lag = Histogram(
            "proctor_event_loop_lag_seconds",
            "Delay of a coroutine's wake-up after a sleep.",
            buckets=LAG_SECONDS,
            registry=self,
        )

    async def sleep(self, seconds: float) -> None:
        """Sleep, and record the delay of the wake-up, during which the event loop was busy."""
        asleep = self._now()
        await asyncio.sleep(seconds)
        self._lag.observe(max(0.0, self._now() - asleep - seconds))

    async def watch(self, every_s: float = 0.5) -> None:
        """Call `sleep` in an endless loop, for processes that call it nowhere else."""
        while True:
            await self.sleep(every_s)
