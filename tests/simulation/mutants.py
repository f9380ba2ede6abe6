"""Bugs to plant, each as what it replaces: a simulation that doesn't notice them proves nothing."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from eval_client.core import schedule
from eval_client.core.capacity import CapacityLimits
from eval_client.core.events import AttemptOutcome
from eval_client.core.failure_detector import FailureDetector
from eval_client.core.flow import Pair
from eval_client.core.limits.shares import Quota, ShardState, divide
from eval_client.run import limit_exchange
from eval_client.run.limit_exchange import QuotaExchange
from eval_client.store import claims, journal, shards
from eval_client.store.member import Member, ShardMember
from eval_client.store.store import Store
from eval_client.store.tables import SETTLED, trial_table
from eval_client.trial import attempt
from eval_client.trial.attempt import AttemptEnd
from eval_client.trial.attempt_log import AttemptLog
from proctor.retry import RetryPolicy
from proctor.types import Finish, FinishReason, Observation
from task_server.controller.placement import Placement
from task_server.wire.turns import Lease, Reply, Turns
from task_server.worker.sessions import Sessions


class Mutant(NamedTuple):
    """A bug: `owner`'s attribute `name` becomes `value`."""

    bug: str
    owner: Any
    name: str
    value: Any
    caught: str | tuple[str, ...]
    """The invariant that gives it away, or those that may."""
    kinds: Sequence[str] | None = None
    """Faults that it has to do with, where others only seldom bring it out."""
    shared: bool = False
    """Whether it takes several clients to bring it out."""
    first: int = 0
    """The seed to begin with, where others before it do not show the bug, or take long to; all others follow."""


NEVER_FREE = ("I3", "no progress")
SILENCE = ("stop client", "cut client and store")
_settle, _turn = AttemptLog.settle, journal.Journal.turn
_replied = Turns.replied
_quota_exchange = QuotaExchange.__call__
_look = FailureDetector.look


async def _settle_twice(self: AttemptLog, *args: Any) -> None:
    await _settle(self, *args)
    await _settle(self, *args)


_writing: list[asyncio.Task[None]] = []


async def _write_meanwhile(self: journal.Journal, *args: Any) -> None:
    _writing.append(asyncio.create_task(_turn(self, *args)))


def _apply_again(self: Turns, turn: int, reply: Reply) -> tuple[Turns, bool]:
    if turn == self.answered and reply == self.reply:
        return Turns(answered=self.answered + 1, reply=reply), True
    return _replied(self, turn, reply)


def _score_zero(outcome: AttemptOutcome, reason: FinishReason, error: object) -> AttemptEnd:
    return AttemptEnd(outcome=AttemptOutcome.FINISHED, finish=Finish(reason=FinishReason.INVALID_ACTION, score=0.0))


def _claim_whatever(run: str, shard: int, pair: Pair, count: int) -> sa.Executable:
    t = trial_table.c
    waiting = sa.select(t.id).where(t.run == run, t.agent == pair[0], t.task == pair[1], t.holder != SETTLED)
    mine = trial_table.update().where(t.id.in_(waiting.order_by(t.id).limit(count)), t.run == run)
    return mine.values(holder=shard).returning(*claims._COLUMNS)


def _exchange_with_the_gone(self: QuotaExchange, snapshot: shards.ShardSnapshot) -> tuple[shards.Levels, ShardState]:
    gone = {-number: state for number, state in enumerate(snapshot.gone, 1)}
    return _quota_exchange(self, snapshot._replace(live={**snapshot.live, **gone}))


def _forget_what_others_spent(self: QuotaExchange, snapshot: shards.ShardSnapshot) -> tuple[shards.Levels, ShardState]:
    told = _quota_exchange(self, snapshot)
    self.elsewhere = {}
    return told


def _grant_what_is_fair(limit: int, shard: int, slices: Mapping[int, Quota]) -> int:
    return divide(limit, {number: slice.wanted for number, slice in slices.items()})[shard]


def _count_every_silence(self: FailureDetector, now: float, counters: Mapping[int, int]) -> list[int]:
    own, self.own = self.own, None
    silent = [shard for shard in _look(self, now, counters) if shard != own]
    self.own = own
    return silent


async def _be_sure_of_all(self: Member) -> None:
    return None


def _forget_only(self: Sessions, session_id: str) -> None:
    self._sessions.pop(session_id, None)


MUTANTS = (
    Mutant("a finish is written twice", AttemptLog, "settle", _settle_twice, "I1"),
    Mutant(
        "a session's lease never ends", Lease, "expired", lambda self, now: False, NEVER_FREE, ["kill client"], first=3
    ),
    Mutant(
        "a replay is taken whatever it observes",
        Observation,
        "digest",
        lambda *of: "0",
        "I6",
        ["kill worker"],
        first=6,
    ),
    Mutant("an answer is sent on before it is durable", journal.Journal, "turn", _write_meanwhile, "I5"),
    Mutant("a repeated turn is applied again", Turns, "replied", _apply_again, "I5"),
    Mutant("placement forgets who holds a session", Placement, "_holder", lambda self, session: None, "I5", first=83),
    Mutant(
        "attempts have no bound", schedule, "RetryPolicy", lambda max_tries, base_s: RetryPolicy(base_s=base_s), "I4"
    ),
    Mutant("a fault is scored as zero", attempt, "_fault", _score_zero, "I6"),
    Mutant("a resumed run forgets its journal", Store, "journal", lambda self, trial: (0, [], (0, 0)), "I2"),
    Mutant("an ended session plays on", Sessions, "_drop", _forget_only, ("I3", "I5")),
    Mutant("a fence isn't checked", journal, "hold_live", lambda *of: None, "FENCE", SILENCE, shared=True, first=76),
    Mutant(
        "a client asks before it knows that it lives",
        ShardMember,
        "ensure_lease",
        _be_sure_of_all,
        "FENCE",
        SILENCE,
        shared=True,
        first=710,
    ),
    Mutant(
        "a trial that one client holds is claimed by another",
        claims,
        "_claiming",
        _claim_whatever,
        "CLAIM",
        shared=True,
    ),
    Mutant(
        "a silent client's lease never ends",
        FailureDetector,
        "look",
        lambda *of: [],
        "no progress",
        ["kill client"],
        shared=True,
        first=268,
    ),
    Mutant(
        "an outage of the store counts as silence",
        FailureDetector,
        "look",
        _count_every_silence,
        "LOST",
        ["trouble with the disk"],
        shared=True,
        first=59,
    ),
    Mutant(
        "what a lost client held stays its own",
        shards,
        "_free",
        lambda *of: None,
        "no progress",
        ["kill client"],
        shared=True,
        first=231,
    ),
    Mutant(
        "a lost client's slices are not given back",
        QuotaExchange,
        "__call__",
        _exchange_with_the_gone,
        "no progress",
        ["kill client"],
        shared=True,
    ),
    Mutant(
        "a slice is granted that another holds",
        limit_exchange,
        "granted",
        _grant_what_is_fair,
        "LIMIT",
        shared=True,
        first=18,
    ),
    Mutant(
        "every client has the whole of each limit",
        CapacityLimits,
        "_bounded",
        lambda self, name, whole: whole,
        "LIMIT",
        shared=True,
        first=18,
    ),
    Mutant(
        "what others spent is not counted",
        QuotaExchange,
        "__call__",
        _forget_what_others_spent,
        "BUDGET",
        ["another client"],
        shared=True,
        first=304,
    ),
    Mutant(
        "the end comes while others still play",
        claims,
        "pairs_pending",
        lambda *of: set(),
        ("I4", "STATE"),
        shared=True,
    ),
)
