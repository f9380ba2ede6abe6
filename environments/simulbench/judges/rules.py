"""Judge, user and author by deterministic rules, without a model.

If a right reply is known, its facts decide the rating; else only the form of a reply is rated.
"""

import random
import re
from collections.abc import Mapping, Sequence
from statistics import median

from environments.simulbench.records import Dialogue, Exchange, Strategy, Task
from proctor.types import Message

FACTS_WEIGHT = 7
WEIGHTS = {"in its role": 1, "in its form": 1, "about the request": 2, "of its own": 3, "of fitting length": 2}
"""Weights of the parts of a rating; with known facts only the first two parts count besides them."""
REQUEST_WORDS = 5
"""Number of words of the request that make a reply relevant to it."""
USUAL_CHARS = 200
"""Expected length of a first reply, and a length that every reply may have."""
_OUT_OF_ROLE = re.compile(
    r"\bas an AI\b|\blanguage model\b|\bI(?:'m| am) sorry\b|\bI (?:can(?:'t|not)|am unable to)\b", re.IGNORECASE
)
_BLOCK = re.compile(r"```.*```", re.DOTALL)
_WORD = re.compile(r"\w{3,}")

_FOLLOW_UPS: tuple[tuple[Strategy, str], ...] = (
    ("dissatisfaction", "That is not what I asked for. Look at my last message again and give me a better answer."),
    ("next_step", "Good. Go on from here with the next step that follows from what we have."),
    ("harder", "Now the same for the rarest and hardest case that you can think of, with all of its details."),
    ("other", "Give me the whole of it once more, in the form that I asked for at the start."),
)


def rate(history: Sequence[Message], response: str, exchange: Exchange | None) -> float:
    """The rating of a response, from 1 to 10 in steps of 0.1; 1 for a blank one."""
    if not response.strip():
        return 1.0
    met = marks(history, response)
    weighed: list[tuple[float, float]] = [(WEIGHTS[name], float(met[name])) for name in WEIGHTS]
    if exchange is not None:
        weighed = [*weighed[:2], (FACTS_WEIGHT, _share_of_facts(history, response, exchange))]
    return round(1 + 9 * sum(weight * share for weight, share in weighed) / sum(weight for weight, _ in weighed), 1)


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
    """1 if the first response has the higher rating, -1 if the second has, 0 if they are equal."""
    ratings = rate(history, one, exchange), rate(history, other, exchange)
    return (ratings[0] > ratings[1]) - (ratings[0] < ratings[1])


def challenging(dialogue: Dialogue) -> int:
    """The labelled challenging turn. Without a label, the first turn (from 1) with a rating below 8; 0 for none."""
    if dialogue.challenging is not None:
        return dialogue.challenging
    messages = [line.message() for line in dialogue.messages]
    replies = range(1, len(messages), 2)
    return next((at // 2 + 1 for at in replies if rate(messages[:at], messages[at].content, None) < 8), 0)


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


def _share_of_facts(history: Sequence[Message], response: str, exchange: Exchange) -> float:
    """Fraction of the facts in the response after the text of the request is removed from it."""
    own = _flat(response).replace(_flat(history[-1].content), " ")
    return sum(bool(re.search(_whole(_flat(fact)), own)) for fact in exchange.facts) / len(exchange.facts)


def _flat(text: str) -> str:
    return " ".join(text.lower().split())


def _whole(fact: str) -> str:
    """A pattern for the fact with no letter or digit directly before or after it."""
    return rf"(?<!\w){re.escape(fact)}(?!\w)"
