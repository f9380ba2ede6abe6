"""Traces a trial through all processes with OpenTelemetry; nothing, without OTEL_* settings or the extra `otel`.

Spans are sent by OTLP over HTTP, as the OTEL_* variables say. They carry names, counts and kinds: never a secret or the
text of an error; prompts and answers only where a plan asks for them. The names are those of OpenTelemetry's semantic
conventions for generative AI where they have one, in the state of 1.41: their status is Development, so every name that
Proctor records stands here, and a test holds them against the package `opentelemetry-semantic-conventions`. Newer
states are kept in the repository semantic-conventions-genai.
"""

import logging
import os
import threading
from collections.abc import Awaitable, Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:  # importing it costs 30 ms
    from opentelemetry import trace
    from opentelemetry.sdk.trace import SpanProcessor

log = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
TRACEPARENT = "traceparent"
CLOSE_S = 2.0
"""Seconds for sending the last spans; what is not sent by then is lost."""

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT = "gen_ai.agent.name"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
STOP_SEQUENCES = "gen_ai.request.stop_sequences"
REQUEST = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "max_tokens": "gen_ai.request.max_tokens",
    "max_completion_tokens": "gen_ai.request.max_tokens",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "seed": "gen_ai.request.seed",
}
"""Field of `sampling`, a number -> attribute"""
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
TOOL = "gen_ai.tool.name"
TOOL_CALL = "gen_ai.tool.call.id"
EVALUATION_EVENT = "gen_ai.evaluation.result"
EVALUATION = "gen_ai.evaluation.name"
SCORE = "gen_ai.evaluation.score.value"
LABEL = "gen_ai.evaluation.score.label"
ERROR = "error.type"

CHAT, INVOKE_AGENT, EXECUTE_TOOL = "chat", "invoke_agent", "execute_tool"
"""Operations; a span is named by its operation and what that is done with."""

OPENAI = "openai"
PROVIDERS = {
    "api.openai.com": OPENAI,
    "openai.azure.com": "azure.ai.openai",
    "services.ai.azure.com": "azure.ai.inference",
    "inference.ai.azure.com": "azure.ai.inference",
    "api.anthropic.com": "anthropic",
    "generativelanguage.googleapis.com": "gcp.gemini",
    "aiplatform.googleapis.com": "gcp.vertex_ai",
    "amazonaws.com": "aws.bedrock",
    "api.deepseek.com": "deepseek",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral_ai",
    "api.x.ai": "x_ai",
    "api.perplexity.ai": "perplexity",
    "api.cohere.com": "cohere",
    "api.cohere.ai": "cohere",
    "ml.cloud.ibm.com": "ibm.watsonx.ai",
}
"""The end of a host's name -> its provider"""

Answer = TypeVar("Answer")
Attribute = str | int | float | bool | tuple[str, ...]
Kind = Literal["internal", "client", "server"]


class Recorder:
    """Sends spans in batches from a thread of its own, so that an unreachable collector blocks no caller."""

    def __init__(self, role: str, processor: "SpanProcessor | None" = None) -> None:
        from opentelemetry import context, trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        attributes: dict[str, str] = {"proctor.role": role}
        named = os.environ.get("OTEL_SERVICE_NAME") or SERVICE_NAME in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "")
        if not named:
            attributes[SERVICE_NAME] = f"proctor-{role}"
        self.trace, self.context, self.w3c = trace, context, TraceContextTextMapPropagator()
        self._provider = TracerProvider(resource=Resource.create(attributes), shutdown_on_exit=False)
        self._provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter()))
        self.tracer = self._provider.get_tracer("proctor")

    def close(self) -> None:
        """Send the spans that are not sent yet, for at most CLOSE_S."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_S)


class Span:
    """A span; without a recorder it does nothing. As a context manager it covers the code inside."""

    def __init__(self, recorder: Recorder | None = None, span: "trace.Span | None" = None) -> None:
        self._recorder, self._span = recorder, span

    def note(self, **attributes: Attribute) -> None:
        """Add attributes; only before the span's end."""
        if self._span is not None:
            self._span.set_attributes(attributes)

    def event(self, name: str, **attributes: Attribute) -> None:
        """Record that something happened now; only before the span's end."""
        if self._span is not None:
            self._span.add_event(name, attributes)

    def adopt(self) -> None:
        """Make this span the parent of the spans that the running task begins from now on."""
        if self._recorder is not None and self._span is not None:
            self._token = self._recorder.context.attach(self._recorder.trace.set_span_in_context(self._span))

    def end(self) -> None:
        """End the span. May be called again."""
        if self._span is not None and self._span.is_recording():
            self._span.end()

    def __enter__(self) -> "Span":
        self.adopt()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._recorder is None or self._span is None:
            return
        if kind is not None:
            self.note(**{ERROR: kind.__name__})  # not the message, which may hold a secret
            self._span.set_status(self._recorder.trace.StatusCode.ERROR)
        self._recorder.context.detach(self._token)
        self.end()


NOT_RECORDED = Span()
recorders: list[Recorder] = []
"""What records this process's spans, one at most; empty where nothing need be prepared for spans."""


def set_up(role: str) -> None:
    """Record the traces of this process from now on, if OTEL_* settings name a collector."""
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    elsewhere = os.environ.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp"
    if disabled or elsewhere or not any(os.environ.get(name) for name in ENDPOINTS):
        return
    if find_spec("opentelemetry.exporter") is None or find_spec("opentelemetry.sdk") is None:
        log.warning("OTEL_* settings ask for traces, which need the extra `otel`: pip install 'proctor[otel]'")
        return
    recorders[:] = [Recorder(role)]


def close() -> None:
    """Send the spans that are not sent yet, and stop recording."""
    while recorders:
        recorders.pop().close()


def begin(name: str, kind: Kind = "internal", **attributes: Attribute) -> Span:
    """A child of the running task's span."""
    return _begun(name, kind, attributes, None)


def root(name: str, **attributes: Attribute) -> Span:
    """A span that begins a trace of its own."""
    return _begun(name, "internal", attributes, {})


def _begun(name: str, kind: Kind, attributes: Mapping[str, Attribute], headers: Mapping[str, str] | None) -> Span:
    """A child of the running task's span, or with `headers` of the one that they name, if they name any."""
    if not recorders:
        return NOT_RECORDED
    recorder = recorders[0]
    parent = None if headers is None else recorder.w3c.extract(headers, recorder.context.Context())
    of = recorder.trace.SpanKind[kind.upper()]
    return Span(recorder, recorder.tracer.start_span(name, parent, of, attributes))


async def within(name: str, work: Awaitable[Answer], **attributes: Attribute) -> Answer:
    """The answer of some work, under a span of its own."""
    with begin(name, "internal", **attributes):
        return await work


def received(name: str, headers: Iterable[tuple[bytes, bytes]], **attributes: Attribute) -> Span:
    """The span of an incoming request, a child of its sender's; not recorded where the sender records none."""
    if not recorders:
        return NOT_RECORDED
    named = {key.decode("latin-1"): value.decode("latin-1") for key, value in headers}
    return _begun(name, "server", attributes, named) if TRACEPARENT in named else NOT_RECORDED


def headers() -> dict[str, str]:
    """The W3C headers to send with a request, so that its spans become children of the running task's."""
    carrier: dict[str, str] = {}
    if recorders:
        recorders[0].w3c.inject(carrier)
    return carrier


def trace_id() -> str | None:
    """The id of the running task's trace, 32 hex digits; None outside any span."""
    context = recorders[0].trace.get_current_span().get_span_context() if recorders else None
    return f"{context.trace_id:032x}" if context is not None and context.is_valid else None


def provider(host: str) -> str:
    """The provider behind a host; OpenAI, whose protocol it speaks, where it is none that the conventions know."""
    return next((name for end, name in PROVIDERS.items() if f".{host}".endswith((f".{end}", f"-{end}"))), OPENAI)
