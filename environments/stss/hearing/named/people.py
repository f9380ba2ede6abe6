"""People named in a text who take part."""

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from environments.stss.hearing.slots import Situation
from environments.stss.hearing.words import lead_to, within
from environments.stss.town.places import Places

WHO = (
    r"who|whom|who's|who'd|who else|a party|your (?:four|team|crew)|how many (?:of us|people|will|are)|anyone i know"
    r"|anybody i know|all alone|alone|the other two|company|(?:just|only) (?:us|the two of us|you and me)"
)
_WILL = r"(?:'s| is| are|'ll be|'ll| will| will be|'d| would| might| may| could)"
_THEY = r"(?:he|she|they)"
_COMES = (
    rf"^,? (?:too|as well)\b|^{_WILL}(?=[.,!]|$)|^{_WILL} up for\b|^ (?:wants|would like|is keen|fancies)\b"
    rf"|^{_WILL}?,? ?(?:also |both |already |only )?(?:coming|looking in|rows|plays|joining|bringing|in\b|playing"
    r"|helping|there\b|reading\b"
    r"|singing\b|come\b|comes\b|join\b|joins\b|bring\b|brings\b|be\b|along\b|look in\b|drop in\b|turn up\b|on my side)"
    r"|^ (?:has|have|had)(?: \w+){0,2} (?:agreed|offered|said|promised|joined|signed|accepted)|^ wouldn't miss"
    rf"|^ (?:says|said|thinks|promised|swears)(?: that)? (?:{_THEY}{_WILL}(?!n't\b| (?:not|rather|sooner)\b)"
    rf"|{_THEY} wouldn't miss|yes|aye)"
)
_WITH = re.compile(
    r"(?:\b(?:with|join|joins)(?: \w+ and)?(?: me(?:,| and)?)?|\b(?:you|me|us|i)(?:,| and|, and| and with)|"
    r"just|so it's just|let's (?:get|take|bring)(?: \w+ and)?)\s*$",
    re.IGNORECASE,
)
_NOT_WITH = re.compile(
    r"\b(?:(?<!why )(?<!only )not|not with|left \w+ \w+ with|left|talk(?:ed)? with|spoke with|without|promised"
    r"|ask|asked|bring|tell|told|"
    r"for|from|about|near|of|see)\s*$",
    re.IGNORECASE,
)
_OUT = re.compile(
    rf"^,?(?: but {_THEY})? (?:can't|cannot|won't|isn't|is not|couldn't|has to|shouts|bailed|refused|declined)\b"
    rf"|^ (?:says?|said|swears|swore)(?: that)? (?:no\b(?! doubt| problem| one)|{_THEY}(?:'d| would) (?:rather|sooner)"
    rf"|{_THEY} (?:isn't|won't|can't|couldn't|shan't|didn't want))"
    r"|^(?: was going to|(?:'d| would) (?:have |love |like )).{0,20}\bbut\b"
    r"|^, (?:i'm afraid|alas|sadly|unfortunately),? (?:\w+n't|cannot|is (?:away|ill|out|not)|has (?:to|an?))\b"
    r"|^'s (?:out|not|away|at|got(?! (?:his|her|their) (?:\w+ ){1,2}(?:in|ready|with)\b)|busy|late|behind|ill\b)",
    re.IGNORECASE,
)
_AWAY = re.compile(r"^,?(?: can't| cannot| won't| isn't| is not| couldn't|'s (?:not|away|ill)\b)", re.IGNORECASE)
_US = r"(?:[Ii]|me|the two of us|you)"
_WHETHER = r"(?:will|is|does|can|would) {}\b.*(?:come|coming|be there|join|take part|play|help)"
_YES = re.compile(
    r"\W*(?:\w+\? )?(?:yes|yeah|aye|of course|sure|certainly|naturally|(?:he|she|they) (?:will|is|are|do))\b", re.I
)
POSSESSIVE = re.compile(
    r"'s\b(?! (?:\w+ing|\w+ed|an?|the|all|also|already|always|as|at|been|done|gone|got|had|in|just|keen|made|never"
    r"|not|on|only|our|out|over|said|so|sold|still|taken|told|too|up|with|won|your)\b)",
    re.IGNORECASE,
)


class NamedPerson(NamedTuple):
    """A part of a text that names a person."""

    start: int
    end: int
    name: str


def people(text: str, situation: Situation) -> frozenset[str]:
    """Those who are said to take part, without speaker and listener. What was found in the last texts is kept."""
    return _people(text, situation._replace(before=tuple(situation.before)))


@lru_cache(maxsize=256)
def _people(text: str, situation: Situation) -> frozenset[str]:
    return frozenset(_taking_part(text, situation)) - {situation.speaker, situation.listener}


def people_out(text: str, situation: Situation) -> frozenset[str]:
    """Those who are said not to take part."""
    return frozenset(
        name
        for start, end, name in persons(text, situation)
        if _AWAY.match(text[end:]) or re.search(r"\bwithout $", lead_to(text, start), re.IGNORECASE)
    )


def people_named(text: str, situation: Situation) -> frozenset[str]:
    """Those who are named at all, but for what is theirs, as in `Dev's workshop`."""
    return frozenset(name for _, end, name in persons(text, situation) if not POSSESSIVE.match(text[end:]))


def persons(text: str, situation: Situation) -> list[NamedPerson]:
    """All persons that a text names, but the two who talk, in order; in lower case too if it has no capital but `I`."""
    talking = (situation.speaker, situation.listener)
    return [person for person in _all_persons(text, situation.places) if person.name not in talking]


@lru_cache(maxsize=512)
def _all_persons(text: str, places: Places) -> Sequence[NamedPerson]:
    lower = text.lower()
    no_capitals = re.sub(r"\bI\b", "i", text).islower()
    return sorted(
        NamedPerson(match.start(), match.end(), name)
        for name in places.homes
        if any(part in lower for part in name.lower().split())
        for match in _naming(name, lower=no_capitals).finditer(text)
    )


@cache
def _naming(name: str, *, lower: bool) -> re.Pattern[str]:
    """A person's first name, with the last one where it follows, or a title and the last name."""
    first, *_, last = [re.escape(each) for each in (*name.split(), *name.split())]
    words = rf"\b(?:{first}\b(?: {last}\b)?|(?:Ms|Mrs|Mr|Miss|Dr|Captain|Nurse|Professor)\.? {last}\b)"
    return re.compile(words, re.IGNORECASE if lower else 0)


def _taking_part(text: str, situation: Situation) -> Iterator[str]:
    asked = within(WHO, situation.question)
    others = "|".join(re.escape(name.split()[0]) for name in situation.places.homes) or "$^"
    spans = persons(text, situation)
    out = {name for _, end, name in spans if _OUT.match(text[end:])} | people_out(text, situation)
    if _YES.match(text):
        asked_of = people_named(situation.question, situation) - out
        yield from (who for who in asked_of if within(_WHETHER.format(who.split()[0]), situation.question))
    member = ""
    last = -1
    for start, end, name in spans:
        lead, after = lead_to(text, start), text[end:]
        possessive = POSSESSIVE.match(after) is not None
        listed = member != "" and re.fullmatch(r",? ?(?:and|,|and also|&)? ?", text[last:start]) is not None
        pair = re.match(rf"(?:(?:,| and| &)* (?:{others}))*(?:,| and| &)+ (?:and )?{_US}\b", after) is not None
        joins = (
            asked
            or listed
            or pair
            or re.match(_COMES, after, re.IGNORECASE) is not None
            or _both(after, situation)
            or _WITH.search(lead) is not None
        )
        if joins and not possessive and name not in out and not _NOT_WITH.search(lead):
            member, last = name, end
            yield name


def _both(after: str, situation: Situation) -> bool:
    """Whether a second name follows, and then that they come."""
    names = "|".join(re.escape(name.split()[0]) for name in situation.places.homes)
    match = re.match(rf" (?:and|&) (?:{names})\b", after, re.IGNORECASE) if names else None
    return match is not None and re.match(_COMES, after[match.end() :], re.IGNORECASE) is not None
