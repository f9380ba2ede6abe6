"""A polite partner in a talk with a character: answers each question and corrects each slot once, in plain words."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from environments.stss.characters.read_back import HOUR, listed
from environments.stss.characters.routine import chance
from environments.stss.hearing.activities.clauses import DETERMINERS
from environments.stss.hearing.labelled import SLOTS, Labelled, Slot, same_activity, verdict
from environments.stss.hearing.named.days import OUT_OF_REACH
from environments.stss.hearing.words import NUMBERS, VERBS
from environments.stss.town.clock import DAY
from environments.stss.understanding.listener import PlayedReply, listen, meant
from environments.stss.understanding.replies import asks, states

CHOSEN: Mapping[str, Slot] = {"activity": "a walk", "place": "Anchor Inn", "day": 1, "start": 15 * HOUR}
"""What the partner names where it is asked for what it had not said."""
STOCK: Mapping[str, Sequence[str]] = {
    "verb": ("I would like to {}.", "It's to {}, please.", "I mean to {}."),
    "noun": ("It's about {}.", "I mean {}.", "It's for {}, please."),
    "place": ("At {}, please.", "It's at {}.", "I mean {}."),
    "day": ("{}, please.", "It's {}.", "I mean {}."),
    "start": ("At {}, please.", "It starts at {}.", "I mean at {}."),
    "end": ("Until {}, please.", "It ends at {}.", "It's until {}."),
    "no end": ("It has no fixed end.", "I don't know yet how long it takes.", "The end is open."),
    "people": ("{} will come too.", "With {}, please.", "{} will be there."),
    "nobody": ("Nobody else will come.", "Just the two of us.", "Only you and I."),
    "off": ("No, I'm sorry, it won't take place.", "No, I'm sorry, it's cancelled.", "No, it's called off."),
    "declined": ("No, I'm sorry, I can't come.", "No, I won't come, I'm sorry.", "No, unfortunately I can't."),
    "on": ("No, no, it will take place.", "No, it's still on.", "No, no, it's on."),
}
LEAVES = (
    "Thank you, see you then!",
    "Lovely. Bye for now!",
    "Great, I look forward to it.",
    "Wonderful! I must run, the kettle is on.",
    "That's settled, then. Goodbye!",
    "You've made my day. See you there!",
    "Brilliant, I'll tell the others that you're coming.",
    "Good. Wrap up warm!",
    "I knew I could count on you.",
    "Super. I have to be off now, my bread is in the oven.",
    "Perfect. If anything changes, I'll let you know.",
    "Thanks a lot. Have a nice day!",
    "Glad to hear it. Give my regards to your family!",
    "Excellent. Don't be late!",
    "Fine. I can't tell you how happy I am.",
    "It'll be fun. Take care!",
    "I owe you one. Bye!",
    "Right, back to work. See you!",
    "Marvellous! No need to bring anything.",
    "Cheers. Sleep well, and see you soon!",
    "Then it's agreed. I shall be waiting for you.",
)
"""With which the partner leaves once it is content."""
_HOURS = {number: name for name, number in NUMBERS.items()}
_PAST = {0: "{}", 15: "a quarter past {}", 30: "half past {}", 45: "a quarter to {}"}


class PoliteAnswer(NamedTuple):
    """What the partner says next, and whether it is content and takes leave."""

    text: str
    leaves: bool = False


class PolitePartner:
    """Has said an utterance, and wants it understood. `wanted`: the slots that it means, with what it chose since."""

    def __init__(self, said: Labelled) -> None:
        self.wanted: dict[str, Slot] = dict(said.slots)
        self._said, self._alone = said, listen(said)
        self._told: set[str] = set()

    def answer(self, reply: PlayedReply) -> PoliteAnswer:
        """The answer to a character's reply: corrections first, then what it is asked for."""
        if self._said.meaning == "smalltalk" or all(value is None for value in self._said.slots.values()):
            return PoliteAnswer("Nothing more, thank you. Goodbye!", leaves=True)
        if self.wanted["negated"]:
            return self._refuses(reply)
        told = [self._tell("negated")] if states("negated", True, reply) else []
        corrections = list(filter(None, [self._tell(name) for name in SLOTS[:-1] if self._wrong(name, reply)]))
        if corrections and not told:
            corrections[0] = f"No, {_within(corrections[0])}"
        if self.wanted["day"] == reply.stance.slots.day == OUT_OF_REACH and not (told or corrections):
            return PoliteAnswer("I understand. Goodbye!", leaves=True)
        text = " ".join(filter(None, [*told, *corrections, *self._answers(reply)]))
        return PoliteAnswer(text) if text else self._content(reply)

    def _refuses(self, reply: PlayedReply) -> PoliteAnswer:
        if states("negated", True, reply):
            told = [self._tell(name) for name in SLOTS if name in asks(reply) and self.wanted[name] is not None]
            return PoliteAnswer(" ".join(["Yes, I'm sorry.", *filter(None, told)]))
        refusal = self._tell("negated")
        return PoliteAnswer(refusal or "Goodbye!", leaves=not refusal)

    def _wrong(self, name: str, reply: PlayedReply) -> bool:
        """Whether a reply states another value of a slot than the one that is wanted."""
        heard = meant(reply.stance, self._said.now)
        if not states(name, heard[name], reply):
            return False
        if self.wanted[name] is None and (name == "day" or self._alone[name] is None):
            return False
        return verdict(name, self.wanted, heard) != "right"

    def _answers(self, reply: PlayedReply) -> list[str]:
        stance = reply.stance
        told = [self._on_guess(stance.guess)] if stance.move == "confirm_activity" else []
        asked = [name for name in SLOTS if name in asks(reply) - {"people"} and (name != "activity" or not told)]
        told += [self._tell(name) for name in asked if self.wanted[name] is not None or name in stance.missing]
        return [*told, self._on_people(reply)] if stance.asks_about_people else told

    def _on_guess(self, guess: str) -> str:
        wanted = self.wanted["activity"]
        right = wanted is not None and same_activity(str(wanted), guess)
        return "Yes." if right else self._tell("activity") or "No."

    def _on_people(self, reply: PlayedReply) -> str:
        people = self.wanted["people"]
        come = isinstance(people, frozenset) and reply.stance.named - reply.stance.slots.people <= people
        return "Yes." if come else self._tell("people") or "No."

    def _content(self, reply: PlayedReply) -> PoliteAnswer:
        if reply.stance.move == "propose":
            first, last = reply.stance.commitments[0], reply.stance.commitments[-1]
            self.wanted |= {"start": first.start % DAY, "day": first.start // DAY, "end": last.end % DAY}
            return PoliteAnswer("Yes, that's fine.")
        if reply.stance.move == "decline":
            return PoliteAnswer("I understand. Goodbye!", leaves=True)
        return PoliteAnswer(chance(self._said.id, "leave").choice(LEAVES), leaves=True)

    def _tell(self, name: str) -> str:
        """The sentence for a slot; empty if it was said already."""
        if name in self._told:
            return ""
        self._told.add(name)
        if self.wanted[name] is None and name in CHOSEN:
            self.wanted[name] = self._chosen(name)
        return self._phrase(name, self.wanted[name])

    def _chosen(self, name: str) -> Slot:
        end = self.wanted["end"]
        return end - HOUR if name == "start" and isinstance(end, int) else CHOSEN[name]

    def _phrase(self, name: str, value: Slot) -> str:
        if name == "negated":
            kind = "on" if not value else "declined" if self._said.meaning == "decline" else "off"
            return self._drawn(kind, "")
        if name == "activity":
            return self._drawn("verb" if _is_verb(str(value)) else "noun", _activity(str(value)))
        if value is None:
            return self._drawn("no end" if name == "end" else "nobody", "")
        return self._drawn(name, _SPOKEN[name](value))

    def _drawn(self, kind: str, value: str) -> str:
        sentence = chance(self._said.id, kind).choice(STOCK[kind]).format(value)
        return sentence[0].upper() + sentence[1:]


def _within(text: str) -> str:
    """A text as it goes on within a sentence: a name keeps its capital."""
    proper = re.match(r"(?:I|[A-Z]\w+ [A-Z]\w+)\b", text)
    return text if proper else f"{text[0].lower()}{text[1:]}"


def _is_verb(activity: str) -> bool:
    return activity.split(maxsplit=1)[0].lower() in VERBS


def _activity(activity: str) -> str:
    """An activity within a sentence, a noun with its article."""
    first = activity.split(maxsplit=1)[0].lower()
    bare = activity[0].lower() + activity[1:]
    return bare if first in VERBS | DETERMINERS or first.endswith(("ing", "'s")) else f"the {bare}"


def _place(value: Slot) -> str:
    return str(value) if "'s " in str(value) else f"the {value}"


def _clock(value: Slot) -> str:
    """A time of day in words, such as `half past seven in the evening`."""
    minute = int(str(value))
    hour = minute // HOUR + (minute % HOUR == 45)
    part = "in the morning" if minute < 12 * HOUR else "in the afternoon" if minute < 18 * HOUR else "in the evening"
    if minute % HOUR not in _PAST:
        return f"{minute // HOUR % 12 or 12}:{minute % HOUR:02} {part}"
    return f"{_PAST[minute % HOUR].format(_HOURS[hour % 12 or 12])} {part}"


def _names(value: Slot) -> str:
    return listed(sorted(value)) if isinstance(value, frozenset) else str(value)


_DAYS: Mapping[Slot, str] = {0: "today", 1: "tomorrow"}
_SPOKEN: Mapping[str, Callable[[Slot], str]] = {
    "place": _place,
    "day": lambda day: _DAYS.get(day, "the day after tomorrow"),
    "start": _clock,
    "end": _clock,
    "people": _names,
}
