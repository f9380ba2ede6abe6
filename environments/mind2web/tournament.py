"""The candidates' tournament: groups of five; each winner moves to the end of the line (AgentBench v0.2)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

Profile = Literal["compat", "strict"]
GROUP = 5


class Prediction(NamedTuple):
    """An element and an action `OPERATION value`; both empty if no element was chosen."""

    element: str = ""
    action: str = ""


class Tournament:
    """State of a tournament: the waiting candidates and the last winner.

    If all others were rejected, `strict` asks about the last candidate alone; `compat` drops it, as the published code
    does.
    """

    def __init__(self, candidates: Sequence[str], profile: Profile) -> None:
        self._line = list(candidates)
        self._winner: Prediction | None = None
        self._fewest = 1 if profile == "strict" else 2

    def group(self) -> tuple[str, ...]:
        """Removes the next candidates to ask about from the line; empty when the tournament is over."""
        if len(self._line) < (2 if self._winner else self._fewest):
            return ()
        group, self._line = tuple(self._line[:GROUP]), self._line[GROUP:]
        return group

    def choose(self, winner: Prediction) -> None:
        """Puts the winner of the group back in the line. If the agent rejects the whole group, do not call it."""
        self._winner = winner
        self._line.append(winner.element)

    @property
    def earlier(self) -> Prediction:
        """The last winner, even if a later group with it was rejected."""
        return self._winner or Prediction()

    @property
    def prediction(self) -> Prediction:
        """The outcome of a tournament that is over; empty if the last group was rejected."""
        return self.earlier if self._line else Prediction()
