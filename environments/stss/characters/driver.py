"""What moves the background characters: five questions about one of them, asked of rules or of a model."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from environments.stss.dataset import Persona
from environments.stss.town.schedule import Commitment, DayPlan

SIDE_LIMIT = 8
"""Utterances of each side in a talk."""


class SpokenLine(NamedTuple):
    """One utterance."""

    speaker: str
    text: str


class Context(NamedTuple):
    """What a background character knows when it is asked something."""

    persona: Persona
    now: int
    """Minutes since the first midnight."""
    partner: str = ""
    lines: tuple[SpokenLine, ...] = ()
    """The talk so far."""
    doing: str = ""
    """The character's activity and where it is."""
    place: str = ""
    """The sector the character is in."""
    commitments: tuple[Commitment, ...] = ()
    memory: tuple[str, ...] = ()
    """What it remembers, the latest last."""


class Driver(ABC):
    """Answers for the background characters. Each call may raise EnvironmentFault."""

    name: str
    """What every finish says drove the town."""

    @abstractmethod
    async def day_plan(self, context: Context, day: int) -> DayPlan:
        """The day's sleep and rows."""

    @abstractmethod
    async def wants_to_talk(self, context: Context) -> str | None:
        """What the character says first to the partner it has come across, or None."""

    @abstractmethod
    async def reply(self, context: Context) -> tuple[str, bool]:
        """Its next utterance, and whether the talk ends with it."""

    @abstractmethod
    async def after_conversation(self, context: Context) -> tuple[Commitment, ...]:
        """What it has agreed to in the talk; an errand is two commitments in order."""

    @abstractmethod
    async def summary(self, context: Context) -> str:
        """What it remembers of the talk, in a sentence or two."""
