"""The metrics of an agent server's requests."""

import contextlib
import functools
import time
from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from proctor.observability.metrics import MODEL_SECONDS

UNKNOWN_AGENT = "(unknown)"


@dataclass
class Counted:
    """A request's agent, and the status of its answer."""

    agent: str = UNKNOWN_AGENT
    status: int = 499
    """499 where the client disconnected before the answer."""


class AgentMetrics(CollectorRegistry):
    """Requests by agent and status, requests in progress, the time they take, and which agents can answer."""

    def __init__(self) -> None:
        super().__init__()
        requests = Counter("proctor_agent_requests_total", "Requests answered.", ["agent", "status"], registry=self)
        self._in_flight = Gauge("proctor_agent_requests_in_flight", "Requests under way.", registry=self)
        self.up = Gauge("proctor_agent_up", "0: the endpoint behind fails.", ["agent"], registry=self)
        seconds = Histogram(
            "proctor_agent_request_seconds",
            "From a request to its answer.",
            ["agent"],
            buckets=MODEL_SECONDS,
            registry=self,
        )
        self._requests, self._seconds = functools.cache(requests.labels), functools.cache(seconds.labels)

    @contextlib.contextmanager
    def request(self) -> Iterator[Counted]:
        """A context for one request; the caller sets its agent and status inside."""
        counted, begun = Counted(), time.monotonic()
        self._in_flight.inc()
        try:
            yield counted
        finally:
            self._in_flight.dec()
            self._requests(counted.agent, counted.status).inc()
            self._seconds(counted.agent).observe(time.monotonic() - begun)
