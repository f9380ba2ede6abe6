"""What a span and a recorder of spans are, whatever records them."""

from collections.abc import Mapping
from types import TracebackType
from typing import Literal, Protocol

Attribute = str | int | float | bool
Kind = Literal["internal", "client", "server"]


class Span:
    """A stretch of work that is not recorded. As a context manager it covers what is done inside."""

    def note(self, **attributes: Attribute) -> None:
        """Say more of it; to be called before its end."""

    def adopt(self) -> None:
        """Spans that the running task begins from now on lie within this one."""

    def end(self) -> None:
        """It is over. Repeatable."""

    def __enter__(self) -> "Span":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class Recorder(Protocol):
    """What makes recorded spans, and knows the one that the running task is in."""

    def begin(
        self, name: str, kind: Kind, attributes: Mapping[str, Attribute], headers: Mapping[str, str] | None
    ) -> Span:
        """A span within the running task's or, with headers, within the one that they name: none begins a trace."""
        ...

    def headers(self) -> dict[str, str]:
        """The W3C headers that name the running task's span; none outside of any."""
        ...

    def trace_id(self) -> str | None:
        """32 hex digits, or None outside of any span."""
        ...

    def close(self) -> None:
        """Send what is not sent yet, as far as the collector takes it within two seconds."""
        ...


NOT_RECORDED = Span()
