"""Plays a run's owed trials: the flow says what starts, every event that frees something asks it again."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from eval_client.core.flow import Pair
from eval_client.core.progress import Progress, RunResult
from eval_client.core.retry import AttemptPolicy
from eval_client.endpoints.endpoints import Endpoints
from eval_client.plan import Plan, trial_seed
from eval_client.run.capacity import CapacityLimits
from eval_client.store.connection import retry_until_available
from eval_client.store.journal import Journal
from eval_client.store.member import Member
from eval_client.store.records import Trial
from eval_client.trial.attempt import AttemptEnd, Outcome, attempt
from eval_client.trial.attempt_log import AttemptLog
from eval_client.trial.episode import Episode, SessionServer, TrialHistory
from eval_client.trial.isolation import Isolation
from eval_client.trial.pending_trial import PendingTrial
from eval_client.trial.traces import Traces
from proctor.types import Finish, FinishReason
from task_server.wire.messages import Started

log = logging.getLogger(__name__)

PUT_BACK_S = 1.0
"""A trial that found no free slot waits this long; another client has taken it."""


class Runner:
    """One run, from its owed trials to the last final row. Use it once."""

    def __init__(
        self,
        *,
        plan: Plan,
        digests: Mapping[str, str],
        member: Member,
        journal: Journal,
        server: SessionServer,
        endpoints: Endpoints,
        progress: Progress,
        end_session: Callable[[str, str], None],
    ) -> None:
        self.plan, self.progress, self.endpoints = plan, progress, endpoints
        self.digests = digests
        """task -> the digest that the run began with"""
        self._store, self._member = member.store, member
        self._server, self._end_session = server, end_session
        self._policy = AttemptPolicy(plan.limits.attempts)
        self._isolation = Isolation(plan.limits.patience_s)
        self._owed: dict[Pair, deque[PendingTrial]] = {}
        self._playing: set[asyncio.Task[None]] = set()
        self._sessions: dict[str, str] = {}
        self._traces = Traces(member.store.run)
        self._attempts = AttemptLog(journal, progress, self._traces, digests, endpoints.spend)
        self._pausing = 0
        self._idle = asyncio.Event()
        self.abandoned = False
        self.stopped: str | None = None
        self.refused: dict[str, str] = {}
        """agent -> why its endpoint refuses it"""
        self.unreachable: set[str] = set()
        """Tasks that this client has waited for too long, until the task server offers them again."""
        self.given_up: frozenset[str] = frozenset()
        """Tasks that no other client of the run can reach either."""
        self.returned: list[Trial] = []
        """What was taken and is not played here, for others to play."""
        self.on_need: Callable[[], None] = lambda: None
        """Called when a pair has as few trials waiting as `low` says, and when nothing is left to do."""
        self.free: Mapping[Pair, int] = {}
        """Trials that nobody has taken yet, and that this client would play."""
        self.low: dict[Pair, int] = {}
        self.on_stop: Callable[[bool], None] = lambda at_once: None
        """Called when nothing more is started (False), and when all is stopped (True)."""
        self._more_to_come = not member.alone
        self._error: BaseException | None = None
        self.capacity_limits = CapacityLimits(plan, endpoints, alone=member.alone)
        self.flow = self.capacity_limits.flow

    async def run(self, owed: Sequence[Trial]) -> RunResult:
        """Play everything owed. Raises Fenced when another client has taken the run over."""
        self.take(owed)
        try:
            await self._idle.wait()
        finally:
            await self._abandon()
        if self._error is not None:
            raise self._error
        return RunResult(self.stopped, self.refused, self.abandoned)

    def take(self, trials: Sequence[Trial]) -> None:
        """Play these too. Those that were begun come first: they may hold slots."""
        for trial in sorted(trials, key=lambda trial: trial.attempts == 0):
            self.flow.owe(self._wait_in_line(PendingTrial(trial, TrialHistory(), begun=trial.attempts > 0)))
        self._pump()

    def take_no_more(self) -> None:
        """Nothing is owed but what was taken."""
        self._more_to_come = False
        self._pump()

    def waiting(self) -> dict[Pair, int]:
        """The trials that were taken and wait to be started."""
        return {pair: len(waiting) for pair, waiting in self._owed.items() if waiting}

    def startable(self) -> dict[Pair, int]:
        """The trials that could be started if there were slots."""
        waiting = self.waiting()
        return {pair: waiting.get(pair, 0) + self.free.get(pair, 0) for pair in {*waiting, *self.free}}

    @property
    def quiet(self) -> bool:
        """Whether nothing is played, and nothing waits."""
        return not (self._playing or self._pausing or any(self._owed.values()))

    def fail(self, error: BaseException) -> None:
        """Stop at once; `run` raises this."""
        self._error = self._error or error
        self.abandon(str(error))

    def drain(self, why: str) -> None:
        """Start nothing more; what is under way is played to its end."""
        self.stopped = self.stopped or why
        self.progress.draining = True
        for pair in self._owed:
            self._return(pair)
        self.on_stop(self.abandoned)
        self._pump()

    def abandon(self, why: str) -> None:
        """Stop at once. What is journalled is resumed from there."""
        self.abandoned = True
        self.drain(why)
        self._idle.set()

    def limit_task(self, task: str, capacity: int, waiting: str | None, total: int) -> None:
        """The task server can hold this many sessions of a task for us, and `total` for all clients."""
        self.capacity_limits.limit_task(task, capacity, total)
        if waiting is None:
            self.unreachable.discard(task)
            self.given_up -= {task}
            self.progress.task_waits.pop(task, None)
        else:
            self.progress.task_waits[task] = waiting
        self._pump()

    def endpoint_limits_changed(self) -> None:
        """Take over what the endpoints can bear now."""
        self.capacity_limits.endpoints_changed()
        self._pump()

    def grant(self, slices: Mapping[str, int]) -> None:
        """This client's slices of the limits that it shares with others."""
        self.capacity_limits.grant(slices)
        self._pump()

    def sessions(self) -> dict[str, list[str]]:
        """worker URL -> the live sessions it holds for us, to be renewed."""
        by_url: dict[str, list[str]] = {}
        for session, url in self._sessions.items():
            by_url.setdefault(url, []).append(session)
        return by_url

    def under_way(self, task: str) -> int:
        """How many trials of a task are being played."""
        return sum(count for (_, of), count in self.progress.running.items() if of == task)

    async def give_up_task(self, task: str, cause: str) -> None:
        """Leave all that a task still owes unscored; while other clients may reach the task, hand it to them."""
        self.unreachable.add(task)
        for pair, waiting in list(self._owed.items()):
            if pair[1] == task and waiting:
                if self._member.alone or task in self.given_up:
                    await self._give_up_pair(pair, cause)
                else:
                    self._return(pair)
        self._pump()

    async def _give_up_pair(self, pair: Pair, cause: str) -> None:
        self.flow.drop(pair)
        given_up = list(self._owed[pair])
        self._owed[pair].clear()
        self._pausing += len(given_up)  # they are nobody else's yet
        try:
            await asyncio.gather(*(self._give_up(owed, cause) for owed in given_up))
        finally:
            self._pausing -= len(given_up)

    async def _give_up(self, owed: PendingTrial, cause: str) -> None:
        await self._recall(owed)
        await self._attempts.settle(owed, None, Finish.fault(FinishReason.TASK_ERROR, cause))

    async def _recall(self, owed: PendingTrial) -> None:
        """Read what an earlier client left of a trial, whenever the store can be read."""
        if owed.begun:
            await retry_until_available(owed.recall, self._store, aside=False)

    def _wait_in_line(self, owed: PendingTrial) -> Pair:
        pair = (owed.trial.agent, owed.trial.task)
        self._owed.setdefault(pair, deque()).append(owed)
        return pair

    def _pump(self) -> None:
        """Start whatever may start, and notice when nothing is left."""
        if self.stopped is None:
            for pair in self.flow.start():
                self._start(pair, self._owed[pair].popleft())
                if len(self._owed[pair]) <= self.low.get(pair, -1):
                    self.on_need()
        if not self._playing and (self.stopped is not None or self.quiet):
            if self.stopped is None and self._more_to_come:
                self.on_need()
            else:
                self._idle.set()

    def _start(self, pair: Pair, owed: PendingTrial) -> None:
        self.progress.running[pair] = self.progress.running.get(pair, 0) + 1
        task = asyncio.create_task(self._play(pair, owed), name=f"trial {owed.trial.id}")
        self._playing.add(task)
        task.add_done_callback(lambda _: self._ended(pair, task))

    def _ended(self, pair: Pair, task: asyncio.Task[None]) -> None:
        self._playing.discard(task)
        self.progress.running[pair] -= 1
        self.flow.release(pair)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)
        self._pump()

    async def _play(self, pair: Pair, owed: PendingTrial) -> None:
        """One attempt, apart from others where what is known of it asks for that."""
        await self._recall(owed)
        last_try = owed.attempts_made == self.plan.limits.attempts - 1
        async with self._isolation.entered(suspect=owed.lost_worker, last_try=last_try):
            await self._attempt(pair, owed)

    async def _attempt(self, pair: Pair, owed: PendingTrial) -> None:
        """One attempt, and what follows from how it ended."""
        await self._attempts.begin(owed)
        session, end = str(owed.session), AttemptEnd(outcome=Outcome.PUT_BACK)
        self._traces.enter(owed.trial, session)
        try:
            end = await attempt(self._episode(owed, session))
        finally:
            url = self._sessions.pop(session, "")
            if end.finish is None or end.finish.reason.is_fault:
                self._end_session(url, session)
        if kind := end.fault():
            log.info("attempt %d: %s: %s", owed.trial.attempts, kind, end.cause)
            self.progress.count_fault(pair, kind)
        recalled, owed.recalled = owed.recalled, False
        match end.outcome:
            case Outcome.REFUSED:
                self.returned.append(owed.trial)
                self._refuse(owed.trial.agent, end.cause)
            case Outcome.BUDGET:
                self.returned.append(owed.trial)
                self.drain(end.cause)
            case Outcome.PUT_BACK:
                self._pause(owed, PUT_BACK_S)
            case Outcome.LOST if recalled:
                await self._attempts.end(owed, end.outcome, end.cause, url)
                owed.session = None
                self._pause(owed, 0.0)
            case _:
                await self._conclude(owed, url, end)

    def _episode(self, owed: PendingTrial, session: str) -> Episode:
        trial = owed.trial

        def started(reply: Started) -> None:
            self._sessions[session] = reply.url

        return Episode(
            trial=trial,
            seed=trial_seed(self.plan.seed, trial.task, trial.sample, trial.epoch),
            digest=self.digests[trial.task],
            session=session,
            trial_history=owed.trial_history,
            model=self.endpoints.model(trial.agent),
            server=self._server,
            limits=self.plan.limits.trial,
            write_turn=lambda turn: self._attempts.turn(owed, turn),
            reply_log=self._attempts.replies(owed),
            begun=owed.recalled,
            on_started=started,
        )

    async def _conclude(self, owed: PendingTrial, url: str, end: AttemptEnd) -> None:
        """The final row, or another attempt."""
        assert end.finish is not None
        owed.made_an_attempt(end.outcome)
        retry = end.finish.reason is FinishReason.TASK_ERROR and self.stopped is None
        wait_s = self._policy.wait_s(owed.attempts_made, random.random()) if retry else None
        leaves = self.stopped is not None and not self._member.alone and end.finish.reason is FinishReason.TASK_ERROR
        if wait_s is None and not leaves:
            await self._attempts.settle(owed, url, end.finish, end.outcome)
            return
        self.progress.attempts_lost += 1
        cause = str(end.finish.detail.get("cause"))
        await self._attempts.end(owed, end.outcome, cause, url)
        if wait_s is None:
            self.returned.append(owed.trial)  # the others play it
        else:
            self._pause(owed, wait_s)

    def _pause(self, owed: PendingTrial, wait_s: float) -> None:
        """Owe the trial again after a wait; its slots are free meanwhile."""
        self._pausing += 1

        def again() -> None:
            self._pausing -= 1
            self.flow.owe_again(self._wait_in_line(owed))
            self._pump()

        asyncio.get_running_loop().call_later(wait_s, again)

    def _refuse(self, agent: str, why: str) -> None:
        """Start nothing more for an agent whose endpoint refuses it; its trials stay owed."""
        self.refused.setdefault(agent, why)
        for pair in self._owed:
            if pair[0] == agent:
                self._return(pair)

    def _return(self, pair: Pair) -> None:
        """Play nothing more that a pair is owed."""
        self.flow.drop(pair)
        self.returned += [owed.trial for owed in self._owed[pair]]
        self._owed[pair].clear()

    async def _abandon(self) -> None:
        playing = list(self._playing)
        for task in playing:
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)
        self._traces.close()
