"""Whether and when a failed request is made again: pure, without clock or chance of its own."""

import math
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from proctor.types import Value

RETRYABLE = frozenset({408, 409, 425, 429})


class RetryPolicy(Value):
    """Exponential backoff with full jitter, bounded in requests and in time."""

    max_tries: int
    max_retry_s: float
    base_s: float = 0.5
    cap_s: float = 30.0

    def wait_s(self, *, tries: int, elapsed_s: float, retry_after_s: float | None, chance: float) -> float | None:
        """How long to wait before the next request, or None to give up.

        `tries` requests were made in the last `elapsed_s` seconds; `chance` is drawn from [0, 1). The endpoint's own
        `retry_after_s` is never undercut: where it doesn't fit into the time left, waiting less would be in vain.
        """
        if tries >= self.max_tries:
            return None
        jitter_s = chance * min(self.cap_s, self.base_s * 2.0 ** min(tries - 1, 32))
        wait_s = jitter_s + (retry_after_s or 0.0)
        return wait_s if elapsed_s + wait_s <= self.max_retry_s else None


def retryable(status: int, code: str = "") -> bool:
    """True where the same request may succeed later. A used-up quota (429) won't refill while we wait."""
    return (status in RETRYABLE and code != "insufficient_quota") or status >= 500


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a reply asks to wait, by `retry-after-ms` or `retry-after` (RFC 9110: seconds or a date).

    `now` is the Unix time. None where neither header is there or makes sense.
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
