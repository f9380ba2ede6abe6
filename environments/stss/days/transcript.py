"""The event log of two days, from which scorers and pages read, and its compressed transcript in a finish."""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple, cast

from pydantic import Field

from environments.stss.invitation import SpokenLine
from environments.stss.town.schedule import END, Commitment, Kind, overlaps, stamp
from environments.stss.town.world import TownMap
from proctor.types import Value

_json = json.JSONEncoder(ensure_ascii=False).encode
MAX_BYTES = 16 * 1024 * 1024
"""Of an unpacked transcript; one of the published town takes a twentieth of that."""


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


class Picture(Value):
    """The map of a town, for drawing."""

    width: int = Field(ge=1, le=1000)
    height: int = Field(ge=1, le=1000)
    walls: str
    """One character per tile, row by row: `#` for a wall, `.` for a free tile."""
    sectors: Mapping[str, tuple[int, int, int, int]]
    """Bounding box by sector: x, y, width, height in tiles."""


class DayTranscript(NamedTuple):
    """Event log, map, and hits of sub-goals."""

    event_log: EventLog
    town: Picture
    hits: Sequence[tuple[str, int, int, int]]
    """Person, sub-goal (from 0), start minute, end minute (exclusive)."""


class _Packed(Value):
    """Stores each text once, and each record as minute, tile and indices of texts."""

    texts: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    talks: tuple[Talk, ...]
    agreed: tuple[Agreed, ...]
    town: Picture
    hits: tuple[tuple[str, int, int, int], ...]


def picture(world: TownMap) -> Picture:
    """The map of a world, for drawing."""
    boxes = {}
    for sector in world.sectors:
        points = [world.point(tile) for tile in world.tiles(sector)]
        (left, right), (top, bottom) = ((min(axis), max(axis)) for axis in zip(*points, strict=True))
        boxes[sector] = (left, top, right - left + 1, bottom - top + 1)
    walls = "".join("#" if wall else "." for wall in world.walls)
    return Picture(width=world.width, height=world.height, walls=walls, sectors=boxes)


def pack(days: DayTranscript) -> str:
    """The transcript as text: JSON, compressed with zlib, in base 64."""
    texts: dict[str, int] = {}
    log = days.event_log
    rows = tuple(
        (t, tile, *(texts.setdefault(text, len(texts)) for text in (who, *others)))
        for t, who, tile, *others in log.records
    )
    kept = {"rows": rows, "talks": log.talks, "agreed": log.agreed, "town": days.town, "hits": tuple(days.hits)}
    value = _Packed.model_validate({"texts": tuple(texts)} | kept)
    return base64.b64encode(zlib.compress(value.model_dump_json().encode(), 9)).decode()


def unpack(text: str) -> DayTranscript:
    """The transcript of a text made by `pack`. Raises ValueError if the text is damaged."""
    try:
        inflating = zlib.decompressobj()
        value = _Packed.model_validate_json(inflating.decompress(base64.b64decode(text), MAX_BYTES))
    except zlib.error as error:
        raise ValueError(f"not a packed transcript: {error}") from error
    records: list[ActivityRecord] = []
    for t, tile, *indices in value.rows:
        if not all(0 <= index < len(value.texts) for index in indices):
            raise ValueError("not a packed transcript: a row names a text that is not there")
        who, sector, arena, activity, address, kind, talk_with = (value.texts[index] for index in indices)
        records.append(ActivityRecord(t, who, tile, sector, arena, activity, address, cast(Kind, kind), talk_with))
    return DayTranscript(EventLog(tuple(records), value.talks, value.agreed), value.town, value.hits)
