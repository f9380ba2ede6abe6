"""Where text leaves the process: nothing that others wrote controls the terminal that shows it.

Standard output and standard error replace characters that control a terminal or the direction of text by escapes,
also where they are pipes; standard error redacts secrets too. Colours and the like are for `console` alone, which
writes past that, and cleans texts before it styles them. In JSON the escapes are those of JSON.
"""

import codecs
import contextlib
import io
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO, cast

from proctor.observability.redaction import redacted, visible

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.text import Text


class CleanStream:
    """A text stream that cleans what is written to it."""

    def __init__(self, stream: TextIO, clean: Callable[[str], str]) -> None:
        self.rich_proxied_file = stream
        """The stream itself, where the library rich writes what a console has made."""
        self._clean = clean

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)

    def write(self, text: str) -> int:
        """Write a text."""
        self.rich_proxied_file.write(self._clean(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write texts one after the other."""
        for line in lines:
            self.write(line)

    def fileno(self) -> int:
        """Raises UnsupportedOperation: else `input` would print its question past this."""
        raise io.UnsupportedOperation("fileno")


@contextlib.contextmanager
def clean_streams() -> Iterator[None]:
    """Standard output and standard error clean what is written to them, while inside."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _cleaned(sys.stdout, visible), _cleaned(sys.stderr, redacted)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _cleaned(stream: TextIO | None, clean: Callable[[str], str]) -> TextIO:
    """None, a closed stream, stays None."""
    if stream is None or isinstance(stream, CleanStream):
        return cast(TextIO, stream)
    if isinstance(stream, io.TextIOWrapper) and codecs.lookup(stream.encoding).name == "ascii":
        stream.reconfigure(encoding="utf-8")  # as click would, writing past this
    return cast(TextIO, CleanStream(stream, clean))


def console(*, stderr: bool = False, markup: bool = False, **options: Any) -> "Console":
    """A console of the library rich that cleans texts before it styles them; none of them is read as markup."""
    from rich.console import Console

    clean = redacted if stderr else visible

    class CleanConsole(Console):
        def render_str(self, text: str, **how: Any) -> "Text":
            return super().render_str(clean(text), **how)

        def render(self, renderable: "RenderableType", options: "ConsoleOptions | None" = None) -> "Iterator[Segment]":
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=clean(segment.text))

    return CleanConsole(stderr=stderr, markup=markup, emoji=False, **options)
