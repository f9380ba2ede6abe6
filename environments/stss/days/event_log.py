"""The event log of two days: activities, talks and commitments. Scorers and pages read nothing else."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from environments.stss.invitation import SpokenLine
from environments.stss.town.clock import END, stamp
from environments.stss.town.schedule import Commitment, Kind, overlaps

_json = json.JSONEncoder(ensure_ascii=False).encode


class ActivityRecord(NamedTuple):
    """A person's activity from minute `t` until the person's next record."""

    t: int
    """Minutes since the first midnight."""
    who: str
    tile: int
    sector: str
    arena: str
    activity: str
    address: str
    """The activity's address with the world's name; `<persona> NAME` for a talk."""
    kind: Kind
    talk_with: str = ""


class Talk(NamedTuple):
    """A conversation; the first of `people` spoke first."""

    t: int
    minutes: int
    people: tuple[str, str]
    lines: tuple[SpokenLine, ...]
    turns: tuple[int, ...] = ()
    """For each line the turn of the trial that it was said in; 0 if the agent did not say it. Empty in older runs."""
    invited_to: str = ""
    """What the performer asked its partner to do, as the partner took it. Empty if nothing, and in older runs."""
    dropped: tuple[str, ...] = ()
    """What the partner agreed to and can't keep, each with the reason."""


class Agreed(NamedTuple):
    """A commitment that a person made."""

    t: int
    who: str
    commitment: Commitment


class EventLog(NamedTuple):
    """All events, in order of time."""

    records: tuple[ActivityRecord, ...]
    talks: tuple[Talk, ...]
    agreed: tuple[Agreed, ...]

    def digest(self) -> str:
        """A digest of the trajectory, 32 hex digits."""
        return hashlib.blake2b("\n".join(self.trajectory()).encode(), digest_size=16).hexdigest()

    def trajectory(self) -> Iterator[str]:
        """The lines of `trajectory.jsonl`."""
        quoted = cache(_json)  # most texts recur
        for t, who, tile, sector, arena, activity, address, kind, talk_with in self.records:
            yield (
                f'{{"t": "{stamp(t)}", "who": {quoted(who)}, "tile": {tile}, "sector": {quoted(sector)}, '
                f'"arena": {quoted(arena)}, "activity": {quoted(activity)}, "address": {quoted(address)}, '
                f'"kind": {quoted(kind)}, "talk_with": {quoted(talk_with)}}}'
            )

    def conversations(self) -> Iterator[str]:
        """The lines of `conversations.jsonl`."""
        for talk in self.talks:
            lines = [line._asdict() for line in talk.lines]
            yield _json(talk._asdict() | {"t": stamp(talk.t), "lines": lines})

    def of(self, who: str) -> list[ActivityRecord]:
        """The records of one person."""
        return [record for record in self.records if record.who == who]


def intervals(records: Sequence[ActivityRecord], end: int) -> Iterator[tuple[ActivityRecord, int]]:
    """Each record of one person with the minute at which it ends."""
    return zip(records, [*(later.t for later in records[1:]), end], strict=False)


def kept_from(event_log: EventLog, agreed: Agreed) -> int | None:
    """The minute from which a commitment's activity is done at its place in its time; None if it is not kept."""
    promise = agreed.commitment
    place = ":".join(promise.address.split(":")[:2])
    return next(
        (
            max(record.t, promise.start)
            for record, until in intervals(event_log.of(agreed.who), END)
            if record.kind == "act"
            and record.activity == promise.activity
            and f"{record.sector}:{record.arena}:".startswith(f"{place}:")
            and overlaps(record.t, until, promise.start, promise.end)
        ),
        None,
    )
