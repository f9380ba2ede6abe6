"""Extracts keywords of an activity from a goal's text, for goals whose own keywords occur in none of the texts."""

import re
from collections.abc import Sequence

_WANTS = r"(?:.*?\bwants? to )?"
_LEAD = re.compile(
    rf"^{_WANTS}(?:(?:find|invite|meet|gather|recruit|ask|bring|get|look for)\b.*?\b(?:for|to)\b"
    r"|(?:hold|host|organi[sz]e|arrange|give|throw|have|run|start|do)\b)?",
    re.IGNORECASE,
)
_HEAD = re.compile(r"^(?:\s*\b(?:an?|the|some|his|her|their|upcoming|public|go|about|on|of)\b)+", re.IGNORECASE)
_TAIL = re.compile(r"(?:[\s.,;:!]+|\b(?:together|online|with|others?|people|and|in)\b)+$", re.IGNORECASE)
_DOING = re.compile(r"^\w+ing\s+(?=\w)", re.IGNORECASE)


def missing(keywords: Sequence[str], texts: Sequence[str]) -> bool:
    """Whether no keyword occurs in any of the texts as a whole word; case does not matter."""
    words = "|".join(map(re.escape, keywords))
    return not re.search(rf"(?<!\w)(?:{words})(?!\w)", "\n".join(texts), re.IGNORECASE)


def of_goal(goal: str, location: str) -> tuple[str, ...]:
    """The activity in a goal's text, and the same without a leading `...ing` word; empty if none is found.

    From `Invite some friends for watching movies together online at 2023-02-14 20:30`: `watching movies`, `movies`.
    """
    place = "|".join(map(re.escape, dict.fromkeys((location, location.partition(":")[0]))))
    until = re.split(rf"\s(?:at|on|in)\s(?:some time|any time|20\d\d-|(?:{place})\b)", goal, maxsplit=1)[0]
    phrase = _plain(_LEAD.sub("", until.strip()))
    return tuple(dict.fromkeys(word for word in (phrase, _plain(_DOING.sub("", phrase))) if word))


def _plain(phrase: str) -> str:
    return _TAIL.sub("", _HEAD.sub("", phrase)).strip()
