"""A stand-in for an OpenTelemetry collector: takes spans by OTLP over HTTP and keeps them."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.support import serving


@dataclass(frozen=True)
class Recorded:
    """One span."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    seconds: float
    attributes: dict[str, str | int]
    events: dict[str, dict[str, str | int | float]] = field(default_factory=dict)
    """event -> its attributes"""


@dataclass
class Collector:
    """What has come in so far."""

    url: str
    spans: list[Recorded] = field(default_factory=list)
    raw: bytes = b""

    def named(self, name: str) -> list[Recorded]:
        """The spans of a name."""
        return [span for span in self.spans if span.name == name]

    def above(self, span: Recorded) -> Recorded | None:
        """The span that a span lies within."""
        return next((other for other in self.spans if other.id == span.parent), None)

    def path(self, span: Recorded) -> list[str]:
        """The names from the root of its trace to a span, with the service where that changes."""
        above = self.above(span)
        changes = above is None or above.service != span.service
        return [*(self.path(above) if above else []), f"{span.service}: {span.name}" if changes else span.name]

    def take(self, body: bytes) -> None:
        """Keep what a request holds."""
        self.raw += body
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = next(
                each.value.string_value for each in resource.resource.attributes if each.key == "service.name"
            )
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                attributes = {each.key: each.value.string_value or each.value.int_value for each in span.attributes}
                seconds = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
                ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                events = {
                    event.name: {
                        each.key: each.value.string_value or each.value.double_value for each in event.attributes
                    }
                    for event in span.events
                }
                self.spans.append(Recorded(service, span.name, *ids, seconds, attributes, events))


@contextlib.contextmanager
def collector() -> Iterator[Collector]:
    """A collector that listens."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            kept.take(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *_: object) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        kept = Collector(f"http://127.0.0.1:{server.server_address[1]}")
        with serving(server):
            yield kept
