"""What happened in two days: the trajectory, the talks and what was agreed; scorers and pages read nothing else."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from environments.stss.characters.driver import SpokenLine
from environments.stss.town.clock import stamp
from environments.stss.town.schedule import Commitment, Kind


class ActivityRecord(NamedTuple):
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
    lines: tuple[SpokenLine, ...]


class Agreed(NamedTuple):
    """A commitment somebody took on."""

    t: int
    who: str
    commitment: Commitment


class EventLog(NamedTuple):
    """All of it, in order of time."""

    records: tuple[ActivityRecord, ...]
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

    def of(self, who: str) -> list[ActivityRecord]:
        """The records of one person."""
        return [record for record in self.records if record.who == who]


def intervals(records: Sequence[ActivityRecord], end: int) -> Iterator[tuple[ActivityRecord, int]]:
    """Each record of one person with the minute at which it ceases to hold."""
    return zip(records, [*(later.t for later in records[1:]), end], strict=False)
