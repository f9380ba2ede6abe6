"""How much an action resembles a command: sentence BLEU, smoothed as NLTK's method 4 (Chen and Cherry 2014)."""

import math
from collections import Counter
from collections.abc import Sequence

ORDERS = 4
LEAST = 0.01
"""A command is carried out for an action only if their similarity is larger (AgentBench v0.2)."""


class CommandCandidate:
    """A text that is compared with many commands."""

    def __init__(self, text: str) -> None:
        words = text.split()
        self._length = len(words)
        self._counts = [_grams(words, order) for order in range(1, ORDERS + 1)]

    def similarity(self, command: str) -> float:
        """From 0 to 1; 0 where the texts have no word in common."""
        reference = command.split()
        matches = [
            sum((_grams(reference, order) & _among(counts, reference, order)).values())
            for order, counts in enumerate(self._counts, 1)
        ]
        if not matches[0]:
            return 0.0
        total, missing = 0.0, 0
        for order, matched in enumerate(matches, 1):
            share = matched / max(1, self._length - order + 1)
            if not matched and self._length > 1:
                missing += 1
                share = math.log(self._length) / (5 * 2**missing) / max(1, self._length - order + 1)
            total += math.log(share) if share else 0.0
        longer = self._length > len(reference)
        return (1.0 if longer else math.exp(1 - len(reference) / self._length)) * math.exp(total / ORDERS)


def nearest(text: str, commands: Sequence[str]) -> tuple[str, float] | None:
    """The first of the commands that resemble a text most, and by how much; None where none does."""
    candidate = CommandCandidate(text)
    scores = [candidate.similarity(command) for command in commands]
    best = max(scores, default=0.0)
    return (commands[scores.index(best)], best) if best > LEAST else None


def _grams(words: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(words[at : at + order]) for at in range(len(words) - order + 1))


def _among(counts: Counter[tuple[str, ...]], reference: Sequence[str], order: int) -> Counter[tuple[str, ...]]:
    """The counts of those n-grams alone that the short reference has, so that a long candidate is read only once."""
    return Counter({gram: counts[gram] for gram in set(_grams(reference, order)) if gram in counts})
