"""Bugs to plant, each as what it replaces: a simulation that doesn't notice them proves nothing."""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from environments.types import Finish, FinishReason, Observation
from eval_client import attempt
from eval_client.attempt import AttemptEnd, Outcome
from eval_client.attempt_log import AttemptLog
from eval_client.core.retry import AttemptPolicy
from eval_client.store.store import Store
from task_server.placement import Placement
from task_server.sessions import Sessions
from task_server.turns import Lease, Reply, Turns
from tests.simulation.setting import KINDS


class Mutant(NamedTuple):
    """A bug: `owner`'s attribute `name` becomes `value`."""

    bug: str
    owner: Any
    name: str
    value: Any
    caught: str | tuple[str, ...]
    """The invariant that gives it away, or those that may."""
    kinds: Sequence[str] = KINDS
    """Faults that it has to do with, where others only seldom bring it out."""


NEVER_FREE = ("I3", "no progress")
_settle, _turn = AttemptLog.settle, AttemptLog.turn
_replied = Turns.replied


async def _settle_twice(self: AttemptLog, *args: Any) -> None:
    await _settle(self, *args)
    await _settle(self, *args)


_writing: list[asyncio.Task[None]] = []


async def _write_meanwhile(self: AttemptLog, *args: Any) -> None:
    _writing.append(asyncio.create_task(_turn(self, *args)))


def _apply_again(self: Turns, turn: int, reply: Reply) -> tuple[Turns, bool]:
    if turn == self.answered and reply == self.reply:
        return Turns(answered=self.answered + 1, reply=reply), True
    return _replied(self, turn, reply)


def _score_zero(outcome: Outcome, reason: FinishReason, error: object) -> AttemptEnd:
    return AttemptEnd(outcome=Outcome.FINISHED, finish=Finish(reason=FinishReason.INVALID_ACTION, score=0.0))


def _forget_only(self: Sessions, session_id: str) -> None:
    self._sessions.pop(session_id, None)


MUTANTS = (
    Mutant("a finish is written twice", AttemptLog, "settle", _settle_twice, "I1"),
    Mutant("a session's lease never ends", Lease, "expired", lambda self, now: False, NEVER_FREE, ["kill client"]),
    Mutant("a replay is taken whatever it observes", Observation, "digest", lambda self: "0", "I6", ["kill worker"]),
    Mutant("an answer is sent on before it is durable", AttemptLog, "turn", _write_meanwhile, "I5"),
    Mutant("a repeated turn is applied again", Turns, "replied", _apply_again, "I5"),
    Mutant("placement forgets who holds a session", Placement, "_holder", lambda self, session: None, "I5"),
    Mutant("attempts have no bound", AttemptPolicy, "wait_s", lambda self, made, chance: chance, "I4"),
    Mutant("a fault is scored as zero", attempt, "_fault", _score_zero, "I6"),
    Mutant("a resumed run forgets its journal", Store, "journal", lambda self, trial: (0, [], (0, 0)), "I2"),
    Mutant("an ended session plays on", Sessions, "_drop", _forget_only, ("I3", "I5")),
)
