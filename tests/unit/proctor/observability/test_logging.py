"""A log record as a line of JSON."""

import asyncio
import io
import json
import logging
import sys

import pytest

from proctor.observability import logging as logs


def line(message: str, **extra: str) -> dict[str, str]:
    record = logging.LogRecord("some.module", logging.WARNING, __file__, 1, message, None, sys.exc_info())
    record.__dict__.update(extra)
    text = logs.JsonLines("worker").format(record)
    assert text.isascii()
    assert len(text.splitlines()) == 1
    found: dict[str, str] = json.loads(text)
    return found


def test_a_line_says_when_what_and_who() -> None:
    message = "it\n\u2028rains \u96e8"
    found = line(message)
    assert found.pop("time").endswith("+00:00")
    assert found == {"level": "warning", "logger": "some.module", "message": message, "role": "worker"}


def test_an_exception_stays_on_its_line() -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        found = line("failed")
    assert found["exception"].startswith("Traceback")
    assert found["exception"].endswith("ValueError: first\nsecond")


async def test_ids_are_those_of_the_running_task() -> None:
    async def of(session: str) -> dict[str, str]:
        logs.about(run="r", session=session)
        await asyncio.sleep(0)
        return line("something")

    first, second = await asyncio.gather(of("1"), of("2"))
    assert (first["run"], first["session"], second["session"]) == ("r", "1", "2")
    assert "session" not in line("something")
    assert line("something", session="3")["session"] == "3"


def test_a_line_goes_to_what_standard_error_is_then_though_the_earlier_one_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    earlier, now = io.TextIOWrapper(io.BytesIO()), io.StringIO()
    handler = logs.Handler(earlier)
    earlier.close()
    monkeypatch.setattr(sys, "stderr", now)
    handler.handle(logging.LogRecord("x", logging.WARNING, "f", 1, "said", (), None))
    assert now.getvalue() == "said\n"
