"""Agents without memory: some that have rehearsed the step with its gold data, and some that only read the question."""

import hashlib
import random
import re
from collections.abc import Callable, Sequence, Set
from functools import cache
from typing import NamedTuple

from environments.mind2web.contest import Contest
from environments.mind2web.pages.markup import ElementChoice
from environments.mind2web.prompt import LETTERS, NONE
from environments.mind2web.ranking.bm25 import words
from environments.mind2web.ranking.tournament import Prediction, Profile, Tournament
from environments.mind2web.reply import write
from environments.mind2web.session import choice_of
from proctor.environment import Policy
from proctor.types import Action, Message

Chooser = Callable[[Contest, Sequence[ElementChoice]], str]
"""The reply to a question, from what the step's data tell of the choices shown."""
_OPERATIONS = ("CLICK", "TYPE", "SELECT")
_LAST_QUESTION = re.compile(
    r"\nTask: (?P<task>.*)\nPrevious actions:\n(?P<previous>(?:.*\n)*)"
    r"What should .*\n\nA\. None of the above\n(?P<choices>(?:[B-F]\. .*\n)+)$"
)


def gold(contest: Contest, choices: Sequence[ElementChoice]) -> str:
    """The first positive shown, with the gold operation and value; else A."""
    letter = _first(choices, contest.positives)
    return write(letter) if letter == NONE else write(letter, contest.step.op, contest.step.value)


def gold_element(contest: Contest, choices: Sequence[ElementChoice]) -> str:
    """The first positive shown, clicked; else A."""
    letter = _first(choices, contest.positives)
    return write(letter) if letter == NONE else write(letter, "CLICK")


def top_rank(contest: Contest, choices: Sequence[ElementChoice]) -> str:
    """The choice of the best rank, clicked."""
    return write(_first(choices, [min((choice.id for choice in choices), key=contest.ranks.__getitem__)]), "CLICK")


def all_none(conversation: str, transcript: Sequence[Message]) -> Action:
    """None of the above, always."""
    return Action(content=write(NONE))


def first_click(conversation: str, transcript: Sequence[Message]) -> Action:
    """The first choice, clicked, always."""
    return Action(content=write(LETTERS[1], "CLICK"))


def garbage(conversation: str, transcript: Sequence[Message]) -> Action:
    """Text that answers nothing."""
    return Action(content="What a colourful page; I should like to read on.")


def naive(conversation: str, transcript: Sequence[Message]) -> Action:
    """Clicks the choice with the largest part of words that the task has and no earlier action told; else A."""
    seen = _seen(transcript)
    wanted = set(words(seen.task)) - set(words(seen.previous))
    shared = [_part(set(words(label)), wanted) for label in seen.labels]
    best = max(shared, default=0)
    return Action(content=write(LETTERS[1 + shared.index(best)], "CLICK") if best else write(NONE))


def chance(sample: str, seed: int) -> Policy:
    """A random choice and operation, with a random word of the task."""

    def act(conversation: str, transcript: Sequence[Message]) -> Action:
        seen = _seen(transcript)
        dice = random.Random(f"{sample} {seed} {transcript[-1].content}")
        letter = dice.choice(LETTERS[: 1 + len(seen.labels)])
        return Action(content=write(letter, dice.choice(_OPERATIONS), dice.choice(seen.task.split() or [""])))

    return act


def rehearsed(open_contest: Callable[[], Contest], chooser: Chooser, profile: Profile) -> Policy:
    """Plays the step through in private when it is first asked, and then says the same again.

    To a question that did not come up then (another agent played before), it answers A.
    """

    @cache
    def replies() -> dict[bytes, str]:
        contest, known = open_contest(), dict[bytes, str]()
        tournament = Tournament(contest.line(), profile)
        while group := tournament.group():
            page = contest.render(group)
            reply = chooser(contest, page.choices)
            known[_digest(contest.asked(page))] = reply
            if chosen := choice_of(reply.removeprefix("Answer: ")[0], page.choices):
                tournament.choose(Prediction(chosen.id))
        return known

    return lambda conversation, transcript: Action(content=replies().get(_digest(transcript[-1]), write(NONE)))


def _first(choices: Sequence[ElementChoice], wanted: Sequence[str]) -> str:
    """The letter of the first choice that is wanted; A where none is."""
    return next((letter for letter, choice in zip(LETTERS[1:], choices, strict=False) if choice.id in wanted), NONE)


def _digest(message: Message) -> bytes:
    return hashlib.blake2b(message.content.encode(), digest_size=16).digest()


class _Seen(NamedTuple):
    """What a question says."""

    task: str
    previous: str
    labels: tuple[str, ...]
    """Of the choices from B on."""


def _seen(transcript: Sequence[Message]) -> _Seen:
    asked = _LAST_QUESTION.search(transcript[-1].content)
    if asked is None:
        return _Seen("", "", ())
    return _Seen(asked["task"], asked["previous"], tuple(line[3:] for line in asked["choices"].splitlines()))


def _part(said: Set[str], wanted: Set[str]) -> float:
    return len(said & wanted) / max(1, len(said))
