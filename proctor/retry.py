"""Decides whether and when what failed is tried again. Pure: time and random numbers are arguments."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with full jitter, bounded in tries and in time."""

    max_tries: float = math.inf
    max_retry_s: float = math.inf
    base_s: float = 0.5
    cap_s: float = 30.0

    def wait_s(
        self, tries: int, chance: float, *, elapsed_s: float = 0.0, retry_after_s: float | None = None
    ) -> float | None:
        """How long to wait before the next try, or None to give up.

        `tries` tries were made in the last `elapsed_s` seconds; `chance` is a random number in [0, 1). The wait is
        never shorter than the server's `retry_after_s`: where that exceeds the time left, the result is None.
        """
        if tries >= self.max_tries:
            return None
        wait_s = chance * self.widest_s(tries) + (retry_after_s or 0.0)
        return wait_s if elapsed_s + wait_s <= self.max_retry_s else None

    def widest_s(self, tries: int) -> float:
        """The longest jitter after `tries` tries: it doubles up to `cap_s`."""
        return min(self.cap_s, self.base_s * 2.0 ** min(tries - 1, 32))


_ASKED = re.compile(
    r"(?:try again|retry|wait|reset)s?\b[^.0-9]{0,24}?"
    r"(?P<wait>(?:\d+(?:\.\d+)?\s?(?:ms|s(?:ec\w*)?|m(?:in\w*)?|h(?:ours?)?)\s?)+)",
    re.I,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s?(ms|[smh])", re.I)
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def retry_after_s(headers: Mapping[str, str], now: float, message: str = "") -> float | None:
    """Seconds that a reply asks us to wait, by its headers, else by words like `try again in 20s`; None if it does not.

    `retry-after-ms`, `retry-after` (RFC 9110: seconds or a date), both behind LiteLLM's prefix too, and the longest of
    the `x-ratelimit-reset*` whose limit is used up. `now` is the Unix time.
    """
    for prefix in ("", "llm_provider-"):
        milliseconds = _number(headers.get(f"{prefix}retry-after-ms"))
        if milliseconds is not None:
            return milliseconds / 1000
        asked = headers.get(f"{prefix}retry-after")
        if asked is not None and (seconds := _wait(asked, now)) is not None:
            return seconds
        reset = f"{prefix}x-ratelimit-reset"
        resets = [
            seconds
            for name, told in headers.items()
            if name.startswith(reset)
            and not _number(headers.get(f"{prefix}x-ratelimit-remaining{name.removeprefix(reset)}"))
            and (seconds := _wait(told, now)) is not None
        ]
        if resets:
            return max(resets)
    asked_for = _ASKED.search(message)
    return _wait(asked_for["wait"], now) if asked_for is not None else None


def _wait(text: str, now: float) -> float | None:
    """Seconds of `20`, `1s`, `6m0s`, a date, or a Unix time in seconds or milliseconds."""
    number = _number(text)
    if number is not None:
        moment = number / 1000 if number > 1e11 else number
        return max(0.0, moment - now) if moment > 5e8 else number
    parts = _PART.findall(text)
    if parts and not re.search(r"\d{4}-\d\d|,|gmt", text, re.I):
        return sum(float(count) * _UNIT_S[unit.lower()] for count, unit in parts)
    return _until(text, now)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _until(date: str, now: float) -> float | None:
    try:
        moment = datetime.fromisoformat(date) if date[:4].isdigit() else parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now)
