"""The solver's function in protocol `tools`."""

from functools import partial

from environments.lateral_thinking.dataset import Language
from environments.lateral_thinking.host import Profile
from environments.lateral_thinking.prompt import CALL_TEXTS
from environments.lateral_thinking.reply import question_of
from proctor.tools import Arguments, Function, Toolset, arguments_schema

Question = str | None
"""A question; None where there is none."""


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
