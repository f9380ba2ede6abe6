"""Sets up logging: one handler for all records of a process, on standard error.

PROCTOR_LOG_FORMAT is `text` or `json` (one object a line), PROCTOR_LOG_LEVEL one of LEVELS.
"""

import json
import logging
import os
import sys
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import TextIO

from proctor.observability import tracing
from proctor.observability.redaction import redacted

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error", "critical")
IDS = ("run", "trial", "session")

_about: ContextVar[Mapping[str, str]] = ContextVar("about", default={})  # noqa: B039  # it is never changed in place


def set_up(role: str) -> None:
    """Set up logging by the variables above; `role` names this process in JSON. Raises ValueError."""
    form, level = _chosen("PROCTOR_LOG_FORMAT", FORMATS, "text"), _chosen("PROCTOR_LOG_LEVEL", LEVELS, "warning")
    handler = Handler(sys.stderr)
    handler.setFormatter(JsonLines(role) if form == "json" else _text())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    sys.excepthook = _log_uncaught
    if form == "json":
        logging.captureWarnings(True)


def about(**ids: str) -> None:
    """Add ids (run, trial, session) to all later records of the running task."""
    _about.set({**_about.get(), **ids})


def known_id(name: str) -> str:
    """An id of the running task; empty where none was set."""
    return _about.get().get(name, "")


class Handler(logging.StreamHandler[TextIO]):
    """Redacts the secrets in every record, and writes them to what standard error is then, such as a live screen."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr  # not by setStream: that flushes the earlier one, which may be closed
        super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        return redacted(super().format(record))


class JsonLines(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message, role; ids and the exception where there are any."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        """The line, in ASCII."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "role": self._role,
            **_about.get(),
            **{name: getattr(record, name) for name in IDS if hasattr(record, name)},
        }
        if (trace_id := tracing.trace_id()) is not None:
            line["trace"] = trace_id
        if record.exc_info and record.exc_info[0]:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def _text() -> logging.Formatter:
    formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    formatter.converter = lambda seconds: datetime.fromtimestamp(seconds or 0.0, UTC).timetuple()
    return formatter


def _chosen(variable: str, known: tuple[str, ...], default: str) -> str:
    value = os.environ.get(variable, "").lower() or default
    if value not in known:
        raise ValueError(f"{variable}: {value!r} is none of {', '.join(known)}")
    return value


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    logging.getLogger("proctor").critical("the process ends: %s", kind.__name__, exc_info=(kind, error, trace))
