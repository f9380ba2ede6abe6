"""`breakpoint()` in a world or an agent stops at the terminal; where there is none, a line says so and play goes on."""

import ast
import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proctor import event_loop
from proctor.own_code import is_library

if TYPE_CHECKING:
    from pdb import Pdb

log = logging.getLogger(__name__)

PROMPT = threading.Lock()
"""Held while somebody types, and while a live screen draws."""
_screens: list[Callable[[], None]] = []
"""What clears each live screen."""
_said: set[str] = set()
_quit = threading.Event()
"""Set by `q`: what is under way goes on without further prompts."""


@contextlib.contextmanager
def stops() -> Iterator[None]:
    """While inside, `breakpoint()` stops at the terminal, unless PYTHONBREAKPOINT or another debugger has it.

    One prompt stands at a time; the time there counts in no limit.
    """
    before = sys.breakpointhook
    _quit.clear()
    is_free = before is sys.__breakpointhook__ or _is_unheard()
    if is_free and not os.environ.get("PYTHONBREAKPOINT"):
        sys.breakpointhook = _stop
    try:
        yield
    finally:
        if is_free:
            sys.breakpointhook = before


def _is_unheard() -> bool:
    """Whether this is a notebook whose own debugger nobody has opened."""
    debugger = sys.modules.get("debugpy")
    return "ipykernel" in sys.modules and debugger is not None and not debugger.is_client_connected()


@contextlib.contextmanager
def steps_aside(clear: Callable[[], None]) -> Iterator[None]:
    """While inside, `clear` is called before each prompt; it may draw again once PROMPT is free."""
    _screens.append(clear)
    try:
        yield
    finally:
        _screens.remove(clear)


def stopping_file() -> str | None:
    """A file of a loaded world or agent that calls `breakpoint()`, where that stops."""
    if sys.breakpointhook is not _stop or _no_terminal() is not None:
        return None
    files = {str(getattr(module, "__file__", None) or "") for module in list(sys.modules.values())}
    own = sorted(file for file in files if file.endswith(".py") and not is_library(file))
    return next((file for file in own if _calls_breakpoint(Path(file))), None)


def _calls_breakpoint(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text))) if "breakpoint" in text else []
    except (OSError, ValueError, SyntaxError):
        return False
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) == "breakpoint" for node in nodes)


def _no_terminal() -> str | None:
    """Why nobody can type here; None where somebody can."""
    if "ipykernel" in sys.modules:
        return "a notebook has no terminal"
    for name, stream in (("input", sys.stdin), ("output", sys.stdout)):
        if stream is None or not stream.isatty():
            return f"standard {name} is no terminal"
    return None


def _stop(*_: object, **__: object) -> None:
    frame = sys._getframe(1)
    if _quit.is_set():
        return
    if (why := _no_terminal()) is None:
        _debugger().set_trace(frame)
    elif (where := f"{frame.f_code.co_filename}:{frame.f_lineno}") not in _said:
        _said.add(where)
        log.warning("%s: breakpoint() does not stop here, since %s; `run --in-process` at a terminal does", where, why)


def _debugger() -> "Pdb":
    import pdb  # 25 ms that only a breakpoint needs

    class Debugger(pdb.Pdb):
        def interaction(self, *given: Any, **named: Any) -> None:
            with PROMPT, event_loop.at_prompt():
                for clear in _screens:
                    clear()
                self.stdout = sys.stdout
                if _quit.is_set():
                    self.set_continue()
                else:
                    super().interaction(*given, **named)

        def set_quit(self) -> None:
            """End the trial by a fault, and the run as Ctrl-C does: else the next trial would stop here too."""
            super().set_quit()
            _quit.set()
            os.kill(os.getpid(), signal.SIGINT)

    return Debugger(nosigint=True)
