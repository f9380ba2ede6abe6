"""Simulated time: minutes since the midnight before 2023-02-13, the first of two days (arXiv 2404.05337, section 3)."""

import re

DATES = ("2023-02-13", "2023-02-14")
"""Day 1 is for invitations, day 2 for the activity."""
NAMES = ("Monday", "Tuesday")
WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
DAY = 24 * 60
START = 6 * 60
END = DAY + 22 * 60 + 40
"""The simulation runs from 06:00 of day 1 to 22:40 of day 2."""
REVIEW = 22 * 60
"""The minute of the performer's review of day 1."""
_TIME = re.compile(r"(\d{1,2}):(\d{2})")
_SPOKEN = re.compile(r"(?:(\d{1,2}):(\d{2})(?::\d{2}(?:\.\d+)?)?(?:z|[+-]00:?00)?|(\d{1,2})) ?(?:([ap])\.? ?m\.?)?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_NAMED = {"noon": 12 * 60, "midnight": DAY}
_STAMP = re.compile(r"(\d{4}-\d{2}-\d{2}) (\d{2}):(\d{2})")


def day_of(minute: int) -> int:
    """0 on day 1, 1 on day 2."""
    return minute // DAY


def time_text(minute: int) -> str:
    """The time of day, such as `19:05`."""
    return f"{minute % DAY // 60:02d}:{minute % 60:02d}"


def stamp(minute: int) -> str:
    """Date and time, such as `2023-02-14 19:05`; the midnight after the two days is 2023-02-15."""
    return f"{(*DATES, '2023-02-15')[day_of(minute)]} {time_text(minute)}"


def spoken(minute: int) -> str:
    """Weekday, date and time for requests, such as `Tuesday 2023-02-14, 19:05`."""
    return f"{NAMES[day_of(minute)]} {DATES[day_of(minute)]}, {time_text(minute)}"


def read_time(text: str) -> int:
    """Minutes since midnight for an `HH:MM` text, 24-hour clock. Raises ValueError."""
    match = _TIME.fullmatch(text.strip())
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        raise ValueError(f"{text!r} is no time; write HH:MM from 00:00 to 23:59")
    return int(match[1]) * 60 + int(match[2])


def spoken_time(text: str) -> int:
    """Minutes since midnight for `19:00`, `19:00:00`, `7 pm`, `7:30 PM`, `noon`, `midnight` or `24:00`.

    Midnight is the end of a day, 24:00. Raises ValueError.
    """
    named = " ".join(text.lower().split())
    if named in _NAMED:
        return _NAMED[named]
    match = _SPOKEN.fullmatch(named)
    half = match and match[4]
    if match is None or (match[1] is None and half is None):
        raise ValueError(f"{text!r} is no time; write HH:MM from 00:00 to 24:00")
    hour, minute = int(match[1] or match[3]), int(match[2] or 0)
    if match[1] is None and hour > 12:
        raise ValueError(f"{text!r} is no time; write HH:MM from 00:00 to 24:00")
    if half is not None and hour <= 12:
        hour = hour % 12 + 12 * (half == "p")
    if minute > 59 or hour * 60 + minute > DAY or (half == "a" and hour > 12):
        raise ValueError(f"{text!r} is no time; write HH:MM from 00:00 to 24:00")
    return hour * 60 + minute


def day_named(word: str, today: int) -> int | None:
    """The day that `2023-02-14`, `today`, `tomorrow` or `Tuesday` names; None for other words.

    0 and 1 are the two simulated days, 2 is any other. `today`: the day on which it is said.
    """
    word = word.lower()
    if word in ("today", "tomorrow"):
        return today + (word == "tomorrow")
    known = WEEKDAYS if word in WEEKDAYS else DATES if _DATE.fullmatch(word) else None
    return None if known is None else min(known.index(word), 2) if word in known else 2


def read_stamp(text: str) -> int:
    """The minute of a `YYYY-MM-DD HH:MM` text within the two days. Raises ValueError."""
    match = _STAMP.fullmatch(text.strip())
    if match is None or match[1] not in DATES:
        raise ValueError(f"{text!r} is no time of {DATES[0]} or {DATES[1]}; write it as {DATES[1]} 19:00")
    return DATES.index(match[1]) * DAY + read_time(f"{match[2]}:{match[3]}")
