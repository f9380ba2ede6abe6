"""What happened in two days: the trajectory, the talks and what was agreed; scorers and pages read nothing else."""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple, cast

from environments.stss.clock import stamp
from environments.stss.driver import Line
from environments.stss.schedule import Commitment, Kind
from environments.types import Value


class Record(NamedTuple):
    """A change of what somebody does; it holds until the next record of the same person."""

    t: int
    """Minutes since the first midnight."""
    who: str
    tile: int
    sector: str
    arena: str
    activity: str
    address: str
    """The declared one, with the world's name; of a talk `<persona> NAME`."""
    kind: Kind
    talk_with: str = ""


class Talk(NamedTuple):
    """A conversation; the first speaker began it."""

    t: int
    minutes: int
    people: tuple[str, str]
    lines: tuple[Line, ...]


class Agreed(NamedTuple):
    """A commitment somebody took on."""

    t: int
    who: str
    commitment: Commitment


class Chronicle(NamedTuple):
    """All of it, in order of time."""

    records: tuple[Record, ...]
    talks: tuple[Talk, ...]
    agreed: tuple[Agreed, ...]

    def digest(self) -> str:
        """32 hex digits that agree exactly when two trajectories are equal."""
        return hashlib.blake2b("\n".join(self.trajectory()).encode(), digest_size=16).hexdigest()

    def trajectory(self) -> Iterator[str]:
        """The lines of `trajectory.jsonl`."""
        for record in self.records:
            yield json.dumps(record._asdict() | {"t": stamp(record.t)}, ensure_ascii=False)

    def conversations(self) -> Iterator[str]:
        """The lines of `conversations.jsonl`."""
        for talk in self.talks:
            lines = [line._asdict() for line in talk.lines]
            yield json.dumps(talk._asdict() | {"t": stamp(talk.t), "lines": lines}, ensure_ascii=False)

    def of(self, who: str) -> list[Record]:
        """The records of one person."""
        return [record for record in self.records if record.who == who]


def intervals(records: Sequence[Record], end: int) -> Iterator[tuple[Record, int]]:
    """Each record of one person with the minute at which it ceases to hold."""
    yield from zip(records, [*(later.t for later in records[1:]), end], strict=True)


class _Packed(Value):
    """A chronicle with each text once, each record as indices into them."""

    texts: tuple[str, ...]
    rows: tuple[tuple[int, ...], ...]
    talks: tuple[Talk, ...]
    agreed: tuple[Agreed, ...]


def pack(chronicle: Chronicle) -> str:
    """A chronicle as short text, for `Finish.detail`: JSON, zlib, base 64."""
    texts: dict[str, int] = {}
    rows = tuple(
        (record.t, record.tile, *(texts.setdefault(text, len(texts)) for text in _texts(record)))
        for record in chronicle.records
    )
    value = _Packed(texts=tuple(texts), rows=rows, talks=chronicle.talks, agreed=chronicle.agreed)
    return base64.b64encode(zlib.compress(value.model_dump_json().encode(), 9)).decode()


def unpack(text: str) -> Chronicle:
    """The chronicle that `pack` made. Raises ValueError."""
    try:
        value = _Packed.model_validate_json(zlib.decompress(base64.b64decode(text)))
    except zlib.error as error:
        raise ValueError(f"not a packed chronicle: {error}") from error
    return Chronicle(tuple(_record(value.texts, row) for row in value.rows), value.talks, value.agreed)


def _texts(record: Record) -> tuple[str, ...]:
    return (record.who, record.sector, record.arena, record.activity, record.address, record.kind, record.talk_with)


def _record(texts: Sequence[str], row: Sequence[int]) -> Record:
    t, tile, *indices = row
    who, sector, arena, activity, address, kind, talk_with = (texts[index] for index in indices)
    return Record(t, who, tile, sector, arena, activity, address, cast(Kind, kind), talk_with)
