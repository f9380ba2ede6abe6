"""Moments and ages on the command line: `2026-11-20`, `2026-11-20T18:00`, `30d`, `12h`."""

import datetime
import re

import click

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def age(_context: click.Context, _option: click.Parameter, given: str) -> datetime.timedelta:
    """The value of an option that takes a length of time, such as `30d`. Raises BadParameter."""
    found = _parse_age(given)
    if found is None:
        raise click.BadParameter(f"{given!r} is no age; write a number and m, h, d or w: 12h, 30d")
    return found


def moment(
    _context: click.Context, _option: click.Parameter, given: str | None, *, end: bool
) -> datetime.datetime | None:
    """The value of an option that takes a moment in UTC: a date, a date with a time, or an age before now.

    With `end`, a date is the end of its day. Raises BadParameter.
    """
    if given is None:
        return None
    if (before_now := _parse_age(given)) is not None:
        return datetime.datetime.now(datetime.UTC) - before_now
    try:
        found = datetime.datetime.fromisoformat(given)
    except ValueError:
        raise click.BadParameter(
            f"{given!r} is no moment; write 2026-11-20, 2026-11-20T18:00 (UTC), or an age: 12h, 30d"
        ) from None
    if end and re.fullmatch(r"\d{4}-\d\d-\d\d", given):
        found += datetime.timedelta(days=1)
    return found.replace(tzinfo=datetime.UTC) if found.tzinfo is None else found


def _parse_age(text: str) -> datetime.timedelta | None:
    """The length of time; None where the text is none."""
    found = re.fullmatch(r"(\d{1,5})([mhdw])", text)
    return datetime.timedelta(**{UNITS[found[2]]: int(found[1])}) if found else None
