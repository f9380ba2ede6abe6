"""Clues to whether a group of words names the activity: where it stands, what is around it, what was asked.

Only words of the closed list (`HeardWords.known`) are clues as such; of all others only the shape is.
"""

import re
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from environments.stss.hearing.activities.clauses import CONJUNCTIONS, DETERMINERS, NEGATIVE, shell
from environments.stss.hearing.activities.groups import PRONOUNS, WordGroup
from environments.stss.hearing.activities.tokens import SLOTS, Token, shape
from environments.stss.hearing.slots import Situation
from environments.stss.hearing.words import within

_NEGATIVE = NEGATIVE | {"without", "than"}
_QUESTIONS = (
    ("what", r"what(?! time| day| hour)"),
    ("who", r"who|who's|alone"),
    ("when", r"when|what time|how long|how late|until when|till when|which day|morning or|how many hours"),
    ("where", r"where|which (?:house|place)"),
)


class HeardWords(NamedTuple):
    """An utterance in its talk, as the clues need it."""

    tokens: Sequence[Token]
    question: str
    """What kind of question it answers."""
    told: bool
    """Whether its speaker spoke before."""
    answers: bool
    said: Set[str]
    """All words said before."""
    refuses: bool
    known: Set[str]
    """Words that may be clues."""
    shown: Sequence[str]
    """Of each token the word if it is known, else its shape."""

    def near(self, index: int) -> str:
        """What is shown of a token; a full stop outside of the utterance."""
        return self.shown[index] if 0 <= index < len(self.shown) else "."


def as_heard(tokens: Sequence[Token], situation: Situation, known: Set[str], *, refuses: bool) -> HeardWords:
    """An utterance in its talk. `refuses`: whether it calls off or declines."""
    before = situation.before
    return HeardWords(
        tokens=tokens,
        question=_question(situation),
        told=any(line.speaker == situation.speaker for line in before),
        answers=bool(before),
        said=frozenset(word for line in before for word in re.findall(r"[\w'-]+", line.text.lower())),
        refuses=refuses,
        known=known,
        shown=[token.word if token.kind == "word" and token.word in known else shape(token) for token in tokens],
    )


def _question(situation: Situation) -> str:
    asked = situation.question
    if not asked:
        return "none"
    found = (kind for kind, words in _QUESTIONS if within(words, asked))
    return next(found, "other" if "?" in asked else "said")


def clues(heard: HeardWords, group: WordGroup) -> list[str]:
    """The clues of one group of words."""
    return [*_words(heard, group), *_sentence(heard, group), *_clause(heard, group), *_talk(heard, group)]


def _words(heard: HeardWords, group: WordGroup) -> Iterator[str]:
    """What the group is made of, and what stands right before and after it."""
    first, last, after, crossed = group
    one, two, three = (heard.near(first - back) for back in (1, 2, 3))
    begin, second = heard.near(first), heard.near(first + 1) if first + 1 < last else "/"
    yield from ("always", f"before {one}", f"before {two} {one}", f"before {three} {two} {one}", f"two before {two}")
    yield from (f"first {begin}", f"first {begin} {second}", f"at {one}|{begin}", f"at {two} {one}|{begin}")
    yield from (f"last {heard.near(last - 1)}", f"after {heard.near(last)}", f"end {heard.near(after)}")
    inside = [token for token in heard.tokens[first:last] if token.kind == "word"]
    content = sum(token.word not in heard.known for token in inside)
    yield from (f"content {min(content, 4)}", f"words {min(last - first, 8)}")
    yield from (f"crosses {each}" for each in {*crossed, *(["any"] if crossed else [])})
    yield from (f"within {word}" for word in {token.word for token in inside} & PRONOUNS)


def _sentence(heard: HeardWords, group: WordGroup) -> Iterator[str]:
    """The sentence in which the group stands."""
    tokens, (first, _, after, _) = heard.tokens, group
    begin = next((at + 1 for at in range(first - 1, -1, -1) if tokens[at].ends), 0)
    end = next((at for at in range(first, len(tokens)) if tokens[at].ends), len(tokens))
    lead = tokens[begin:first]
    yield f"sentence {min(sum(token.ends for token in tokens[:begin]), 3)}"
    yield f"closes {tokens[end].text if end < len(tokens) else 'open'}"
    yield from (f"with {kind}" for kind in {token.kind for token in tokens[begin:end]} & SLOTS)
    if first == begin:
        yield from ("opens", f"opens {heard.near(first)}", f"opens {'whole' if end == after else 'part'}")
    yield from (f"after you {any(token.word == 'you' for token in lead)}", f"words on {min(len(lead), 6)}")
    yield f"time before {any(token.kind == 'time' for token in lead)}"
    slots = [abs(at - after) for at, token in enumerate(tokens) if token.kind in SLOTS]
    yield f"slot near {min(*slots, 4) if slots else 'none'}"


def _clause(heard: HeardWords, group: WordGroup) -> Iterator[str]:
    """The clause that leads to the group: its shell, such as `would you like to`."""
    tokens, first = heard.tokens, group.first
    begin = first
    while begin > 0 and not _bounds(tokens[begin - 1]):
        begin -= 1
    lead = [token.word for token in tokens[begin:first]]
    kind = _kind(heard, first)
    joined = heard.near(begin - 1)
    opening = f"{heard.near(begin)} {heard.near(begin + 1)}" if lead[1:] else heard.near(begin) if lead else "-"
    form, denied = shell(lead), not _NEGATIVE.isdisjoint(lead)
    yield from (f"denied {denied}|{heard.refuses}", f"denied {denied}|{kind}")
    yield from (f"joined {joined}", f"joined {joined}|{kind}", f"opening {opening}", f"opening {opening}|{kind}")
    yield from (f"shell {form}", f"shell {form}|{kind}", f"shell {form}|{heard.near(first - 1)}")
    yield from (f"kind {kind}|{heard.near(first - 1)}", f"lead {min(len(lead), 6)}")
    if len(lead) <= 6:
        yield f"lead {' '.join(heard.near(at) for at in range(begin, first))}|{kind}"


def _bounds(token: Token) -> bool:
    return token.ends or token.text in {",", "(", "–", "—"} or token.word in CONJUNCTIONS


def _kind(heard: HeardWords, first: int) -> str:
    """Whether a group begins as a verb, a gerund, a plural or with an article."""
    if heard.tokens[first].word in DETERMINERS:
        return "article"
    form = shape(heard.tokens[first])
    return form if form in {"VERB", "ING", "PLURAL"} else "other"


def _talk(heard: HeardWords, group: WordGroup) -> Iterator[str]:
    """What was said before, and what the utterance answers to."""
    before = heard.near(group.first - 1)
    inside = {token.word for token in heard.tokens[group.first : group.last] if token.word not in heard.known}
    repeats = bool(inside & heard.said)
    yield from (f"told {heard.told}|{before}", f"refuses {heard.refuses}|{before}")
    yield f"refuses {heard.refuses}|repeats {repeats}|{heard.answers and not heard.told}"
    yield from (f"asked {heard.question}", f"asked {heard.question}|{before}", f"asked {heard.question}|{heard.told}")
    yield f"asked {heard.question}|at {min(group.first, 3)}"


def clues_of_none(heard: HeardWords) -> list[str]:
    """The clues to that an utterance names no activity."""
    kinds = {token.kind for token in heard.tokens}
    words = sorted({token.word for token in heard.tokens if token.kind == "word"} & heard.known)
    return [
        *("none", f"none told {heard.told}", f"none asked {heard.question}|{heard.told}|{heard.refuses}"),
        *(f"none answers {heard.answers}", f"none refuses {heard.refuses}|{heard.answers}"),
        *(f"none words {min(len(heard.tokens) // 8, 5)}", f"none slots {bool(kinds & SLOTS)}|{heard.answers}"),
        *(f"none {kind}" for kind in sorted(kinds & SLOTS)),
        *(f"none says {word}" for word in words),
        *(f"none says {word}|{heard.answers}" for word in words),
    ]
