"""Parses answers of judges and users: ratings, verdicts and requests."""

import ast
import json
import re
from itertools import chain
from typing import Literal

from pydantic import BaseModel, Field, ValidationError

from environments.simulbench.records import STRATEGIES, Strategy
from proctor.json_objects import objects
from proctor.session.thoughts import without_thought

Profile = Literal["compat", "strict"]
Verdict = Literal["A", "B", "C"]
"""The better one of two responses; C is a tie."""
MAX_REQUEST_CHARS = 8_000
MAX_FENCES = 10
"""Number of fences that are searched for JSON."""

_MARK = re.compile(r"\[\[([^\[\]]*)\]\]")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_RATING = r"\s*([0-9]+(?:[.,][0-9]*)?)\s*(?:/\s*10\s*)?"
_RATING_MARK = re.compile(rf"\[\[{_RATING}\]\]")
_BETWEEN = r"[^\w\[]"
_AFTER_THE_WORD = re.compile(
    rf"\brating\b(?:{_BETWEEN}{{0,4}}\([^()\n]{{0,40}}\))?"
    rf"(?:{_BETWEEN}{{0,12}}(?:\b(?:is|of)\b{_BETWEEN}{{0,4}})?(?:\[\[{_RATING}\]\]|\[{_RATING}\](?!\]))"
    rf"|{_BETWEEN}{{0,8}}[:=]{_BETWEEN}{{0,8}}(?<!-){_RATING}(?![\w/]|[.,][0-9]|\s*(?:to|-|–|/)\s*[0-9]))",
    re.IGNORECASE,
)
_COMPAT = (re.compile(r"\[\[(\d++(?:\.\d*+)?)\]\]"), re.compile(r"\[(\d++(?:\.\d*+)?)\]"))
_LEADING_DIGIT = re.compile(r"(?:strategy)?\W{0,4}([1-4])\b", re.IGNORECASE)
_DIGIT = re.compile(r"\b([1-4])\b")
_VERDICTS: dict[str, Verdict] = {"A": "A", "B": "B", "C": "C", "tie": "C", "Tie": "C"}


class UnreadableAnswer(ValueError):
    """An answer can't be parsed; the message names the problem."""


def rating(text: str, profile: Profile) -> float:
    """A judge's rating. Raises UnreadableAnswer.

    `strict`: the last number, in brackets or not, after the word "Rating", else the last `[[number]]`. It must be from
    1 to 10; a decimal comma and "/10" after it are accepted. `compat`, as published: the first `[[number]]`, else the
    first `[number]`, a Python literal in any range.
    """
    if profile == "compat":
        found = next(filter(None, (pattern.search(text) for pattern in _COMPAT)), None)
        if found is None:
            raise UnreadableAnswer("no rating in double brackets")
        try:
            return float(ast.literal_eval(found[1]))
        except (SyntaxError, ValueError, OverflowError) as error:
            raise UnreadableAnswer("the rating is no number") from error
    text = _unescaped(without_thought(text))
    given = [number for groups in _AFTER_THE_WORD.findall(text) for number in groups if number]
    numbers = given or _RATING_MARK.findall(text)
    return _within([number.replace(",", ".").removesuffix(".") for number in numbers], 1, 10)


def verdict(text: str, profile: Profile) -> Verdict:
    """The better response. Raises UnreadableAnswer.

    `strict`: the last of `[[A]]`, `[[B]]`, `[[C]]`; `[[tie]]` is C. `compat`: A if `[[A]]` is anywhere in the text,
    else B, else C.
    """
    if profile == "compat":
        given = [_VERDICTS[letter] for letter in "ABC" if f"[[{letter}]]" in text]
    else:
        marks = [mark.strip() for mark in _MARK.findall(_unescaped(without_thought(text)))]
        given = [_VERDICTS[mark] for mark in reversed(marks) if mark in _VERDICTS]
    if not given:
        raise UnreadableAnswer("no [[A]], [[B]] or [[C]]")
    return given[0]


class UserRequest(BaseModel):
    """A user's next request and its strategy."""

    strategy: Strategy
    request: str = Field(min_length=1, max_length=MAX_REQUEST_CHARS)


class _User(BaseModel):
    user: dict[str, object]


def user_request(text: str) -> UserRequest:
    """A user's next request, from JSON with `user.strategy` and `user.request`, in a fence or not.

    A strategy is recognized by its number or a part of its name; else it is `other`. Raises UnreadableAnswer.
    """
    user = _parsed(text).user
    request = user.get("request")
    if not isinstance(request, str) or not request.strip():
        raise UnreadableAnswer("user.request holds no text")
    if len(request) > MAX_REQUEST_CHARS:
        raise UnreadableAnswer(f"user.request has more than {MAX_REQUEST_CHARS} characters")
    if re.search(r"[\ud800-\udfff]", request):
        raise UnreadableAnswer("user.request holds half a character")
    return UserRequest(strategy=_strategy(str(user.get("strategy", ""))), request=request.strip())


def unquoted(text: str) -> str:
    """The stripped text without a leading double quote and, if it had one, a trailing one, as published."""
    text = text.strip()
    return text[1:].removesuffix('"') if text.startswith('"') else text


def _unescaped(text: str) -> str:
    r"""The text without backslashes before brackets, which Markdown or LaTeX need: `\[\[8\]\]`."""
    return text.replace("\\[", "[").replace("\\]", "]")


def _within(given: list[str], least: int, most: int) -> float:
    if not given or not _NUMBER.fullmatch(given[-1].strip()):
        raise UnreadableAnswer("no number in double brackets")
    number = float(given[-1])
    if not least <= number <= most:
        raise UnreadableAnswer(f"{given[-1].strip()[:20]} is not from {least} to {most}")
    return number


def _strategy(name: str) -> Strategy:
    signs: tuple[tuple[Strategy, str], ...] = (
        ("dissatisfaction", "dissatisf|unsatisf|complain|correct"),
        ("next_step", "next|step|relat|follow"),
        ("harder", "hard|rare|difficult|challeng|complex"),
    )
    named = next((strategy for strategy, sign in signs if re.search(sign, name, re.IGNORECASE)), None)
    if (leading := _LEADING_DIGIT.match(name)) or (named is None and (leading := _DIGIT.search(name))):
        return STRATEGIES[int(leading[1]) - 1]
    return named or "other"


def _parsed(text: str) -> _User:
    """The first valid object in the whole text, the contents of its fences, and its balanced objects.

    Raises UnreadableAnswer with the error of the first of them that is JSON.
    """
    text = without_thought(text)
    error = None
    fences = [fence.partition("\n")[2] for fence in text.split("```", 2 * MAX_FENCES)[1::2]]
    for candidate in chain((text, *fences), filter(None, objects(text))):
        try:
            return _User.model_validate(json.loads(candidate, strict=False))
        except ValidationError as problem:
            first = problem.errors()[0]
            error = error or f"{'.'.join(map(str, first['loc'])) or 'JSON'}: {first['msg']}"
        except (ValueError, RecursionError):
            continue
    raise UnreadableAnswer(error or "no JSON")
