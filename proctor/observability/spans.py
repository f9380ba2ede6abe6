"""The interfaces of a span and of a recorder of spans, independent of OpenTelemetry."""

from collections.abc import Mapping
from types import TracebackType
from typing import Literal, Protocol

Attribute = str | int | float | bool | tuple[str, ...]
Kind = Literal["internal", "client", "server"]


class Span:
    """A span that is not recorded. As a context manager it covers the code inside."""

    def note(self, **attributes: Attribute) -> None:
        """Add attributes; only before the span's end."""

    def event(self, name: str, **attributes: Attribute) -> None:
        """Record that something happened now; only before the span's end."""

    def adopt(self) -> None:
        """Make this span the parent of the spans that the running task begins from now on."""

    def end(self) -> None:
        """End the span. May be called again."""

    def __enter__(self) -> "Span":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Recorder(Protocol):
    """Makes recorded spans, and has the running task's current one."""

    def begin(
        self, name: str, kind: Kind, attributes: Mapping[str, Attribute], headers: Mapping[str, str] | None
    ) -> Span:
        """A child of the running task's span, or with `headers` of the one that they name; {} begins a new trace."""
        ...

    def headers(self) -> dict[str, str]:
        """The W3C headers that name the running task's span; empty outside any span."""
        ...

    def trace_id(self) -> str | None:
        """32 hex digits; None outside any span."""
        ...

    def close(self) -> None:
        """Send the spans that are not sent yet, for at most two seconds."""
        ...


NOT_RECORDED = Span()
