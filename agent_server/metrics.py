"""The metrics of an agent server's requests."""

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from proctor.observability.metrics import MODEL_SECONDS, Counter, Histogram, gauge

UNKNOWN_AGENT = "(unknown)"


@dataclass
class Counted:
    """A request's agent, and the status of its answer."""

    agent: str = UNKNOWN_AGENT
    status: int = 499
    """499 where the client disconnected before the answer."""


class AgentMetrics:
    """Requests by agent and status, requests in progress, and the time they take."""

    def __init__(self) -> None:
        self._in_flight = 0
        self._requests = Counter("proctor_agent_requests_total", "Requests answered.", "agent", "status")
        self._seconds = Histogram(
            "proctor_agent_request_seconds", "From a request to its answer.", MODEL_SECONDS, ("agent",)
        )

    @contextlib.contextmanager
    def request(self) -> Iterator[Counted]:
        """A context for one request; the caller sets its agent and status inside."""
        counted, begun = Counted(), time.monotonic()
        self._in_flight += 1
        try:
            yield counted
        finally:
            self._in_flight -= 1
            self._requests.add(counted.agent, str(counted.status))
            self._seconds.observe(time.monotonic() - begun, counted.agent)

    def expose(self) -> str:
        """All metrics in the Prometheus text format."""
        in_flight = gauge("proctor_agent_requests_in_flight", "Requests under way.", (), {(): self._in_flight})
        return self._requests.expose() + in_flight + self._seconds.expose()
