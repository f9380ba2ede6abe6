"""Simulated time: minutes since the midnight before 2023-02-13, the first of two days (arXiv 2404.05337, section 3)."""

import re

DATES = ("2023-02-13", "2023-02-14")
"""Day 1 is for invitations, day 2 for the activity."""
NAMES = ("Monday", "Tuesday")
DAY = 24 * 60
START = 6 * 60
END = DAY + 22 * 60 + 40
"""The simulation runs from 06:00 of day 1 to 22:40 of day 2."""
REVIEW = 22 * 60
"""The minute of the performer's review of day 1."""
_TIME = re.compile(r"(\d{1,2}):(\d{2})")
_STAMP = re.compile(r"(\d{4}-\d{2}-\d{2}) (\d{2}):(\d{2})")


def day_of(minute: int) -> int:
    """0 on day 1, 1 on day 2."""
    return minute // DAY


def time_text(minute: int) -> str:
    """The time of day, such as `19:05`."""
    return f"{minute % DAY // 60:02d}:{minute % 60:02d}"


def stamp(minute: int) -> str:
    """Date and time, such as `2023-02-14 19:05`."""
    return f"{DATES[day_of(minute)]} {time_text(minute)}"


def spoken(minute: int) -> str:
    """Weekday, date and time for requests, such as `Tuesday 2023-02-14, 19:05`."""
    return f"{NAMES[day_of(minute)]} {DATES[day_of(minute)]}, {time_text(minute)}"


def read_time(text: str) -> int:
    """Minutes since midnight for an `HH:MM` text, 24-hour clock. Raises ValueError."""
    match = _TIME.fullmatch(text.strip())
    if match is None or int(match[1]) > 23 or int(match[2]) > 59:
        raise ValueError(f"{text!r} is no time; write HH:MM from 00:00 to 23:59")
    return int(match[1]) * 60 + int(match[2])


def read_stamp(text: str) -> int:
    """The minute of a `YYYY-MM-DD HH:MM` text within the two days. Raises ValueError."""
    match = _STAMP.fullmatch(text.strip())
    if match is None or match[1] not in DATES:
        raise ValueError(f"{text!r} is no time of {DATES[0]} or {DATES[1]}; write it as {DATES[1]} 19:00")
    return DATES.index(match[1]) * DAY + read_time(f"{match[2]}:{match[3]}")
