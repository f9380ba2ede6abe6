"""The metrics that a client updates on the path of a turn."""

from proctor.observability.metrics import MODEL_SECONDS, Counter, Histogram


class EndpointMetrics:
    """Metrics of the calls to models."""

    def __init__(self) -> None:
        self.requests = Counter(
            "proctor_endpoint_requests_total",
            "HTTP requests to models: answered (ok), answered 429 (throttled), failed and repeated (retry).",
            "endpoint",
            "outcome",
        )
        self.answer_s = Histogram(
            "proctor_model_seconds",
            "From asking a model to its whole answer, waits between requests included.",
            MODEL_SECONDS,
            ("agent",),
        )

    def expose(self) -> str:
        """All of them, in the Prometheus text format."""
        return self.requests.expose() + self.answer_s.expose()


class JournalMetrics:
    """Metrics of the commits to the store."""

    def __init__(self) -> None:
        self._writes = Histogram("proctor_journal_group_writes", "Writes in a commit.", (1, 4, 16, 64, 256))
        self._commit_s = Histogram("proctor_journal_commit_seconds", "How long a commit takes.")

    def committed(self, writes: int, seconds: float) -> None:
        """Record a durable group of writes."""
        self._writes.observe(writes)
        self._commit_s.observe(seconds)

    def expose(self) -> str:
        """All of them, in the Prometheus text format."""
        return self._writes.expose() + self._commit_s.expose()
