"""What of a reply or call is its question, and which questions are answered by a hint."""

import re
from enum import StrEnum
from functools import partial

from environments.lateral_thinking.dataset import Language, Puzzle
from environments.lateral_thinking.host import Profile
from environments.lateral_thinking.prompt import CALL_TEXTS, SOLVER_TEXTS
from environments.lateral_thinking.text import character_bleu, share, words
from proctor.tools import Arguments, Function, Toolset, arguments_schema
from proctor.types import ParsedAction

Question = str | None
"""A question; None where there is none."""
MAX_QUESTION = 2_000
"""Characters of a question that are read."""
REPEATED = 0.85
"""The similarity above which a question repeats a fact of the story."""


class Screening(StrEnum):
    """ASK sends a question to the host; each other value is the name of the hint that answers it."""

    ASK = "ask"
    GO_ON = "go_on"
    IN_STORY = "in_story"
    GUESS = "guess"


def question_of(reply: str, profile: Profile) -> str | None:
    """The question in a reply, at most MAX_QUESTION characters; None where there is none.

    In `compat` it is the first line, stripped, which may be empty, of a reply that is not; in `strict` the first line
    that is not blank.
    """
    text = reply if profile == "compat" else reply.strip()
    if not text:
        return None
    text = text.split("\n", 1)[0].strip()
    return text[:MAX_QUESTION].encode(errors="replace").decode()


def shown(question: str | None) -> ParsedAction:
    """A question for readers of a trial."""
    return ParsedAction(problem="no question") if question is None else ParsedAction(kind="question", text=question)


def screen(question: str, puzzle: Puzzle, profile: Profile) -> Screening:
    """ASK, or the hint that answers a question. In `compat` a question for a reason is asked, as published."""
    if any(phrase in question for phrase in SOLVER_TEXTS[puzzle.language].forbidden):
        return Screening.GO_ON
    if profile == "strict" and asks_why(question, puzzle.language):
        return Screening.GUESS
    return Screening.IN_STORY if _repeats_story(question, puzzle, profile) else Screening.ASK


def asks_why(question: str, language: Language) -> bool:
    """Whether a question asks for a reason."""
    return re.match(SOLVER_TEXTS[language].why, question, re.IGNORECASE) is not None


def _repeats_story(question: str, puzzle: Puzzle, profile: Profile) -> bool:
    """Compares characters in `compat`, as published; words in `strict`, where repeating the whole story counts too."""
    if profile == "compat":
        text = question.replace("?", ".")
        return any(character_bleu(text, fact) > REPEATED for fact in puzzle.story_keys)
    asked = words(question, puzzle.language)
    if any(share(asked, words(fact, puzzle.language)) > REPEATED for fact in puzzle.story_keys):
        return True
    story = words(puzzle.story[:MAX_QUESTION], puzzle.language)
    return share(asked, story) > REPEATED and share(story, asked) > REPEATED


def toolset(language: Language, profile: Profile) -> Toolset[Question]:
    """`ask`, described in a puzzle's language; it reads a question as protocol `text` reads a reply."""
    texts = CALL_TEXTS[language]
    parameters = arguments_schema(question={"type": "string", "description": texts.question})
    return Toolset((Function("ask", texts.ask, parameters, partial(_asked, profile), _arguments),))


def _asked(profile: Profile, given: Arguments) -> Question:
    question = question_of(str(given["question"]), profile)
    if question is None:
        raise ValueError("question is blank")
    return question


def _arguments(question: Question) -> Arguments | None:
    return None if question is None else {"question": question}
