"""The live screen of a run on a terminal: a table that is drawn again and again, below what is printed meanwhile."""

import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from io import UnsupportedOperation
from os import getpgrp, tcgetpgrp

from rich.console import Console, ConsoleOptions, ConsoleRenderable, Group, RenderHook, RenderResult
from rich.control import Control
from rich.file_proxy import FileProxy
from rich.progress_bar import ProgressBar
from rich.segment import ControlType, Segment
from rich.table import Table
from rich.text import Text

from eval_client.core.run_view import RunView, clock
from proctor import breakpoints
from proctor.tables.table import money_text

_ERASE = Control.move_to_column(0)
_ERASE.segment = Segment("\r\x1b[J", None, [(ControlType.CARRIAGE_RETURN,)])
"""Erases from the beginning of the cursor's line to the end of the screen."""


def table(run: RunView) -> Group:
    """A view as the content of a terminal, whatever its width."""
    head = Table.grid(padding=(0, 2))
    bar = ProgressBar(total=max(1, run.planned), completed=run.done, width=20)
    head.add_row(bar, f"{run.done}/{run.planned}", f"left {clock(run.left_s)}")
    rows = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("agent", "task"):
        rows.add_column(name, overflow="fold")
    unscored = any(pair.unscored for pair in run.pairs)  # else its column would only take room
    for name in ("done", "running", *(["unscored"] if unscored else []), "mean score"):
        rows.add_column(name, justify="right", no_wrap=True)
    for before, pair in zip((None, *run.pairs), run.pairs, strict=False):
        agent = "" if before is not None and before.agent == pair.agent else pair.agent
        mean = "-" if pair.mean is None else f"{pair.mean:.3f}"
        counts = (f"{pair.done}/{pair.planned}", str(pair.running), *([str(pair.unscored)] if unscored else []))
        rows.add_row(agent, pair.task, *counts, mean)
    full = [f"{name} {used}/{capacity}" for name, (used, capacity) in run.use.items() if used >= capacity > 0]
    tokens = f"tokens {run.prompt_tokens:,} in, {run.completion_tokens:,} out"
    money = f"  money {money_text(run.money)}" if run.money else ""
    foot = f"turns {run.turns}  retries {run.retries}  attempts lost {run.attempts_lost}  {tokens}{money}"
    full_line = (f"at the limit: {', '.join(full)}",) if full else ()
    plain = (*full_line, *run.waits().values(), foot, *run.shared)
    return Group(Text(run.run, "bold"), head, rows, *map(Text, plain), *(Text(each, "yellow") for each in run.troubles))


class Live(RenderHook):
    """Draws a table on a terminal, below what is printed and logged meanwhile.

    The cursor rests where the table begins. A resized terminal moves it with that line, so all that was drawn is below.
    """

    def __init__(self, console: Console, table: Callable[[], Group]) -> None:
        self._console, self._table = console, table
        self._shown: ExitStack | None = None
        self._rests = True

    def show(self) -> None:
        """Draw it anew, unless somebody types at a breakpoint."""
        if not breakpoints.PROMPT.acquire(blocking=False):
            return
        try:
            if self._shown is None:
                self._shown = self._begun()
            self._console.print(Control())
        finally:
            breakpoints.PROMPT.release()

    def clear(self) -> None:
        """Take it away; the next `show` draws it where the cursor is by then."""
        if self._shown is not None:
            self._shown.close()
            self._console.control(_ERASE)
        self._shown = None

    def stop(self) -> None:
        """Leave it as it is."""
        if self._shown is not None:
            self._rests = False
            self._console.print(Control())
            self._shown.close()
            self._console.line()
        self._shown = None

    def _begun(self) -> ExitStack:
        console, shown = self._console, ExitStack()
        console.file = console.file  # the stream itself, below what takes its place
        shown.enter_context(_silent_keys(console))
        if sys.stdout is not None and sys.stdout.isatty():
            shown.enter_context(redirect_stdout(FileProxy(console, sys.stdout)))
        if sys.stderr is not None:
            shown.enter_context(redirect_stderr(FileProxy(console, sys.stderr)))
        console.show_cursor(False)
        shown.callback(console.show_cursor, True)
        console.push_render_hook(self)
        shown.callback(console.pop_render_hook)
        return shown

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """What is printed, with the table below."""
        return [_ERASE, *renderables, self]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._table(), options, pad=False)
        shown = lines[: max(1, console.height - 1)] if self._rests else lines
        for number, line in enumerate(shown):
            yield from [Segment.line(), *line] if number else line
        if self._rests:
            yield Control.move_to_column(0, 1 - len(shown))


@contextmanager
def _silent_keys(console: Console) -> Iterator[None]:
    """While inside, what is typed on the terminal is not shown, as each Enter would move the cursor."""
    before = None
    with suppress(OSError, UnsupportedOperation, termios.error):
        terminal = console.file.fileno()
        if tcgetpgrp(terminal) == getpgrp():  # the system stops a background process that does this
            before = termios.tcgetattr(terminal)
            silent = termios.tcgetattr(terminal)
            silent[3] &= ~termios.ECHO
            termios.tcsetattr(terminal, termios.TCSANOW, silent)
    try:
        yield
    finally:
        with suppress(OSError, termios.error):
            if before is not None and tcgetpgrp(terminal) == getpgrp():
                termios.tcsetattr(terminal, termios.TCSANOW, before)
