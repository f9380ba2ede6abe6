"""Scripted policies without memory: some know the step's gold data, others read only the question."""

import hashlib
import random
import re
from collections.abc import Callable, Sequence, Set
from functools import cache
from typing import NamedTuple

from environments.mind2web.bm25 import words
from environments.mind2web.contest import Contest
from environments.mind2web.pages.markup import ElementChoice
from environments.mind2web.prompt import LETTERS, NONE
from environments.mind2web.reply import write
from environments.mind2web.session import choice_of
from environments.mind2web.tournament import Prediction, Profile, Tournament
from proctor.environment import Policy
from proctor.types import Action, Message

Chooser = Callable[[Contest, Sequence[ElementChoice]], str]
"""Writes the reply to a question, given the step's data and the choices shown."""
_OPERATIONS = ("CLICK", "TYPE", "SELECT")
_LAST_QUESTION = re.compile(
    r"\nTask: (?P<task>.*)\nPrevious actions:\n(?P<previous>(?:.*\n)*)"
    r"What should .*\n\nA\. None of the above\n(?P<choices>(?:[B-F]\. .*\n)+)$"
)


def gold(contest: Contest, choices: Sequence[ElementChoice]) -> str:
    """Replies with the first positive shown and the gold operation and value; A if none is shown."""
    letter = letter_of(choices, contest.positives)
    return write(letter) if letter == NONE else write(letter, contest.step.op, contest.step.value)


def naive(conversation: str, transcript: Sequence[Message]) -> Action:
    """Clicks the choice with the largest fraction of words in the task but in no earlier action; A if all are 0."""
    seen = _seen(transcript)
    wanted = set(words(seen.task)) - set(words(seen.previous))
    shared = [_part(set(words(label)), wanted) for label in seen.labels]
    best = max(shared, default=0)
    return Action(content=write(LETTERS[1 + shared.index(best)], "CLICK") if best else write(NONE))


def chance(sample: str, seed: int) -> Policy:
    """Replies with a random choice and operation, and a random word of the task as value."""

    def act(conversation: str, transcript: Sequence[Message]) -> Action:
        seen = _seen(transcript)
        dice = random.Random(f"{sample} {seed} {transcript[-1].content}")
        letter = dice.choice(LETTERS[: 1 + len(seen.labels)])
        return Action(content=write(letter, dice.choice(_OPERATIONS), dice.choice(seen.task.split() or [""])))

    return act


def rehearsed(open_contest: Callable[[], Contest], chooser: Chooser, profile: Profile) -> Policy:
    """A policy that plays the step in private at its first question and stores its replies.

    It replies A to a question that did not occur in that play, for example after another agent's replies.
    """

    @cache
    def replies() -> dict[bytes, str]:
        contest, known = open_contest(), dict[bytes, str]()
        tournament = Tournament(contest.line(), profile)
        while group := tournament.group():
            page = contest.shown(group)
            reply = chooser(contest, page.choices)
            known[_digest(contest.asked(page))] = reply
            if chosen := choice_of(reply.removeprefix("Answer: ")[0], page.choices):
                tournament.choose(Prediction(chosen.id))
        return known

    return lambda conversation, transcript: Action(content=replies().get(_digest(transcript[-1]), write(NONE)))


def letter_of(choices: Sequence[ElementChoice], wanted: Sequence[str]) -> str:
    """The letter of the first wanted choice; A if none is wanted."""
    return next((letter for letter, choice in zip(LETTERS[1:], choices, strict=False) if choice.id in wanted), NONE)


def _digest(message: Message) -> bytes:
    return hashlib.blake2b(message.content.encode(), digest_size=16).digest()


class _Seen(NamedTuple):
    """The parts of a question."""

    task: str
    previous: str
    labels: tuple[str, ...]
    """Labels of the choices from B on."""


def _seen(transcript: Sequence[Message]) -> _Seen:
    asked = _LAST_QUESTION.search(transcript[-1].content)
    if asked is None:
        return _Seen("", "", ())
    return _Seen(asked["task"], asked["previous"], tuple(line[3:] for line in asked["choices"].splitlines()))


def _part(label: Set[str], wanted: Set[str]) -> float:
    return len(label & wanted) / max(1, len(label))
