"""The host without a model: compares words, needs nothing, always says the same."""

from collections.abc import Sequence

from environments.lateral_thinking.dataset import Puzzle
from environments.lateral_thinking.host import Answer, Host, HostedGame, Profile, Ruling, eligible
from environments.lateral_thinking.hosts.negation import asserted, negated
from environments.lateral_thinking.reply import asks_why
from environments.lateral_thinking.text import sentences, share, words

COVERED = 0.5
"""The share of words from which on a text says what another says."""
TOUCHED = 0.2
"""The share of a question's words from which on it is about the truth, though it isn't true."""


class LexicalHost(Host):
    """Rules by the share of content words; for tests, demos and runs without a judge model."""

    name = "lexical"

    def game(self, puzzle: Puzzle, profile: Profile) -> HostedGame:
        return LexicalGame(puzzle, profile)


class LexicalGame(HostedGame):
    """Remembers nothing: a question is ruled by itself."""

    def __init__(self, puzzle: Puzzle, profile: Profile) -> None:
        self._puzzle = puzzle
        self._profile = profile

    async def rule(self, question: str, remaining: Sequence[int]) -> Ruling:
        if asks_why(question, self._puzzle.language):
            return Ruling(answer="irrelevant")
        asked = self._words(asserted(question, self._puzzle.language))
        keys = self._puzzle.keys
        covered = [key for key in remaining if share(self._words(keys[key]), asked) >= COVERED]
        agreed = [key for key in covered if self._agree(question, keys[key])]
        if not covered:
            return Ruling(answer=self._by_truth(question, asked))
        hits = eligible(self._puzzle, question, agreed, self._profile)
        return Ruling(answer="yes" if agreed else "no", hits=tuple(hits[:1] if self._profile == "compat" else hits))

    def _by_truth(self, question: str, asked: frozenset[str]) -> Answer:
        """Yes or no by the sentence of the truth that has most in common with the question."""
        overlap = share(asked, self._words(self._puzzle.truth))
        if overlap >= COVERED:
            told = sentences(self._puzzle.truth) or [self._puzzle.truth]
            nearest = max(told, key=lambda sentence: share(asked, self._words(sentence)))
            return "yes" if self._agree(question, nearest) else "no"
        return "no" if overlap >= TOUCHED else "irrelevant"

    def _words(self, text: str) -> frozenset[str]:
        return words(text, self._puzzle.language)

    def _agree(self, one: str, other: str) -> bool:
        return negated(one, self._puzzle.language) == negated(other, self._puzzle.language)
