"""The Prometheus text format: what Prometheus' own parser reads of it."""

import functools
import re

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.parser import text_string_to_metric_families

from proctor.observability.metrics import ProcessMetrics, counter, expose, gauge


def test_counters_keep_all_digits_and_labels_and_have_no_series_of_their_creation() -> None:
    registry = CollectorRegistry()
    counts = functools.cache(Counter("c_total", "Some.", ["of", "kind"], registry=registry).labels)
    counts('a"\\\n', "k").inc(1_234_567)
    counts("b", "k").inc(0.25)
    (read,) = text_string_to_metric_families(expose(registry.collect()))
    assert (read.type, read.documentation) == ("counter", "Some.")
    assert [(each.name, each.labels, each.value) for each in read.samples] == [
        ("c_total", {"of": 'a"\\\n', "kind": "k"}, 1_234_567.0),
        ("c_total", {"of": "b", "kind": "k"}, 0.25),
    ]


def test_values_that_are_counted_elsewhere() -> None:
    text = expose([counter("c_total", "Some.", (), {(): 3}), gauge("g", "Some.", ("of",), {("x",): True})])
    assert re.findall("^[^#].*$", text, re.MULTILINE) == ["c_total 3.0", 'g{of="x"} 1.0']
    assert expose([gauge("g", "Some.", ("of",), {})]).splitlines() == ["# HELP g Some.", "# TYPE g gauge"]


def test_two_servers_of_one_process_have_metrics_of_their_own() -> None:
    one, other = ProcessMetrics("worker"), ProcessMetrics("controller")
    assert 'role="worker"' in expose(one.collect())
    assert 'role="worker"' not in expose(other.collect())
