"""Records spans with OpenTelemetry and sends them by OTLP over HTTP, as its OTEL_* variables configure it."""

import os
import threading
from collections.abc import Mapping
from contextvars import Token
from types import TracebackType

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from proctor.observability import gen_ai
from proctor.observability.spans import Attribute, Kind, Span

_KINDS = {"internal": trace.SpanKind.INTERNAL, "client": trace.SpanKind.CLIENT, "server": trace.SpanKind.SERVER}
_W3C = TraceContextTextMapPropagator()
CLOSE_S = 2.0
"""Seconds for sending the last spans; what is not sent by then is lost."""


class OtelSpan(Span):
    """A span that is recorded."""

    def __init__(self, span: trace.Span) -> None:
        self._span = span
        self._tokens: list[Token[Context]] = []

    def note(self, **attributes: Attribute) -> None:
        self._span.set_attributes(attributes)

    def event(self, name: str, **attributes: Attribute) -> None:
        self._span.add_event(name, attributes)

    def adopt(self) -> None:
        otel_context.attach(trace.set_span_in_context(self._span))

    def end(self) -> None:
        if self._span.is_recording():
            self._span.end()

    def __enter__(self) -> Span:
        self._tokens.append(otel_context.attach(trace.set_span_in_context(self._span)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self._span.set_attribute(gen_ai.ERROR, kind.__name__)  # not the message, which may hold a secret
            self._span.set_status(trace.StatusCode.ERROR)
        otel_context.detach(self._tokens.pop())
        self.end()


class OtelRecorder:
    """Sends spans in batches from a thread of its own, so that an unreachable collector blocks no caller."""

    def __init__(self, role: str, processor: SpanProcessor | None = None) -> None:
        attributes: dict[str, str] = {"proctor.role": role}
        named = os.environ.get("OTEL_SERVICE_NAME") or SERVICE_NAME in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        if not named:
            attributes[SERVICE_NAME] = f"proctor-{role}"
        self._provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
        self._provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("proctor")

    def begin(
        self, name: str, kind: Kind, attributes: Mapping[str, Attribute], headers: Mapping[str, str] | None
    ) -> OtelSpan:
        parent = None if headers is None else _W3C.extract(headers, Context())
        return OtelSpan(self._tracer.start_span(name, parent, _KINDS[kind], attributes))

    def headers(self) -> dict[str, str]:
        carrier: dict[str, str] = {}
        _W3C.inject(carrier)
        return carrier

    def trace_id(self) -> str | None:
        context = trace.get_current_span().get_span_context()
        return f"{context.trace_id:032x}" if context.is_valid else None

    def close(self) -> None:
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_S)
