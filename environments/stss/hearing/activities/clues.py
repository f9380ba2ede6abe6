"""Clues to whether a group of words names the activity: where it stands, what is around it, what was asked.

Only words of the closed list (`HeardWords.known`) are clues as such; of all others only the shape is.
"""

import re
from collections.abc import Sequence, Set
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
    words: Sequence[str]
    """Of each token its word."""
    question: str
    """What kind of question it answers."""
    told: bool
    """Whether its speaker spoke before."""
    answers: bool
    new_said: frozenset[str]
    """The words said before that are not in the closed list."""
    refuses: bool
    known: Set[str]
    """Words that may be clues."""
    new: Sequence[bool]
    """Of each token whether it is a word that may be no clue."""
    shown: Sequence[str]
    """Of each token the word if it is known, else its shape."""
    sentences: Sequence[range]
    """Of each token the indices of its sentence, without the mark that ends it."""
    clauses: Sequence[int]
    """Of each token where its clause begins."""
    slots: Sequence[int]
    """The indices of days, times and places."""
    pronouns: Sequence[int]
    """The indices of pronouns."""

    def near(self, index: int) -> str:
        """What is shown of a token; a full stop outside of the utterance."""
        return self.shown[index] if 0 <= index < len(self.shown) else "."


def as_heard(tokens: Sequence[Token], situation: Situation, known: Set[str], *, refuses: bool) -> HeardWords:
    """An utterance in its talk. `refuses`: whether it calls off or declines."""
    before = situation.before
    said = (word for line in before for word in re.findall(r"[\w'-]+", line.text.lower()))
    return HeardWords(
        tokens=tokens,
        words=[token.word for token in tokens],
        question=_question(situation),
        told=any(line.speaker == situation.speaker for line in before),
        answers=bool(before),
        new_said=frozenset(said) - known,
        refuses=refuses,
        known=known,
        new=[token.kind == "word" and token.word not in known for token in tokens],
        shown=[token.word if token.kind == "word" and token.word in known else shape(token) for token in tokens],
        sentences=_sentences(tokens),
        clauses=_clauses(tokens),
        slots=[at for at, token in enumerate(tokens) if token.kind in SLOTS],
        pronouns=[at for at, token in enumerate(tokens) if token.kind == "word" and token.word in PRONOUNS],
    )


def _sentences(tokens: Sequence[Token]) -> list[range]:
    found: list[range] = []
    for end in (*(at for at, token in enumerate(tokens) if token.ends), len(tokens)):
        found += [range(len(found), end)] * (end + 1 - len(found))
    return found


def _clauses(tokens: Sequence[Token]) -> list[int]:
    begins = [0]
    for at, token in enumerate(tokens, 1):
        begins.append(at if _bounds(token) else begins[-1])
    return begins


def _question(situation: Situation) -> str:
    asked = situation.question
    if not asked:
        return "none"
    found = (kind for kind, words in _QUESTIONS if within(words, asked))
    return next(found, "other" if "?" in asked else "said")


def clues(heard: HeardWords, group: WordGroup) -> list[str]:
    """The clues of one group of words."""
    shared = [*clues_of_sentence(heard, heard.sentences[group.first]), *clues_of_start(heard, group.first)]
    return [*shared, *clues_of_rest(heard, group)]


def clues_of_sentence(heard: HeardWords, sentence: range) -> list[str]:
    """The clues that all groups of a sentence have in common."""
    before, inside = heard.tokens[: sentence.start], heard.tokens[sentence.start : sentence.stop]
    end = heard.tokens[sentence.stop].text if sentence.stop < len(heard.tokens) else "open"
    return [
        *("always", f"asked {heard.question}", f"asked {heard.question}|{heard.told}"),
        *(f"sentence {min(sum(token.ends for token in before), 3)}", f"closes {end}"),
        *(f"with {kind}" for kind in {token.kind for token in inside} & SLOTS),
    ]


def clues_of_start(heard: HeardWords, first: int) -> list[str]:
    """The clues that all groups have in common that begin with the same token, but for those of its sentence."""
    return [*_before(heard, first), *_lead(heard, first), *_clause(heard, first), *_talk(heard, first)]


def clues_of_rest(heard: HeardWords, group: WordGroup) -> list[str]:
    """The other clues of a group."""
    return [*_after(heard, group), *_inside(heard, group)]


def _before(heard: HeardWords, first: int) -> list[str]:
    """How the group begins, and what stands right before it."""
    one, two, three, begin = heard.near(first - 1), heard.near(first - 2), heard.near(first - 3), heard.near(first)
    return [
        *(f"before {one}", f"before {two} {one}", f"before {three} {two} {one}", f"two before {two}"),
        *(f"first {begin}", f"at {one}|{begin}", f"at {two} {one}|{begin}"),
    ]


def _after(heard: HeardWords, group: WordGroup) -> list[str]:
    """How the group ends, what stands right after it, and whether a day, a time or a place is near."""
    first, last, after, crossed = group
    sentence, slots = heard.sentences[first], [abs(at - after) for at in heard.slots]
    found = [f"last {heard.near(last - 1)}", f"after {heard.near(last)}", f"end {heard.near(after)}"]
    found.append(f"slot near {min(*slots, 4) if slots else 'none'}")
    if crossed:
        found += [f"crosses {each}" for each in {*crossed, "any"}]
    if first == sentence.start:
        found.append(f"opens {'whole' if sentence.stop == after else 'part'}")
    return found


def _inside(heard: HeardWords, group: WordGroup) -> list[str]:
    """What the group is made of, and whether it was said before."""
    first, last, _, _ = group
    repeats = not heard.new_said.isdisjoint(heard.words[first:last])
    return [
        f"first {heard.near(first)} {heard.near(first + 1) if first + 1 < last else '/'}",
        *(f"content {min(sum(heard.new[first:last]), 4)}", f"words {min(last - first, 8)}"),
        *(f"within {word}" for word in {heard.words[at] for at in heard.pronouns if first <= at < last}),
        f"refuses {heard.refuses}|repeats {repeats}|{heard.answers and not heard.told}",
    ]


def _lead(heard: HeardWords, first: int) -> list[str]:
    """What of its sentence stands before the group."""
    begin = heard.sentences[first].start
    lead = heard.words[begin:first]
    time = any(heard.tokens[at].kind == "time" for at in heard.slots if begin <= at < first)
    opens = [] if lead else ["opens", f"opens {heard.near(first)}"]
    return [*opens, f"after you {'you' in lead}", f"words on {min(len(lead), 6)}", f"time before {time}"]


def _clause(heard: HeardWords, first: int) -> list[str]:
    """The clause that leads to the group: its shell, such as `would you like to`."""
    begin = heard.clauses[first]
    lead = heard.words[begin:first]
    kind, before = _kind(heard, first), heard.near(first - 1)
    joined = heard.near(begin - 1)
    opening = f"{heard.near(begin)} {heard.near(begin + 1)}" if lead[1:] else heard.near(begin) if lead else "-"
    form, denied = shell(lead), not _NEGATIVE.isdisjoint(lead)
    return [
        *(f"denied {denied}|{heard.refuses}", f"denied {denied}|{kind}"),
        *(f"joined {joined}", f"joined {joined}|{kind}", f"opening {opening}", f"opening {opening}|{kind}"),
        *(f"shell {form}", f"shell {form}|{kind}", f"shell {form}|{before}"),
        *(f"kind {kind}|{before}", f"lead {min(len(lead), 6)}"),
        *([f"lead {' '.join(heard.shown[begin:first])}|{kind}"] if len(lead) <= 6 else []),
    ]


def _bounds(token: Token) -> bool:
    return token.ends or token.text in {",", "(", "–", "—"} or token.word in CONJUNCTIONS


def _kind(heard: HeardWords, first: int) -> str:
    """Whether a group begins as a verb, a gerund, a plural or with an article."""
    if heard.tokens[first].word in DETERMINERS:
        return "article"
    form = shape(heard.tokens[first])
    return form if form in {"VERB", "ING", "PLURAL"} else "other"


def _talk(heard: HeardWords, first: int) -> list[str]:
    """What was said before, and what the utterance answers to."""
    before, question = heard.near(first - 1), heard.question
    return [
        *(f"told {heard.told}|{before}", f"refuses {heard.refuses}|{before}"),
        *(f"asked {question}|{before}", f"asked {question}|at {min(first, 3)}"),
    ]


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
