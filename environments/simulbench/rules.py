"""Judge and user by deterministic rules, without a model.

They compare a reply with the one that is known to be right. Where none is known, they can't tell right from wrong.
"""

import random
import re
from collections.abc import Mapping, Sequence
from statistics import median

from environments.simulbench.records import Exchange, Strategy, Task
from proctor.types import Message

RIGHT_WEIGHT = 7
WEIGHTS = {"in its role": 1, "in its form": 1, "about the request": 2, "of its own": 3, "of fitting length": 2}
"""Weights of the marks of a plausible reply; of a rating only the first two are parts, beside RIGHT_WEIGHT."""
REQUEST_WORDS = 5
"""Number of words of the request that make a reply relevant to it."""
USUAL_CHARS = 200
"""Expected length of a first reply, and a length that every reply may have."""
_OUT_OF_ROLE = re.compile(
    r"\bas an AI\b|\blanguage model\b|\bI(?:'m| am) sorry\b|\bI (?:can(?:'t|not)|am unable to)\b", re.IGNORECASE
)
_BLOCK = re.compile(r"```.*```", re.DOTALL)
_WORD = re.compile(r"\w{3,}")
_PIECE = re.compile(r"\w+|[^\w\s`]+")

_FOLLOW_UPS: tuple[tuple[Strategy, str], ...] = (
    ("dissatisfaction", "That is not what I asked for. Look at my last message again and give me a better answer."),
    ("next_step", "Good. Go on from here with the next step that follows from what we have."),
    ("harder", "Now the same for the rarest and hardest case that you can think of, with all of its details."),
    ("other", "Give me the whole of it once more, in the form that I asked for at the start."),
)


def rate(history: Sequence[Message], response: str, exchange: Exchange | None) -> float:
    """The rating of a response, a whole number from 1 to 10; above 3 only if it is known to be right."""
    if not response.strip():
        return 1.0
    met = marks(history, response)
    right = exchange is not None and _is_right(response, exchange)
    return float(1 + met["in its role"] + met["in its form"] + RIGHT_WEIGHT * right)


def likeness(history: Sequence[Message], response: str) -> int:
    """How like a right reply a response looks, whether it is one or not: from 0 to 9, the weights of its marks."""
    return sum(WEIGHTS[name] * met for name, met in marks(history, response).items())


def marks(history: Sequence[Message], response: str) -> Mapping[str, bool]:
    """Whether a response has each mark of a plausible reply; keys are those of WEIGHTS."""
    requested, given = content_words(history[-1].content), content_words(response)
    usual = usual_length(history)
    return {
        "in its role": not _OUT_OF_ROLE.search(response),
        "in its form": not wants_block(history) or bool(_BLOCK.fullmatch(response.strip())),
        "about the request": len(requested & given) >= min(REQUEST_WORDS, len(requested)),
        "of its own": 2 * len(given - requested) >= len(given),
        "of fitting length": usual / 4 <= len(response) <= max(4 * usual, USUAL_CHARS),
    }


def better(history: Sequence[Message], one: str, other: str, exchange: Exchange | None) -> int:
    """1 if the first response has the higher rating, -1 if the second has, 0 if they are equal.

    Where no right reply is known, likeness decides.
    """
    if exchange is None:
        ratings: tuple[float, float] = likeness(history, one), likeness(history, other)
    else:
        ratings = rate(history, one, exchange), rate(history, other, exchange)
    return (ratings[0] > ratings[1]) - (ratings[0] < ratings[1])


def follow_up(task: Task, turn: int, seed: int) -> tuple[Strategy, str]:
    """The user's strategy and request in a turn (from 2): those of the task's dialogue, else a random phrase."""
    if task.exchanges:
        exchange = task.exchanges[turn - 1]
        return exchange.strategy or "other", exchange.request
    return random.Random(f"{task.id}:{seed}:{turn}").choice(_FOLLOW_UPS)


def wants_block(history: Sequence[Message]) -> bool:
    """Whether the task asks for replies in a code block."""
    first = next((message.content for message in history if message.role == "user"), "")
    return "code block" in first.lower()


def usual_length(history: Sequence[Message]) -> float:
    """The median length, in characters, of the replies so far."""
    return median([len(message.content) for message in history if message.role == "assistant"] or [USUAL_CHARS])


def content_words(text: str) -> frozenset[str]:
    """The words of three or more characters, in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def _is_right(response: str, exchange: Exchange) -> bool:
    """Whether a response is the right reply, or a part of it with all facts: nothing else, in the same order."""
    said, right = _pieces(response), iter(_pieces(exchange.answer))
    return all(piece in right for piece in said) and all(_holds(said, _pieces(fact)) for fact in exchange.facts)


def _pieces(text: str) -> list[str]:
    """The words, numbers and signs of a text in lower case, without the marks of a code block."""
    return _PIECE.findall(text.lower())


def _holds(said: Sequence[str], fact: Sequence[str]) -> bool:
    return any(said[at : at + len(fact)] == fact for at in range(len(said) - len(fact) + 1))
