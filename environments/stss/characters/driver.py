"""Interface to the rules or the model that drive the background characters."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from environments.stss.dataset import Persona
from environments.stss.hearing.slots import SpokenLine
from environments.stss.town.schedule import Commitment, DayPlan

SIDE_LIMIT = 8
"""Utterances of each side in a talk."""


class Context(NamedTuple):
    """A background character's situation and memory."""

    persona: Persona
    now: int
    """Minutes since the first midnight."""
    partner: str = ""
    lines: tuple[SpokenLine, ...] = ()
    """The talk so far."""
    doing: str = ""
    """The character's activity."""
    place: str = ""
    """The sector the character is in."""
    commitments: tuple[Commitment, ...] = ()
    memory: tuple[str, ...] = ()
    """Summaries of earlier talks, latest last."""


class Driver(ABC):
    """Decides for the background characters. Each method may raise EnvironmentFault."""

    name: str
    """Name of the driver in every finish's detail."""

    @abstractmethod
    async def day_plan(self, context: Context, day: int) -> DayPlan:
        """The character's plan of a day (0 or 1)."""

    @abstractmethod
    async def wants_to_talk(self, context: Context) -> str | None:
        """The character's first utterance to a partner nearby; None if it does not speak first."""

    @abstractmethod
    async def reply(self, context: Context) -> tuple[str, bool]:
        """The character's next utterance, and whether the talk ends with it."""

    @abstractmethod
    async def after_conversation(self, context: Context) -> tuple[Commitment, ...]:
        """The character's commitments from the talk; an errand is two of them in order."""

    @abstractmethod
    async def summary(self, context: Context) -> str:
        """The character's summary of the talk, in one or two sentences."""
