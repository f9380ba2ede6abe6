"""The candidates' tournament: groups of five, each winner goes back to the end of the line (AgentBench v0.2)."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

Profile = Literal["compat", "strict"]
GROUP = 5


class Prediction(NamedTuple):
    """An element and what to do with it, as `OPERATION value`; both empty where there is none."""

    element: str = ""
    action: str = ""


class Tournament:
    """The state of one: who waits, and who won last.

    `strict` asks about the last candidate alone, where all others were turned down; `compat` drops it, as published.
    """

    def __init__(self, candidates: Sequence[str], profile: Profile) -> None:
        self._line = list(candidates)
        self._winner: Prediction | None = None
        self._fewest = 1 if profile == "strict" else 2

    def group(self) -> tuple[str, ...]:
        """The candidates to ask about next, taken out of the line; empty when it is over."""
        if len(self._line) < (2 if self._winner else self._fewest):
            return ()
        group, self._line = tuple(self._line[:GROUP]), self._line[GROUP:]
        return group

    def choose(self, winner: Prediction) -> None:
        """One of the group goes on; where none does, nothing need be said."""
        self._winner = winner
        self._line.append(winner.element)

    @property
    def earlier(self) -> Prediction:
        """The winner so far, also where it has been turned down since."""
        return self._winner or Prediction()

    @property
    def prediction(self) -> Prediction:
        """The outcome, once it is over: nothing where the last group was turned down whole."""
        return self.earlier if self._line else Prediction()
