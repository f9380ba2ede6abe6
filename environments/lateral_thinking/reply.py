"""What of a reply is its question, and whether the question goes to the host at all."""

import re
from enum import StrEnum

from environments.lateral_thinking.dataset import Language, Puzzle
from environments.lateral_thinking.host import Profile
from environments.lateral_thinking.prompt import WORDINGS
from environments.lateral_thinking.text import character_bleu, share, words

MAX_QUESTION = 2_000
"""Characters of a question that are read."""
REPEATED = 0.85
"""The likeness above which a question repeats a fact of the story."""


class Screening(StrEnum):
    """What becomes of a question; all but ASK are answered by a hint of the same name."""

    ASK = "ask"
    GO_ON = "go_on"
    IN_STORY = "in_story"
    GUESS = "guess"


def question_of(reply: str, profile: Profile) -> str | None:
    """The question in a reply, at most MAX_QUESTION characters; None where the reply is blank.

    It is the first line, stripped, which in `compat` may be empty; in `strict` the first line that is not blank.
    """
    if not reply.strip():
        return None
    text = (reply if profile == "compat" else reply.strip()).split("\n", 1)[0].strip()
    return text[:MAX_QUESTION].encode(errors="replace").decode()


def screen(question: str, puzzle: Puzzle, profile: Profile) -> Screening:
    """What becomes of a question; one for a reason goes to the host in `compat`, as published."""
    if any(phrase in question for phrase in WORDINGS[puzzle.language].forbidden):
        return Screening.GO_ON
    if profile == "strict" and asks_why(question, puzzle.language):
        return Screening.GUESS
    return Screening.IN_STORY if _repeats_story(question, puzzle, profile) else Screening.ASK


def asks_why(question: str, language: Language) -> bool:
    """Whether a question asks for a reason."""
    return re.match(WORDINGS[language].why, question, re.IGNORECASE) is not None


def _repeats_story(question: str, puzzle: Puzzle, profile: Profile) -> bool:
    """By characters in `compat`, as published; by words in `strict`, where the whole story told back counts too."""
    if profile == "compat":
        text = question.replace("?", ".")
        return any(character_bleu(text, fact) > REPEATED for fact in puzzle.story_keys)
    asked = words(question, puzzle.language)
    if any(share(asked, words(fact, puzzle.language)) > REPEATED for fact in puzzle.story_keys):
        return True
    told = words(puzzle.story[:MAX_QUESTION], puzzle.language)
    return share(asked, told) > REPEATED and share(told, asked) > REPEATED
