"""Bugs to plant, each as what it replaces: a simulation that doesn't notice them proves nothing."""

from collections.abc import Sequence
from typing import NamedTuple

from tests.unit.house.planting import Change


class Mutant(NamedTuple):
    """A bug, and how it shows."""

    bug: str
    change: Change
    caught: str | tuple[str, ...]
    """The invariant that gives it away, or those that may."""
    kinds: Sequence[str] | None = None
    """Faults that it has to do with, where others only seldom bring it out."""
    first: int = 0
    """The seed to begin with, where others before it do not show the bug, or take long to; all others follow."""


NEVER_FREE = ("I3", "no progress")
SECOND = ("stop client", "second client")

MUTANTS = (
    Mutant(
        "a finish is written twice",
        Change(
            "AttemptLog.settle",
            "self._progress.settled(pair, finish, cost.seconds)",
            "await self._journal.finish(trial, trial.attempts, url, finish, cost, outcome=outcome.value)\n"
            "self._progress.settled(pair, finish, cost.seconds)",
        ),
        "I1",
    ),
    Mutant(
        "a session's lease never ends",
        Change("Lease.expired", "now >= self.until", "False"),
        NEVER_FREE,
        ["kill client"],
        first=3,
    ),
    Mutant(
        "a replay is taken whatever it observes",
        Change("Observation.digest", "...", "return '0'"),
        "I6",
        ["kill worker"],
        first=6,
    ),
    Mutant(
        "an answer is sent on before it is durable",
        Change(
            "Journal.turn", "return self._put(...)", "return asyncio.sleep(0, asyncio.ensure_future(self._put(...)))"
        ),
        "I5",
    ),
    Mutant(
        "a repeated turn is applied again",
        Change("Turns.replied", "self, False", "Turns(answered=self.answered + 1, reply=reply), True"),
        "I5",
    ),
    Mutant("placement forgets who holds a session", Change("Placement._holder", "...", "return None"), "I5", first=83),
    Mutant(
        "attempts have no bound",
        Change("Schedule.__init__", "RetryPolicy(max_tries=attempts, base_s=...)", "RetryPolicy(base_s=...)"),
        "I4",
    ),
    Mutant(
        "a fault is scored as zero",
        Change("_fault", "Finish.fault(reason, str(failure))", "Finish(reason=FinishReason.INVALID_ACTION, score=0.0)"),
        "I6",
    ),
    Mutant("a resumed run forgets its journal", Change("Store.journal", "...", "return 0, [], Usage(0, 0)"), "I2"),
    Mutant("an ended session plays on", Change("Sessions._drop", "if session is None: ...", "return"), ("I3", "I5")),
    Mutant(
        "a fence isn't checked",
        Change("Journal.commit", "hold_live(connection, self._store.run, self._fence)", "None"),
        "FENCE",
        SECOND,
    ),
)
