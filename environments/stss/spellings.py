"""Reads JSON as models write it: where it stands in a reply, what its fields are called, and how times are put.

One reader for the performer and for the model that drives the people. It knows other spellings of what was asked for,
and guesses nothing: what it does not know stays as it is, and is asked about by the forms of `reply`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress

import yaml
from pydantic import JsonValue

from environments.stss.town.schedule import DAY, day_named, spoken_time
from proctor.json_objects import MAX_CHARS, objects
from proctor.types import well_formed

MAX_TRIED = 10
"""Opening brackets that are tried as the beginning of a value."""
AGREED = ("agreed", "accepted", "confirmed", "status")
"""Fields that say whether something was agreed to."""
_SETTLED = r"(?:agreed|accepted|confirmed|settled|decided|fixed|firm|definite|certain)(?: (?:to|on|upon))?"
_YES = re.compile(rf"true|yes|{_SETTLED}")
_NO = re.compile(
    rf"false|no|none|never|declined|refused|rejected|cancell?ed|not(?: yet)?(?: {_SETTLED})?(?: yet)?|un{_SETTLED}"
)
_PROMISED = "commitment commitments agreements agreement errand errands agreedto promises promise appointments"
OTHER_NAMES: Mapping[str, str] = {
    "activity": "what event task action title name description errand activityname",
    "place": "where location venue sector address",
    "start": "begin begins from starttime startat starts startdatetime",
    "end": "until to endtime endat finish enddatetime endtalk ends done isend endconversation endoftalk",
    "commitments": _PROMISED,
    "commitment": _PROMISED,
    "note": "notes memory remember text",
    "notes": "note memory memories remember",
    "reschedule": "rescheduled schedule newschedule rows plan",
    "invited_to": "invited invitation request asked askedto",
    "topic": "about subject",
    "utterance": "text message say says speech line reply response words content",
    "talk": "talks speak speaks wantstotalk speaksfirst speakfirst initiate",
    "summary": "memory remembers remembered text notes note",
    "schedule": "plan rows dayplan activities agenda timetable",
    "wake": "wakeup waketime wakeuptime getup",
    "bed": "bedtime sleep sleeptime gotobed",
}
"""What models call a field besides its name, in lower case and without marks."""
_NOTHING = re.compile(
    r"(?:none|null|n/a|(?:no|not|nothing)(?: (?:commitments?|agreements?|promises?|plans?))?"
    r"(?: (?:was|were|has been|have been))?(?: (?:made|given|reached|agreed(?: on| to| upon)?))?(?: yet)?)?"
)
_JSON = re.compile(r"[{\[]\s*[\"'“{\[]")
_COMMENT = re.compile(r"(?m)(^|[\s,{\[])//[^\n]*$|/\*.*?\*/")
_FENCE = re.compile(r"\s*```\w*\s*\n(.*?)\n?\s*```\s*", re.DOTALL)
_RANGE = re.compile(r" (?:to|until|till|and) | ?[–—] ?|(?<!\d{4})(?<!-\d\d) ?-+ ?(?!\d\d-)")
_ISO = re.compile(r"(\d{4})[-/](\d\d)[-/](\d\d)(?:t|(?!\d))|(\d\d)/(\d\d)/(\d{4})")
_LENGTH = re.compile(
    r"(?:(\d{1,2}(?:\.\d+)?|an?) ?h(?:(?:ou)?rs?)?)?(?:,? and)? ?(?:(\d{1,3}) ?m(?:in(?:ute)?s?)?)?\.?", re.IGNORECASE
)
_LASTS = re.compile("duration|length|lasts|hours|minutes")
_HOME = re.compile(
    r"(?:at |via |on |from )*(?:(?:the|my|his|her|their|own) )*(?:home|online|internet|zoom|skype|teams|video call"
    r"|phone|remote|remotely|virtual|virtually|web)(?: (?:call|meeting|video call|zoom|online))?"
)


def values(reply: str) -> Iterator[JsonValue]:
    """The JSON values of a reply in order, without those that lie in another one or in one that can't be read."""
    limit = min((at for at in (reply.find("{"), reply.find("[")) if at >= 0), default=len(reply)) + MAX_CHARS
    text, at = reply[:limit], 0
    decoder = json.JSONDecoder(strict=False)
    for _ in range(MAX_TRIED):
        opening = re.compile(r"[{\[]").search(text, at)
        if opening is None:
            return
        begins = opening.start()
        try:
            value, at = decoder.raw_decode(text, begins)
            yield value
            continue
        except (ValueError, RecursionError):
            at = begins + 1
        body = next(objects(text[begins:]), None) if opening[0] == "{" else text[begins : text.rfind("]") + 1]
        value = _loose(body or text[begins:].rstrip("` \n") + "}")
        if value is not None:
            yield value
        if value is not None or _JSON.match(text, begins):
            at = begins + len(body or text)


def _loose(text: str) -> JsonValue:
    """A value with single quotes, bare names, comments or a comma too many; None where it is not even that."""
    text = _COMMENT.sub(r"\1", text if '"' in text else text.translate(str.maketrans("“”", '""')))
    try:
        read = None if re.search(r"[&*]\w", text) else yaml.load(text, yaml.BaseLoader)
        value: JsonValue = json.loads(well_formed(json.dumps(read, ensure_ascii=False)))
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def nothing(value: JsonValue) -> bool:
    """Whether a value says that there is nothing."""
    told = value.strip(" .!`\"'\n").lower() if isinstance(value, str) else None
    return value is None or value == [] or (told is not None and _NOTHING.fullmatch(told) is not None)


def verdict(value: JsonValue) -> bool | None:
    """What a value says to the question whether: yes or no; None where it is neither."""
    told = str(value).strip(" .!`\"'").lower()
    return True if _YES.fullmatch(told) else False if _NO.fullmatch(told) else None


def agreed(fields: Mapping[str, JsonValue]) -> bool | None:
    """Whether nothing in an object says that it was not agreed to; None where what it says is neither yes nor no."""
    said = {verdict(value) for name, value in fields.items() if bare(name) in AGREED and value not in (None, "")}
    return False if False in said else None if None in said else True


def in_words(value: JsonValue) -> str:
    """A value as a text: nothing as an empty one, an object by its activity, and of a list its parts."""
    parts = [
        renamed(part, frozenset({"activity"})).get("activity") or list(part.values())
        if isinstance(part, dict)
        else part
        for part in (value if isinstance(value, list) else [value])
    ]
    texts = [text for part in parts for text in (part if isinstance(part, list) else [part])]
    return ", ".join(str(text) for text in texts if isinstance(text, str | float | int) and text and not nothing(text))


def length(text: str) -> int:
    """Minutes of `2 hours`, `1 h 30 min` or `90m`. Raises ValueError, also for a number without a unit."""
    found = _LENGTH.fullmatch(text.strip())
    if found is None or not (found[1] or found[2]):
        raise ValueError(f"{text!r} is no length of time; write the end as a time")
    hours = 1.0 if found[1] in ("a", "an") else float(found[1] or 0)
    return round(hours * 60) + int(found[2] or 0)


def without_fence(reply: str) -> str:
    """The text in a code fence, if the reply is one."""
    found = _FENCE.fullmatch(reply)
    return found[1] if found else reply


def words(reply: str) -> str:
    """A reply that is plain words, on one line; empty if it holds JSON or the beginning of it."""
    return "" if any(mark in reply for mark in "{}[]<>") else " ".join(reply.strip(' `"\n').split())


def bare(name: str) -> str:
    """A field's name in lower case, without marks."""
    return re.sub(r"[^a-z]", "", name.casefold())


def renamed(fields: Mapping[str, JsonValue], known: frozenset[str]) -> dict[str, JsonValue]:
    """Fields under the names of a form; a field of another name is left as it is."""
    found: dict[str, JsonValue] = {name: value for name, value in fields.items() if name in known}
    for name, value in fields.items():
        same = [field for field in sorted(known) if bare(field) == bare(name)]
        other = [field for field in sorted(known) if bare(name) in OTHER_NAMES.get(field, "").split()]
        found.setdefault(
            name if name in known else next((field for field in same + other if field not in found), name), value
        )
    return found


def timed(fields: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Fields of something at a place and time: from a range, a date beside a time, or a length."""
    other = {bare(name): value for name, value in fields.items()}
    when = next((other[name] for name in ("when", "time", "times", "timeslot") if other.get(name)), None)
    if isinstance(when, dict):
        return timed({name: value for name, value in fields.items() if value is not when} | when)
    start, end = (fields.get(name) for name in ("start", "end"))
    start = start or when
    if start is not None and end is None:
        start, end = ranged(str(start))
    for name, value in other.items():
        if end is None and value and _LASTS.match(name):
            unit = re.search("hour|hr|min", name) if re.fullmatch(r"[\d.]+", str(value)) else None
            end = f"+{value}{unit[0] if unit else ''}"
    date = next((str(other[name]) for name in ("date", "day") if other.get(name)), "")
    with suppress(ValueError):
        if date and start is not None and split_day(str(start), 0)[0] is None:
            start = f"{date} {start}"
    place = fields.get("place")
    named = {"place": ", ".join(map(str, place.values()))} if isinstance(place, dict) else {}
    return {**fields, **named} | {name: value for name, value in (("start", start), ("end", end)) if value is not None}


def ranged(text: str) -> tuple[str, str | None]:
    """The two ends of a text such as `Tuesday 15:00 to 16:00`; None for the second if it is one time."""
    first, *others = _RANGE.split(re.sub(r"^(?:from|between) ", "", text.strip(), flags=re.IGNORECASE))
    if len(others) != 1:
        return text, None
    half = re.search(r"[ap]\.?m\.?$", others[0], re.IGNORECASE)
    return f"{first} {half[0]}" if half and re.search(r"\b\d{1,2}(?::\d\d)?$", first) else first, others[0]


def split_day(text: str, today: int) -> tuple[int | None, str]:
    """The day that a text names and the text without it. Raises ValueError if it names two."""
    text = _ISO.sub(
        lambda date: f" {date[1]}-{date[2]}-{date[3]} " if date[1] else f" {date[6]}-{date[4]}-{date[5]} ", text.lower()
    )
    days, rest = set[int](), list[str]()
    parts = [
        word for word in re.split(r"[\s,()]+", text) if word not in ("", "at", "on", "from", "of", "sharp", "2023")
    ]
    for index, word in enumerate(parts):
        month = any(near.startswith("feb") for near in parts[max(0, index - 1) : index + 2])
        number = re.fullmatch(r"(\d{1,2})(?:st|nd|rd|th)?", word)
        named = day_named(f"2023-02-{int(number[1]):02d}" if month and number else word, today)
        if named is not None:
            days.add(named)
        elif not word.startswith("feb"):
            rest.append(word)
    if len(days) > 1:
        raise ValueError(f"{text!r} names two days")
    return next(iter(days), None), " ".join(rest)


def moment(text: str, today: int, unnamed: int) -> int:
    """The minute of a time with or without a day; `unnamed` is the day where none is named. Raises ValueError."""
    day, rest = split_day(text, today)
    bare_hour = re.fullmatch(r"(\d{1,2})(?:[h.]?(\d\d)|h)?", rest)
    clock = spoken_time(f"{bare_hour[1]}:{bare_hour[2] or '00'}" if bare_hour else rest)
    return (unnamed if day is None else day) * DAY + clock


def at_home(place: str) -> bool:
    """Whether a place is the character's home, where also what is online takes place."""
    return nothing(place) or _HOME.fullmatch(re.split(r"[,;(:]", place.lower())[0].strip(" .")) is not None


def place_names(place: str) -> Iterator[str]:
    """The names that a place may go by: the whole, and the parts of one with a detail or another world's name."""
    pieces = re.split(r"[,;()]| - | in | at ", re.sub(r"^(?:at|in|the) ", "", place))
    parts = [part.strip(" .)") for part in pieces if part.strip(" .)")]
    yield from (place, place.partition(":")[2] or place, ":".join(parts[:2]), ":".join(parts[1::-1]), *parts)


def listed(value: JsonValue) -> list[JsonValue]:
    """A value as a list: nothing as an empty one, an object by times or numbers as that of its objects."""
    if nothing(value):
        return []
    if isinstance(value, dict) and value and all(isinstance(each, dict) for each in value.values()):
        parts = [(name, each) for name, each in value.items() if isinstance(each, dict)]
        return [{"time": name, **each} if ":" in name else each for name, each in parts]
    return list(value) if isinstance(value, list | tuple) else [value]
