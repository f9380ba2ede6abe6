"""Bugs to plant, each as what it replaces: a simulation that doesn't notice them proves nothing."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from environments.types import Finish, FinishReason, Observation
from eval_client import attempt, journal, runner
from eval_client.attempt import AttemptEnd, Outcome
from eval_client.episode import Episode, Past
from eval_client.records import Turn
from eval_client.retry import AttemptPolicy
from eval_client.runner import Runner
from eval_client.store import Store
from task_server.controller import Controller
from task_server.placement import Placement
from task_server.reporting import Contact
from task_server.sessions import Sessions
from task_server.turns import Lease, Reply, Turns


class Mutant(NamedTuple):
    """A bug: `owner`'s attribute `name` becomes `value`."""

    bug: str
    owner: Any
    name: str
    value: Any
    caught: str
    """How one of the problems begins that give it away."""


_settle, _begin_digest = Runner._settle, Observation.digest
_init_controller = Controller.__init__
_write_turn = Runner._turn


async def _settle_twice(self: Runner, *args: Any) -> None:
    await _settle(self, *args)
    await _settle(self, *args)


async def _turn_unwritten(self: Runner, owed: Any, turn: Turn) -> None:
    self._writing = getattr(self, "_writing", [])  # type: ignore[attr-defined]
    import asyncio

    self._writing.append(asyncio.create_task(_write_turn(self, owed, turn)))  # type: ignore[attr-defined]


def _applied_again(self: Turns, turn: int, reply: Reply) -> tuple[Turns, bool]:
    if turn == self.answered and reply == self.reply:
        return Turns(answered=self.answered + 1, reply=reply), True
    return _replied(self, turn, reply)


_replied = Turns.replied


def _unsettled(self: Controller, *args: Any, **options: Any) -> None:
    _init_controller(self, *args, **{**options, "settle_s": 0.0})


def _scored_fault(outcome: Outcome, reason: FinishReason, error: object) -> AttemptEnd:
    return AttemptEnd(outcome=Outcome.FINISHED, finish=Finish(reason=FinishReason.INVALID_ACTION, score=0.0))


def _nothing_recalled(self: Store, trial: int) -> tuple[int, list[Turn], tuple[int, int]]:
    return 0, [], (0, 0)


def _same_fence(self: Store) -> int:
    return 0


def _at_once(self: Sessions, session_id: str) -> None:
    self._sessions.pop(session_id, None)


MUTANTS = (
    Mutant("a finish is written twice", Runner, "_settle", _settle_twice, "I1"),
    Mutant("a session's lease never ends", Lease, "expired", lambda self, now: False, "I3"),
    Mutant("a replay is taken whatever it observes", Observation, "digest", lambda self: "0", "I6"),
    Mutant("an answer is sent on before it is durable", Runner, "_turn", _turn_unwritten, "I5"),
    Mutant("a repeated turn is applied again", Turns, "replied", _applied_again, ""),
    Mutant("placement forgets who holds a session", Placement, "_holder", lambda self, session: None, ""),
    Mutant("a controller places before it knows its workers", Controller, "__init__", _unsettled, "I5"),
    Mutant("attempts have no bound", AttemptPolicy, "wait_s", lambda self, made, chance: chance, "I4"),
    Mutant("a fault is scored as zero", attempt, "_fault", _scored_fault, "I6 I7"),
    Mutant("a resumed run forgets its journal", Store, "journal", _nothing_recalled, ""),
    Mutant("a client that was superseded still writes", Store, "take_over", _same_fence, ""),
    Mutant("a worker cut off goes on with its sessions", Contact, "lost", lambda self, now: False, "I5"),
    Mutant("an ended session plays on", Sessions, "_drop", _at_once, "I3"),
)
