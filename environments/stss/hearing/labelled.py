"""The labelled utterances, and how a reading of one compares with its labels."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

from environments.stss.hearing.named.days import OUT_OF_REACH
from environments.stss.hearing.slots import SpokenLine
from environments.stss.town.clock import DATES, read_stamp, read_time

FOLDER = Path(__file__).parents[1] / "utterances"
SLOTS = ("activity", "place", "day", "start", "end", "people", "negated")
_SMALL = re.compile(
    r"\b(?:an?|the|my|our|your|his|her|its|their|some|for|of|to|in|on|at|about|and|with|it|me|us|you)\b"
)

Half = Literal["development", "test", "fresh", "held", "everyday", "practice"]
"""`fresh`, `held`, `everyday`: later sets by authors of their own, to measure with. `practice`: to find faults with."""
Slot = str | int | bool | frozenset[str] | None
Slots = Mapping[str, Slot]
"""The values of `SLOTS`, None where nothing was said: `people` is never empty and `negated` never False."""
Verdict = Literal["right", "open", "wrong"]


class Labelled(NamedTuple):
    """One utterance, its situation and its labels."""

    id: str
    category: str
    meaning: str
    speaker: str
    listener: str
    now: int
    before: tuple[SpokenLine, ...]
    text: str
    slots: Slots
    unsure: frozenset[str] = frozenset()
    """The slots that a careful listener would ask about."""


def utterances(half: Half) -> list[Labelled]:
    """The utterances of one half, in order. Raises FileNotFoundError if its file is not there."""
    return labelled(FOLDER / f"{half}.jsonl")


def labelled(file: Path) -> list[Labelled]:
    """The utterances of a file, in order. Raises FileNotFoundError if it is not there."""
    return [_labelled(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]


def _labelled(line: dict[str, object]) -> Labelled:
    slots, before, unsure = line["slots"], line["before"], line["unsure"]
    if not isinstance(slots, dict) or not isinstance(before, list) or not isinstance(unsure, list):
        raise ValueError(f"{line['id']}: slots must be an object, before and unsure lists")
    return Labelled(
        id=str(line["id"]),
        category=str(line["category"]),
        meaning=str(line["meaning"]),
        speaker=str(line["speaker"]),
        listener=str(line["listener"]),
        now=read_stamp(str(line["now"])),
        before=tuple(SpokenLine(*said) for said in before),
        text=str(line["text"]),
        slots={
            "activity": slots["activity"],
            "place": slots["place"],
            "day": None if slots["day"] is None else _day(str(slots["day"])),
            "start": _minute(slots["start"]),
            "end": _minute(slots["end"]),
            "people": frozenset(slots["people"]) or None,
            "negated": slots["negated"] or None,
        },
        unsure=frozenset(map(str, unsure)),
    )


def _day(date: str) -> int:
    return DATES.index(date) if date in DATES else OUT_OF_REACH


def _minute(text: str | None) -> int | None:
    return None if text is None else read_time(text)


def verdict(name: str, said: Slots, heard: Slots) -> Verdict:
    """Whether a slot was heard as it was said: right, left open although it was said, or wrong."""
    if name == "activity" and None not in (said[name], heard[name]):
        return "right" if same_activity(str(said[name]), str(heard[name])) else "wrong"
    if said[name] == heard[name]:
        return "right"
    return "open" if heard[name] is None else "wrong"


def same_activity(said: str, heard: str) -> bool:
    """Whether two phrases name the same activity: the second has at least half of the first one's content words."""
    wanted, found = _words(said), _words(heard)
    return bool(wanted) and 2 * len(wanted & found) >= len(wanted)


def _words(phrase: str) -> set[str]:
    plain = phrase.lower()
    return set(re.findall(r"[\w'-]+", _SMALL.sub("", plain)) or plain.split())
