"""The host of a game: answers questions and finds the key points that were hit."""

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Literal

from environments.lateral_thinking.dataset import Puzzle
from proctor.types import Value

Profile = Literal["compat", "strict"]
Answer = Literal["yes", "no", "irrelevant"]


class Ruling(Value):
    """What the host makes of one question."""

    answer: Answer
    said: str | None = None
    """The answer in the host's own words, where it has any."""
    hits: tuple[int, ...] = ()
    """The key points that were found, by their positions in the puzzle, from 0."""
    unreadable: int = 0
    """Replies of the host model that are neither of the answers it may give; they count as irrelevant."""


class HostedGame(ABC):
    """One game's host, with what it remembers of the game."""

    @abstractmethod
    async def rule(self, question: str, remaining: Sequence[int]) -> Ruling:
        """The answer to a question, and which of the remaining key points it hits. Raises EnvironmentFault."""


class Host(ABC):
    """Makes games; what all of them share lives as long as `lifespan`."""

    name: str
    """What every score says judged it."""

    @abstractmethod
    def game(self, puzzle: Puzzle, profile: Profile) -> HostedGame:
        """A new game."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """What the games share, from before the first to after the last."""
        yield


def eligible(puzzle: Puzzle, question: str, remaining: Sequence[int], profile: Profile) -> list[int]:
    """The key points a question may hit: in `compat` none longer than the question without its `?`, as published."""
    length = len(question.replace("?", ""))
    return [key for key in remaining if profile == "strict" or length >= len(puzzle.keys[key])]
