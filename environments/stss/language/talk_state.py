"""The state of a talk after each of its sentences: what is proposed, agreed and refused."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from environments.stss.hearing.named.days import days
from environments.stss.hearing.slots import NumberSpan, SpokenLine
from environments.stss.language.spoken_times import HALF_DAY, SpokenTime, asks_for_number, spoken_times
from environments.stss.language.stance import (
    agrees,
    asks,
    changes,
    commits,
    doubts,
    hinders,
    is_busy,
    offers,
    refuses,
    regrets,
    says_yes,
    tells_of,
    withdraws,
)

_POSSESSIVE = re.compile(r"'s (?!fine|good|ok|all right|perfect|better|great)")
"""What makes a day no day: `today's tide`; but not as the first one, as in `Tomorrow's the fair.`"""
_ECHO = re.compile(r"\w+(?: \w+)?(?:!|\.\.\.?)")
"""A time that is only repeated in surprise."""
_LEAD = re.compile(
    r"(?:\W*\b(?:oh|well|then|so|no|hm+|or|and|but|now|say|maybe|perhaps|at|on|about|around|from|a|shortly)\b)*\W*",
    re.IGNORECASE,
)
"""Words before a day or time that a sentence begins with."""
_SO = re.compile(r",? so,? (?:(?:we|it|they) \w+ )?(?:(?:at|about|say) )?(?:a )?$", re.IGNORECASE)
"""Words before what follows from the rest of a sentence: `I close at five, so ten past`."""
_NOT = re.compile(r"\b(?:not|\w+n't|never)\b", re.IGNORECASE)
_SHORT = 5
"""Words of a sentence that hardly does more than name a time."""


class Proposal(NamedTuple):
    """A day or a time that was proposed."""

    value: int | None = None
    by: str = ""
    shift: int = 0
    """By how much it differs from the one before it."""
    settled: bool = False
    """Whether the other side took it up."""
    refused: bool = False
    """Whether the other side can't then."""
    before: tuple[int, ...] = ()
    """What was proposed before, and neither refused nor replaced by something that both sides agreed to."""
    instead_of: tuple[int, ...] = ()
    """What it would have replaced, which may be meant again when it is refused."""
    since: tuple[int, ...] = ()
    """What was said since, and neither repeats it nor takes its place."""

    @property
    def values(self) -> tuple[int, ...]:
        """What may be meant in the end, likeliest first."""
        return tuple(value for value in (self.value, *self.before, *self.since) if value is not None)

    @property
    def accepted(self) -> "Proposal":
        """This proposal, taken up."""
        return self._replace(settled=self.value is not None, refused=False, before=())


class TalkState:
    """The state of a talk after each of its sentences."""

    def __init__(self, first: str, names: Sequence[str]) -> None:
        """`first`: who begins; `names`: first names of those who could be sent to instead."""
        self._first, self._names = first, names
        self.day, self.time = Proposal(), Proposal()
        self.state: Literal["open", "agreed", "refused"] = "open"
        self._by = ""
        """Who brought about the state."""
        self._answered = False
        """Whether the other side has said something since that is no refusal."""
        self._replied = False
        """Whether the other side has spoken since."""
        self._firm = False
        """Whether a refusal was one of the whole, and not only of a time, or a word of regret."""
        self._hindered = ""
        """Who told last of something at a time that is in the way."""
        self._last: int | None = None
        """The last time that was named."""
        self._question = SpokenLine("", "")
        self._proposed = ""
        """The last sentence that proposed a time."""

    def hear(self, sentence: str, speaker: str) -> None:
        """Takes up a sentence."""
        before = self.state
        self._replied = self._replied or speaker != self._by
        news = self._take_days(sentence, speaker)
        news = self._take_times(sentence, speaker) or news
        if asks(sentence) or speaker != self._question.speaker:
            self._question = SpokenLine(speaker, sentence if asks(sentence) else "")
        if not news and (before == "refused" or self.state != "refused"):
            self._take_stance(sentence, speaker)

    def _take_days(self, sentence: str, speaker: str) -> bool:
        """Takes up the days of a sentence; whether one is a new proposal after a refusal."""
        moves = _moves(sentence) or bool(spoken_times(sentence, self.time.value, self._last))
        named = [
            found
            for found in days(sentence, 0)
            if not _POSSESSIVE.match(sentence[found.end :]) or (found.start == 0 and self.day.value is None)
        ]
        news = [self._take_day(found, sentence, speaker, moves=moves) for found in named]
        return any(news) and self.state == "refused" and self._become("open", speaker)

    def _take_day(self, found: NumberSpan, sentence: str, speaker: str, *, moves: bool) -> bool:
        if found.value > 1:
            return _moves(sentence) and not self._become("refused", "", firm=True)
        busy = is_busy(sentence, found.start, found.end)
        if found.value == self.day.value:
            if busy and self.state == "open" and speaker not in (self._by, self.day.by):
                self._become("refused", speaker)
            return False
        if self.day.value is not None and (busy or not (moves or _LEAD.fullmatch(sentence[: found.start]))):
            return False
        self.day = Proposal(found.value, speaker, before=self.day.values if self.day.settled else ())
        return True

    def _take_times(self, sentence: str, speaker: str) -> bool:
        """Takes up the times of a sentence; whether one is a new proposal."""
        times = spoken_times(sentence, self.time.value, self._last)
        self._last = times[-1].minute if times else self._last
        if asks_for_number(self._question.text) and self._question.speaker != speaker:
            return False
        for found in times:
            if found.closes:
                self._take_end(found, sentence, speaker)
        news = [self._take_time(found, sentence, speaker) for found in times if not found.closes]
        return any(news)

    def _take_end(self, found: SpokenTime, sentence: str, speaker: str) -> None:
        """An end may be meant as a start, as in `by six`; or somebody is busy until after the time that stands."""
        now = self.time
        if not is_busy(sentence, found.start, found.end):
            self.time = now._replace(since=(*now.since, found.minute))
            return
        clashes = now.value is not None and 0 < (found.minute - now.value) % HALF_DAY < HALF_DAY / 2
        if clashes and self.state == "open" and speaker != now.by:
            self.time = now._replace(refused=True)
            self._become("refused", speaker)

    def _take_time(self, found: SpokenTime, sentence: str, speaker: str) -> bool:
        now, value = self.time, found.minute
        busy = now.value is not None and is_busy(sentence, found.start, found.end)
        shift = value - (now.value or 0) if found.relative else 0
        if value == now.value or (speaker != now.by and shift == now.shift != 0):
            self.time = now._replace(since=())
            surprised = self.state == "open" and _ECHO.fullmatch(sentence) is not None
            busy = busy or (not offers(sentence) and tells_of(sentence, found.start, found.end))
            self._repeat(speaker, busy=busy, echo=asks(sentence) or surprised)
            return False
        self._hindered = speaker if busy else self._hindered
        if busy:
            return False
        if not self._replaces(found, sentence, speaker):
            self.time = now._replace(since=(*now.since, value))
            return False
        self._hindered, self._proposed = "", sentence
        so = _SO.search(sentence[: found.start]) is not None
        taken_up = value in now.values and not asks(sentence)
        firm = taken_up or (not now.settled and (so or changes(sentence) or len(sentence.split()) <= _SHORT))
        kept = () if now.refused or firm else now.values
        self.time = Proposal(value, speaker, shift, before=kept, instead_of=now.values)
        return self._become("open", speaker)

    def _replaces(self, found: SpokenTime, sentence: str, speaker: str) -> bool:
        """Whether a time that nothing stands in the way of takes the place of the one that stands."""
        now, lead = self.time, sentence[: found.start]
        if now.value is None:
            return not _NOT.search(lead)
        then = _SO.search(lead) is not None or re.match(r",? then\b", sentence[found.end :]) is not None
        if self._hindered not in ("", speaker):
            return True
        if now.settled:
            return then or changes(sentence) or says_yes(sentence) or len(sentence.split()) <= _SHORT
        leads = then or _LEAD.fullmatch(lead) is not None
        dated = bool(days(sentence, 0))
        return now.refused or speaker == now.by or leads or dated or _moves(sentence)

    def _repeat(self, speaker: str, *, busy: bool, echo: bool) -> None:
        """Somebody says the time that stands again."""
        if speaker == self.time.by:
            self.time = self.time._replace(refused=self.time.refused and busy)
        elif busy:
            self._hindered = speaker
            self.time = self.time._replace(refused=True, settled=False)
            self._become("refused", speaker)
        elif not echo:
            self._agree(speaker)

    def _take_stance(self, sentence: str, speaker: str) -> None:
        own = self._by == speaker
        if self._take_refusal(sentence, speaker):
            return
        if asks(sentence):
            if self.state == "refused" and self._by not in ("", speaker) and offers(sentence[:-1]):
                self._become("open", speaker)
            self._answered = self._answered or (self.state == "open" and not own)
        elif self.state != "agreed" and agrees(sentence):
            if own or self.state == "open":
                self._agree(speaker)
        elif own and self.state == "refused" and self._replied and not self._firm and commits(sentence):
            self._become("open", "")
            self._answered = True
        elif self.state == "open" and not own:
            self._take_remark(sentence)

    def _take_remark(self, sentence: str) -> None:
        """The other side says something that neither agrees nor refuses."""
        self._answered = not _NOT.search(sentence) or self.time.settled
        if commits(sentence):
            self._answered = True
            self.day, self.time = self.day._replace(settled=True), self.time._replace(settled=True)

    def _take_refusal(self, sentence: str, speaker: str) -> bool:
        """Whether a sentence refuses, which is then taken up."""
        proposer = self.state == "open" and speaker == (self._by or self._first)
        just_now = self.state == "open" or (self._by == speaker and not self._replied)
        yes = says_yes(sentence) and " but " not in sentence
        if not yes and self._refuses(sentence, own=proposer):
            return self._become("refused", self._by if self.state == "refused" else speaker, firm=True)
        doubted = not yes and self.state == "open" and self._doubts(sentence, own=proposer)
        if doubted or (not proposer and just_now and hinders(sentence)):
            return self._become("refused", speaker)
        return False

    def _refuses(self, sentence: str, *, own: bool) -> bool:
        """Whether a sentence refuses; after an agreement, and of who proposes, only words beyond doubt do."""
        if own or self.state == "agreed" or asks(sentence):
            return withdraws(sentence)
        return refuses(sentence, self._names, answered=self._answered)

    def _doubts(self, sentence: str, *, own: bool) -> bool:
        return not asks(sentence) and (regrets(sentence) or (not own and doubts(sentence)))

    def _agree(self, speaker: str) -> None:
        self._become("agreed", speaker)
        self.day, self.time = self.day.accepted, self.time.accepted

    def _become(self, state: Literal["open", "agreed", "refused"], speaker: str, *, firm: bool = False) -> bool:
        if state == "refused" and not self.time.settled:
            self.time = self.time._replace(before=self.time.instead_of)
        self.state, self._by, self._firm = state, speaker, firm
        self._answered = self._replied = False
        return True

    @property
    def declined(self) -> bool:
        """Whether the whole was refused, and not only a time."""
        return self.state == "refused" and self._firm

    @property
    def agreed(self) -> bool:
        """Whether both sides leave it at what was proposed."""
        tacitly = self._answered or not (self._replied or self._question.text == self._proposed)
        return self.state == "agreed" or (self.state == "open" and tacitly and self.time.value is not None)


def _moves(sentence: str) -> bool:
    """Whether a day or time of a sentence takes the place of another: it asks, offers, agrees or hardly says more."""
    return offers(sentence) or says_yes(sentence) or len(sentence.split()) <= _SHORT
