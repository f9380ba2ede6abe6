"""Decides whether and when what failed is tried again. Pure: time and random numbers are arguments."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

RETRYABLE = frozenset({408, 409, 425, 429})


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


def retryable(status: int, code: str = "") -> bool:
    """True where the same request may succeed later. An exhausted quota (429) is final: no wait of ours refills it."""
    return (status in RETRYABLE and code != "insufficient_quota") or status >= 500


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a reply asks us to wait, from `retry-after-ms` or `retry-after` (RFC 9110: seconds or a date).

    `now` is the Unix time. None where both headers are missing or invalid.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    return seconds if seconds is not None or text is None else _until(text, now)


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _until(date: str, now: float) -> float | None:
    try:
        moment = parsedate_to_datetime(date)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now)
