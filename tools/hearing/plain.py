"""Plain utterances with their labels, made of a few sentences: what scripted performers and polite partners say."""

from collections.abc import Iterator, Mapping

from environments.stss.characters.read_back import HOUR
from environments.stss.hearing.labelled import SLOTS, Labelled, Slot
from environments.stss.hearing.named.clock_words import NOON
from environments.stss.hearing.slots import SpokenLine
from environments.stss.town.clock import DATES, time_text
from environments.stss.town.places import Places

TIMES = 12
"""Each sentence is made so often, with other places, times and people."""
_NOW = 10 * HOUR
_INVITED = "Could you come to {other} tomorrow at {before}?"
_ACCEPTED = "Yes, gladly: a talk at {other} on 2023-02-14 {before} to {later}. I will be there."
_ASKED = "Gladly, but where and when would that be?"
_SENTENCES: tuple[tuple[str, str], ...] = (
    ("I invite you to a talk at {place} {day} at {start}.", ""),
    ("I invite you to a talk at {place} {day} from {start} to {end}.", ""),
    ("I would like to invite you to chess at {place} on {date} at {start}. Please come!", ""),
    ("Could you buy rope at {place} on {date} at {start}? I would be very grateful.", ""),
    ("There is a dance at {place} {day}, {start} to {end}. {person} will come too.", ""),
    ("{day}, {place}, {start}: will you help me to clean?", ""),
    ("Would you sing with me and {person} at {place} {day} at {start}, until {end}?", ""),
    ("Please bring the ladder to {place} by {end}.", ""),
    ("Let's meet at {place} {day} at {start}, and afterwards we can go to {other}.", ""),
    ("A concert at {place}, {day} at {start}. I open my shop at {before}.", ""),
    ("Would you feed my cat at {place} {day}? She eats at {before}.", ""),
    ("I was at {other} at {before}. Would you play cards {day} at {start}, at {place}?", ""),
    ("At {place}, please.", _ASKED),
    ("It's at {place}, {day} at {start}.", _ASKED),
    ("At {start}.", _ASKED),
    ("{day} at {start}, please. Until {end}.", _ASKED),
    ("{day}, please.", _ASKED),
    ("It ends at {end}.", _ACCEPTED),
    ("Until {end}, please.", _ACCEPTED),
    ("No, at {place}, please.", _ACCEPTED),
    ("No, not at {other}, at {place}.", _ACCEPTED),
    ("Not {other}, {place}.", _ACCEPTED),
    ("No, it's at {start}, not at {before}.", _ACCEPTED),
    ("No, at {start}.", _ACCEPTED),
    ("No, I mean {day}. It starts at {start}.", _ACCEPTED),
    ("{before}, or at {later}.", ""),
    ("At {before} or {later}, I don't know yet.", _ASKED),
    ("Is it at {before} or at {later}?", _ACCEPTED),
    ("Did you say {before}, or was it {later}?", _ACCEPTED),
    ("With {person}, please.", _ACCEPTED),
    ("{person} will be there. No, {friend} won't come.", _ACCEPTED),
    ("I can't come {day} at {before}. How about {start}?", _INVITED),
    ("Rather at {place}, {day} at {start}.", _INVITED),
    ("Rope from {place}? Gladly.", _INVITED),
    ("Nails from {place}? Yes, I will.", _INVITED),
    ("I get them from {place}. Gladly.", _INVITED),
    ("Would you take the parcel to the ferry? It leaves at {before} today.", ""),
    ("Could you call the doctor for me? She goes at {before}.", ""),
    ("I mean {place}.", _ACCEPTED),
    ("Gladly. I work until {before}. See you then!", _INVITED),
    ("Yes, gladly: a talk at {place} on {date} {start} to {end}. I will be there.", _INVITED),
    ("{friend} invited me to a walk at {place} on {date} {start} to {end}. I agreed.", ""),
)


def plain_utterances(places: Places) -> Iterator[Labelled]:
    """Each sentence TIMES times, with the labels of what is in it: in an answer after what was said before it."""
    names = sorted(places.homes)
    public = sorted({sector.partition(":")[0] for sector in places.sectors if "'s house" not in sector})
    for number, (sentence, before) in enumerate(_SENTENCES):
        for turn in range(TIMES):
            at = number + turn
            speaker, listener, person, friend = (names[(at + more) % len(names)] for more in (0, 3, 5, 7))
            place, other = public[at % len(public)], public[(at + 1) % len(public)]
            start = (13 + at % 7) * HOUR + turn % 2 * HOUR // 2
            values: Mapping[str, Slot] = {"place": place, "day": at % 2, "start": start, "end": start + 2 * HOUR}
            words = {
                **{"place": _place(place), "other": _place(other), "day": ("today", "tomorrow")[at % 2]},
                **{"date": DATES[at % 2], "person": person.split()[0], "friend": friend.split()[0]},
                **{name: _time(minute, turn) for name, minute in (("start", start), ("end", start + 2 * HOUR))},
                **{name: _time(minute, turn) for name, minute in (("before", start - 3 * HOUR), ("later", start))},
            }
            said = {name: value for name, value in values.items() if f"{{{name}}}" in sentence}
            said |= {"day": at % 2} if "{date}" in sentence else {"day": 0} if "today" in sentence else {}
            said |= {"people": frozenset({person})} if "{person}" in sentence else {}
            lines = (SpokenLine(listener, before.format(**words)),) if before else ()
            text = sentence.format(**words)
            yield Labelled(
                id=f"plain-{number}-{turn}",
                category="public",
                meaning="invite",
                speaker=speaker,
                listener=listener,
                now=_NOW,
                before=lines,
                text=f"{text[0].upper()}{text[1:]}",
                slots={name: said.get(name) for name in SLOTS},
            )


def _place(place: str) -> str:
    return f"the {place}"


def _time(minute: int, turn: int) -> str:
    """A time of day, by turns as `16:30` and `4:30pm`."""
    if turn % 3:
        return time_text(minute)
    half = "pm" if minute >= NOON else "am"
    return f"{minute // HOUR % 12 or 12}{f':{minute % HOUR:02}' if minute % HOUR else ''}{half}"
