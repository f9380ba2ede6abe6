"""Traces a trial through all processes. Without OTEL_* settings or the extra `otel`, nothing is recorded.

Spans carry names, counts and kinds: never a secret or the text of an error; prompts and answers only where a plan asks
for them. The names are those of `proctor.observability.gen_ai` where it has one.
"""

import logging
import os
from collections.abc import Awaitable, Iterable
from importlib.util import find_spec
from typing import TypeVar

from proctor.observability.spans import NOT_RECORDED, Attribute, Kind, Recorder, Span

log = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
TRACEPARENT = "traceparent"

Answer = TypeVar("Answer")

recorders: list[Recorder] = []
"""What records this process's spans, one at most; empty where nothing need be prepared for spans."""


def set_up(role: str) -> None:
    """Record the traces of this process from now on, if OTEL_* settings name a collector."""
    if not _wanted():
        return
    if find_spec("opentelemetry.exporter") is None or find_spec("opentelemetry.sdk") is None:
        log.warning("OTEL_* settings ask for traces, which need the extra `otel`: pip install 'proctor[otel]'")
        return
    from proctor.observability.otel import OtelRecorder

    recorders[:] = [OtelRecorder(role)]


def close() -> None:
    """Send the spans that are not sent yet, and stop recording."""
    while recorders:
        recorders.pop().close()


def begin(name: str, kind: Kind = "internal", **attributes: Attribute) -> Span:
    """A child of the running task's span."""
    return recorders[0].begin(name, kind, attributes, None) if recorders else NOT_RECORDED


async def within(name: str, work: Awaitable[Answer], **attributes: Attribute) -> Answer:
    """The answer of some work, under a span of its own."""
    with begin(name, "internal", **attributes):
        return await work


def root(name: str, **attributes: Attribute) -> Span:
    """A span that begins a trace of its own."""
    return recorders[0].begin(name, "internal", attributes, {}) if recorders else NOT_RECORDED


def received(name: str, headers: Iterable[tuple[bytes, bytes]], **attributes: Attribute) -> Span:
    """The span of an incoming request, a child of its sender's; not recorded where the sender records none."""
    if not recorders:
        return NOT_RECORDED
    named = {key.decode("latin-1"): value.decode("latin-1") for key, value in headers}
    if TRACEPARENT not in named:
        return NOT_RECORDED
    return recorders[0].begin(name, "server", attributes, named)


def headers() -> dict[str, str]:
    """The headers to send with a request, so that its spans become children of the running task's."""
    return recorders[0].headers() if recorders else {}


def trace_id() -> str | None:
    """The id of the running task's trace, 32 hex digits; None outside any span."""
    return recorders[0].trace_id() if recorders else None


def _wanted() -> bool:
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true"
    elsewhere = os.environ.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp"
    return not (disabled or elsewhere) and any(os.environ.get(name) for name in ENDPOINTS)
