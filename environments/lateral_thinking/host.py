"""The host of a game: it answers questions, and finds the key points that they hit."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

from environments.lateral_thinking.dataset import Puzzle
from proctor.types import Value

Profile = Literal["compat", "strict"]
Answer = Literal["yes", "no", "irrelevant"]


class Ruling(Value):
    """The host's judgement of one question."""

    answer: Answer
    reply: str | None = None
    """The host model's reply; None for a host without a model."""
    hits: tuple[int, ...] = ()
    """The key points that were found, by their positions in the puzzle, from 0."""
    unreadable: int = 0
    """The number of replies of the host model that are none of the allowed answers; they count as irrelevant."""


class HostedGame(ABC):
    """The host of one game, with its memory of the game."""

    @abstractmethod
    async def rule(self, question: str, remaining: Sequence[int]) -> Ruling:
        """The answer to a question, and the remaining key points that it hits. Raises EnvironmentFault."""


class Host(ABC):
    """Makes the hosts of games; what they share exists during `lifespan`."""

    name: str
    """Recorded with every score: who judged."""

    @abstractmethod
    def game(self, puzzle: Puzzle, profile: Profile) -> HostedGame:
        """The host of a new game."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Holds what the games share, from before the first to after the last."""
        yield


def eligible(puzzle: Puzzle, question: str, remaining: Sequence[int], profile: Profile) -> list[int]:
    """The key points that a question may hit: in `compat` none longer than the question without `?`, as published."""
    length = len(question.replace("?", ""))
    return [key for key in remaining if profile == "strict" or length >= len(puzzle.keys[key])]
