"""The interface to the rules or the model that drive the background characters."""

from abc import ABC, abstractmethod
from typing import NamedTuple

from environments.stss.dataset import Persona
from environments.stss.invitation import SpokenLine
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


class TalkResult(NamedTuple):
    """What a talk came to, as the character took it."""

    commitments: tuple[Commitment, ...] = ()
    """What the character has agreed to; an errand is two of them in order."""
    invited_to: str = ""
    """What the partner asked the character to do; empty if nothing."""
    topic: str = ""
    """What the talk was about; empty if nothing in particular."""
    dropped: tuple[str, ...] = ()
    """What the character agreed to and can't keep, each with the reason."""


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
    async def after_conversation(self, context: Context) -> TalkResult:
        """What the talk came to."""

    @abstractmethod
    async def summary(self, context: Context) -> str:
        """The character's summary of the talk, in one or two sentences."""
