"""Moments and ages on the command line: `2026-11-20`, `2026-11-20T18:00`, `30d`, `12h`."""

import datetime
import re

import click

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


class Age(click.ParamType[datetime.timedelta]):
    """A length of time, such as `30d`."""

    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime.timedelta:
        """Fails where the text is no age."""
        age = value if isinstance(value, datetime.timedelta) else parse_age(str(value))
        if age is None:
            self.fail(f"{value!r} is no age; write a number and m, h, d or w: 12h, 30d", param, ctx)
        return age


class Moment(click.ParamType[datetime.datetime]):
    """A moment in UTC: a date, a date with a time, or an age before now. With `end`, a date is the end of its day."""

    name = "moment"

    def __init__(self, *, end: bool = False) -> None:
        self._end = end

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime.datetime:
        """Fails where the text is neither."""
        if isinstance(value, datetime.datetime):
            return value
        moment = parse_moment(str(value), datetime.datetime.now(datetime.UTC), end=self._end)
        if moment is None:
            self.fail(
                f"{value!r} is no moment; write 2026-11-20, 2026-11-20T18:00 (UTC), or an age: 12h, 30d", param, ctx
            )
        return moment


def parse_age(text: str) -> datetime.timedelta | None:
    """The length of time; None where the text is none."""
    found = re.fullmatch(r"(\d{1,5})([mhdw])", text)
    return datetime.timedelta(**{UNITS[found[2]]: int(found[1])}) if found else None


def parse_moment(text: str, now: datetime.datetime, *, end: bool) -> datetime.datetime | None:
    """The moment in UTC; None where the text is none."""
    if (age := parse_age(text)) is not None:
        return now - age
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        return None
    if end and re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        moment += datetime.timedelta(days=1)
    return moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment
