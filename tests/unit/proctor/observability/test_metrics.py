"""The Prometheus text format, as its specification prescribes it."""

from proctor.observability.metrics import Counter, Histogram, gauge


def test_counters_keep_all_digits_and_escape_their_labels() -> None:
    counter = Counter("c_total", "Some.", "of", "kind")
    counter.add('a"\\\n', "k", amount=1_234_567)
    counter.add("b", "k", amount=0.25)
    assert counter.expose().splitlines() == [
        "# HELP c_total Some.",
        "# TYPE c_total counter",
        'c_total{of="a\\"\\\\\\n",kind="k"} 1234567',
        'c_total{of="b",kind="k"} 0.25',
    ]


def test_what_has_no_labels_is_there_from_the_start() -> None:
    assert Counter("c_total", "Some.").expose().endswith("counter\nc_total 0\n")
    assert (
        Histogram("h", "Some.", (1.0,))
        .expose()
        .endswith('h_bucket{le="1"} 0\nh_bucket{le="+Inf"} 0\nh_sum 0\nh_count 0\n')
    )
    assert gauge("g", "Some.", ("of",), {}).splitlines() == ["# HELP g Some.", "# TYPE g gauge"]


def test_buckets_are_cumulative_and_hold_their_bounds() -> None:
    histogram = Histogram("h_seconds", "Some.", (0.5, 1.0), ("of",))
    for seconds in (0.25, 0.5, 0.75, 4.0):
        histogram.observe(seconds, "x")
    assert histogram.expose().splitlines()[2:] == [
        'h_seconds_bucket{of="x",le="0.5"} 2',
        'h_seconds_bucket{of="x",le="1"} 3',
        'h_seconds_bucket{of="x",le="+Inf"} 4',
        'h_seconds_sum{of="x"} 5.5',
        'h_seconds_count{of="x"} 4',
    ]
