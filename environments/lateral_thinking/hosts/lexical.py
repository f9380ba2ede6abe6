"""The host without a model: it compares words, and is deterministic."""

from collections.abc import Sequence

from environments.lateral_thinking.dataset import Puzzle
from environments.lateral_thinking.host import Answer, Host, HostedGame, Profile, Ruling, eligible
from environments.lateral_thinking.hosts.negation import agree, asserted
from environments.lateral_thinking.reply import asks_why
from environments.lateral_thinking.text import sentences, share, words

COVERED = 0.5
"""The least share of words at which a text covers another."""
TOUCHED = 0.2
"""The least share of a question's words at which it is about the truth; below COVERED the answer is then no."""


class LexicalHost(Host):
    """Judges by the share of content words; for tests, demos and runs without a judge model."""

    name = "lexical"

    def game(self, puzzle: Puzzle, profile: Profile) -> HostedGame:
        return LexicalGame(puzzle, profile)


class LexicalGame(HostedGame):
    """Judges each question by itself, without memory."""

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
        """The answer by the truth: yes or no as the sentence most like the question agrees with it, else irrelevant."""
        overlap = share(asked, self._words(self._puzzle.truth))
        if overlap >= COVERED:
            parts = sentences(self._puzzle.truth) or [self._puzzle.truth]
            nearest = max(parts, key=lambda sentence: share(asked, self._words(sentence)))
            return "yes" if self._agree(question, nearest) else "no"
        return "no" if overlap >= TOUCHED else "irrelevant"

    def _words(self, text: str) -> frozenset[str]:
        return words(text, self._puzzle.language)

    def _agree(self, question: str, statement: str) -> bool:
        return agree(question, statement, self._puzzle.language)
