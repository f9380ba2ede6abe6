"""The judge, the user, and the others without a model: deterministic, needing nothing, and saying that they are rules.

Where a right reply is known, its facts decide; where none is, only the outer form of a reply can be looked at.
"""

import random
import re
from collections.abc import Mapping, Sequence
from statistics import median

from environments.simulbench.records import Dialogue, Exchange, Strategy, Task
from proctor.types import Message

FACTS_WEIGHT = 7
WEIGHTS = {"in its role": 1, "in its form": 1, "about the request": 2, "of its own": 3, "of fitting length": 2}
"""What the parts of a rating weigh; with facts, only the first two stand beside them."""
REQUEST_WORDS = 5
"""So many words of the request show that a reply is about it."""
USUAL_CHARS = 200
"""The length of a first reply, and what any reply may have."""
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
    """A rating from 1 to 10, in steps of 0.1; 1 for a blank response."""
    if not response.strip():
        return 1.0
    met = marks(history, response)
    weighed: list[tuple[float, float]] = [(WEIGHTS[name], float(met[name])) for name in WEIGHTS]
    if exchange is not None:
        weighed = [*weighed[:2], (FACTS_WEIGHT, _share_of_facts(history, response, exchange))]
    return round(1 + 9 * sum(weight * share for weight, share in weighed) / sum(weight for weight, _ in weighed), 1)


def marks(history: Sequence[Message], response: str) -> Mapping[str, bool]:
    """Which marks of a plausible reply a response has: the names of WEIGHTS."""
    asked, given = content_words(history[-1].content), content_words(response)
    usual = usual_length(history)
    return {
        "in its role": not _OUT_OF_ROLE.search(response),
        "in its form": not wants_block(history) or bool(_BLOCK.fullmatch(response.strip())),
        "about the request": len(asked & given) >= min(REQUEST_WORDS, len(asked)),
        "of its own": 2 * len(given - asked) >= len(given),
        "of fitting length": usual / 4 <= len(response) <= max(4 * usual, USUAL_CHARS),
    }


def better(history: Sequence[Message], one: str, other: str, exchange: Exchange | None) -> int:
    """1 where the first response is better, -1 where the second is, 0 where neither."""
    ratings = rate(history, one, exchange), rate(history, other, exchange)
    return (ratings[0] > ratings[1]) - (ratings[0] < ratings[1])


def challenging(dialogue: Dialogue) -> int:
    """The first turn, from 1, that was answered badly by its form; 0 where none was. A label stands above it."""
    if dialogue.challenging is not None:
        return dialogue.challenging
    messages = [line.message() for line in dialogue.messages]
    replies = range(1, len(messages), 2)
    return next((at // 2 + 1 for at in replies if rate(messages[:at], messages[at].content, None) < 8), 0)


def follow_up(task: Task, turn: int, seed: int) -> tuple[Strategy, str]:
    """What the user asks in a turn, from 2, and why: as the task's own dialogue has it, else a phrase by chance."""
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
    """The words of three letters and more, in small letters."""
    return frozenset(_WORD.findall(text.lower()))


def _share_of_facts(history: Sequence[Message], response: str, exchange: Exchange) -> float:
    """How many of the facts stand in the response, not counting where it only says the request again."""
    own = _flat(response).replace(_flat(history[-1].content), " ")
    return sum(bool(re.search(_whole(_flat(fact)), own)) for fact in exchange.facts) / len(exchange.facts)


def _flat(text: str) -> str:
    return " ".join(text.lower().split())


def _whole(fact: str) -> str:
    """A pattern that finds the fact where no letter or digit stands right beside it."""
    return rf"(?<!\w){re.escape(fact)}(?!\w)"
