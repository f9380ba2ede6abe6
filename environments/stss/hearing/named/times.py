"""Start and end of what a text invites to: which of the times that it names is which."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from environments.stss.hearing.named.clock_words import FITS, HOURS, NOON, ClockTime, clock_times
from environments.stss.hearing.named.halves import (
    OPENS_WITH_HALF,
    HalfClues,
    Source,
    half_clues,
    part_only,
    resolved,
    times_before,
    with_source,
)
from environments.stss.hearing.named.lengths import Shift, length, shift
from environments.stss.hearing.slots import Situation
from environments.stss.hearing.words import NUMBERS, lead_to, within
from environments.stss.town.clock import DAY

_DENIED = re.compile(
    r"\b(?:not|instead of|rather than|not at|did say|didn't say|don't say|not until|(?<!no )later than|earlier than|"
    r"than at|after|since|past)"
    r"(?: at| by| before| till| quite)?\s*$",
    re.IGNORECASE,
)
_UNTIL = re.compile(
    r"\b(?:by|before|until|'?till?|beyond|time up to|no later than|at the latest)(?: about| around| say,?| quite| like|"
    r" \w+day| tomorrow| today|, say,)?(?: a)?\s*$",
    re.IGNORECASE,
)
_BY = re.compile(r"\b(?:by|before)(?: about| around)?(?: a)?\s*$", re.IGNORECASE)
_BY_THEN = re.compile(
    r"(?:^|[.!?;,]\s*|\b(?:and|but|because|as|since) )(?:by|before)(?: about| around)?(?: a)?\s*$", re.IGNORECASE
)
"""What begins a clause with a time by which something else is so."""
_AWAY = re.compile(
    r"(?: in the \w+| at night)?,? (?:i'm|i am)\b(?! (?:all )?(?:back|done|finished|free|out|through|yours)\b)",
    re.IGNORECASE,
)
"""What follows a time from which on the speaker is not there: `by nine I'm asleep`."""
_LATEST = re.compile(
    r"(?:,? (?:today|tonight|tomorrow|in the \w+|this \w+))?,? "
    r"(?:at the (?:(?:very )?latest|outside)|would be the latest)\b",
    re.IGNORECASE,
)
_DEADLINE = re.compile(
    r"\b(?:done|finish\w*|ends?|ending|stops?|stopping|shuts?|closes|(?:and|i|i'll|we|we'll) close|emptied|"
    r"(?:'m|be|am) back|be over|it's over|be out|say good(?:bye|night)|throw you out|released|out of the door|"
    r"the latest)\b[^.!?;:,]*$",
    re.IGNORECASE,
)
_GOES_ON_TILL = re.compile(r"(?:un)?till? (?:the|it|we|you|i|they)\b[^,]*,? so (?:about |around )?", re.IGNORECASE)
"""What leads to a time in a sentence that tells how long it goes on."""
_INSTEAD = re.compile(r"(?: today| tonight| tomorrow)?,? instead\b(?! of)", re.IGNORECASE)
_BETWEEN = re.compile(
    r"^(?:-?ish)?[ ,]*(?:in the \w+|sharp|tomorrow|today|tonight|this \w+)?[ ,]*(?:-|–|—|to|until|'?till?|and|through)"
    r"(?:,? let's say,?|,? say,?| about| around)?\s*(?:a )?$",
    re.IGNORECASE,
)
_MARKER = re.compile(
    r"\b(?:no|sorry|wait|hang on|tell a lie|rather|i mean|make that|make it|oh|hm+|now|instead|actually|"
    r"take it back|come at|so|let us say|let's say"
    r"|or better)\b|\?",
    re.IGNORECASE,
)
_AMENDS = re.compile(
    r"[^.!?]*\b(?:no|wait|sorry|actually|make (?:it|that)|rather|i mean),?[^.!?]*$(?<!\bat )", re.IGNORECASE
)
"""What stands between a time and one that takes its place."""
HOW_LONG = (
    r"how long|until when|how late|when does it (?:end|stop)|when will (?:it|we|you) (?:be over|finish|"
    r"be done)|till when|(?:un)?till? (?:when|what)|how many hours|all (?:day|evening|night)"
)
"""Words of a question for the end."""
_BEGINS = re.compile(
    r"\b(?:from|between|start(?:s|ing)?(?: at)?|begin(?:s|ning)?(?: at)?)(?: about| around)?(?: a)?\s*$", re.IGNORECASE
)
_OTHERS = re.compile(
    r"\b(?:(?:he|she|they)(?:'s| is|'re| are| has| have)|(?:ferry|train|bus|post|plumber|guests|visitors"
    r"|customers)"
    r"|(?:tide|lorry)(?:'s| is| comes| turns| leaves| goes)|i've got (?:an? )?\w+|(?:he|she|it|they) (?:eats?"
    r"|leaves?|goes(?! on)|comes?|gets?|sails?|needs?)"
    r"|i (?:get up|open|close|shut|leave|teach))\b[^.!?;,]*$",
    re.IGNORECASE,
)
"""What somebody or something else does, or the speaker at another time."""


class When(NamedTuple):
    """Start and end, in minutes since midnight, and the parts of the text that name them."""

    start: int | None = None
    end: int | None = None
    spans: tuple[tuple[int, int], ...] = ()
    starts: int = 0
    """Number of the times at which it may start."""
    ends: int = 0
    ranged: bool = False
    """Whether two of the times are a range."""
    source: Source = "itself"
    """What tells the half of the day in which it starts."""

    @property
    def differ(self) -> bool:
        """Whether the text names several times for the start or for the end, and it is open which one holds."""
        return (self.starts > 1 and self.start is None) or (self.ends > 1 and self.end is None)


def when(
    text: str, situation: Situation, day: int | None, times: Sequence[ClockTime], counted: Sequence[ClockTime]
) -> When:
    """When it is to be, on a day that was named (None: not); of the `times` that are named, some are `counted`."""
    spans = tuple((time.start, time.end) for time in times)
    counted = _with_linked(text, times, counted)
    if OPENS_WITH_HALF.match(text) and part_only(text, situation) is not None and _only_asked(counted, situation):
        counted = []  # "Evening. At eight in the morning I'm asleep": its times are reasons
    clues = half_clues(text, situation, day)
    moved = shift(text)
    if moved is not None and not any(time.start > moved.start for time in counted):
        return When(_shifted(moved, times, clues), spans=spans)
    if not counted:
        start = part_only(text, situation)
        return When(start, _after(text, start, situation), spans)
    used = _of_range(text, counted)
    starts, ends = _roles(text, used, situation)
    start, end = _named(text, starts, ends, clues)
    if start is None and end is not None:
        end = _after_begin(end, _chosen(text, ends), situation)
    end = _after(text, start, situation) if end is None else end
    first = _chosen(text, starts)
    source: Source = with_source(first, clues)[1] if first else "itself"
    return When(start, end, spans, len(starts), len(ends), _range(text, used) is not None, source)


def _after_begin(end: int, last: ClockTime | None, situation: Situation) -> int:
    """An end in an answer to how long it goes on: after the begin that the speaker named before."""
    own = [line for line in situation.before if line.speaker == situation.speaker]
    begun = times_before(situation._replace(before=own)) if within(HOW_LONG, situation.question) else []
    if not begun or last is None or last.exact or end > begun[0]:
        return end
    return next((each for each in (last.minute, last.minute + NOON) if each > begun[0]), end)


def _only_asked(times: Sequence[ClockTime], situation: Situation) -> bool:
    """Whether all times are those of the question."""
    asked = {time.minute % NOON for time in clock_times(situation.question)}
    return all(time.minute % NOON in asked for time in times)


def _with_linked(text: str, times: Sequence[ClockTime], counted: Sequence[ClockTime]) -> list[ClockTime]:
    """The times that are counted, the other one of a range, and those that they amend, which tell start from end."""
    found = set(counted)
    for time, later in pairwise(times):
        between = text[time.end : later.start]
        if (later in found and _AMENDS.match(between)) or ({time, later} & found and _BETWEEN.match(between)):
            found |= {time, later}
    return [time for time in times if time in found]


def _named(
    text: str, starts: Sequence[ClockTime], ends: Sequence[ClockTime], clues: HalfClues
) -> tuple[int | None, int | None]:
    """Start and end by the times that may be one."""
    first = _chosen(text, starts)
    start = None if first is None else resolved(first, clues)
    later = [time for time in ends if first is None or time.start > first.start]
    last = None if later else _chosen(text, ends)
    if start is not None and last is not None and _BY.search(lead_to(text, last.start)):
        due = _end(last, None, clues)
        if due is not None:  # what begins after it is something else
            return (start if start < due else None), due
    end = _end(_chosen(text, later), start, clues)
    if start is None and first is not None and end is not None:
        start = _before(first, end)
    return start, end


def _range(text: str, times: Sequence[ClockTime]) -> int | None:
    """The index of the first time of a range."""
    pairs = enumerate(pairwise(times))
    return next((at for at, (one, other) in pairs if _BETWEEN.match(text[one.end : other.start])), None)


def _of_range(text: str, times: Sequence[ClockTime]) -> Sequence[ClockTime]:
    """The times of a range and those that amend its end, if there is one; else all."""
    first = _range(text, times)
    if first is None:
        return times
    kept = list(times[first : first + 2])
    for time in times[first + 2 :]:
        if _AMENDS.match(text[kept[-1].end : time.start]):
            kept.append(time)
    return kept


def _shifted(moved: Shift, times: Sequence[ClockTime], clues: HalfClues) -> int | None:
    """The start that is later or earlier than the last time that was named before."""
    named = [time for time in times if time.start < moved.start]
    anchors = [resolved(named[-1], clues)] if named else clues.before
    return None if not anchors or anchors[0] is None else (anchors[0] + moved.minutes) % DAY


def _after(text: str, start: int | None, situation: Situation) -> int | None:
    """The end by how long it lasts, after its start in the text or, in an answer to how long, the last time before."""
    asked = within(HOW_LONG, situation.question)
    lasts = length(text, asked=asked)
    begins = start if start is not None else next(iter(times_before(situation)), None) if asked else None
    return None if lasts is None or begins is None else (begins + lasts) % DAY


def is_denied_time(text: str, time: ClockTime, situation: Situation) -> bool:
    lead = lead_to(text, time.start)
    counts = within("how (?:many|much)", situation.question) and text[time.start : time.end].lower() in NUMBERS
    owns = re.match(rf"'s(?:\.| (?!{FITS}))", text[time.end :], re.IGNORECASE) is not None
    over = _BY_THEN.search(lead) and _AWAY.match(text[time.end :])
    return bool(counts or owns or over or _DENIED.search(lead) or _OTHERS.search(lead))


def _roles(text: str, times: Sequence[ClockTime], situation: Situation) -> tuple[list[ClockTime], list[ClockTime]]:
    """The times at which it may start, and at which it may end."""
    lasting = within(HOW_LONG, situation.question)
    starts: list[ClockTime] = []
    ends: list[ClockTime] = []
    for index, time in enumerate(times):
        lead = lead_to(text, time.start)
        between = text[times[index - 1].end : time.start] if index > 0 else "."
        ranged = _BETWEEN.match(between) is not None
        amends = bool(ends) and ends[-1] == times[index - 1] and _AMENDS.match(between) is not None
        sentence = re.split(r"[.!?;]\s", lead)[-1]
        closes = _UNTIL.search(lead) or _DEADLINE.search(sentence) or _GOES_ON_TILL.fullmatch(sentence)
        until = ranged or amends or closes or _LATEST.match(text[time.end :])
        begins = _BEGINS.search(lead)
        moved = _INSTEAD.match(text[time.end :])
        if not begins and (until or (lasting and not moved)):
            ends.append(time)
        else:
            starts.append(time)
    return starts, ends


def _chosen(text: str, times: Sequence[ClockTime]) -> ClockTime | None:
    """The time that holds: the first, or a later one that corrects it; None where two differ and neither corrects."""
    chosen: ClockTime | None = None
    for time in times:
        if chosen is None or _MARKER.search(text[chosen.end : time.start]):
            chosen = time
        elif time.minute % NOON != chosen.minute % NOON:
            return None
    return chosen


def _end(last: ClockTime | None, start: int | None, clues: HalfClues) -> int | None:
    if last is None or start is None or (last.exact and (last.minute > start or last.minute >= NOON)):
        return None if last is None else resolved(last, clues)
    return next((each for each in (last.minute, last.minute + NOON) if each > start), None)


def _before(first: ClockTime, end: int) -> int | None:
    """A start within six hours before an end."""
    fits = [each for each in (first.minute, first.minute + NOON) if 0 < end - each <= 6 * HOURS]
    return fits[-1] if fits else None
