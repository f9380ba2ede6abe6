"""Plays a run's pending trials. The flow decides what starts; every event that frees capacity asks it again."""

import asyncio
import dataclasses
import logging
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from eval_client.core.error_limit import ErrorLimit
from eval_client.core.flow import Pair
from eval_client.core.progress import Progress, RunResult
from eval_client.core.retry import AttemptPolicy
from eval_client.core.spend import SpendLimit
from eval_client.endpoints.endpoints import Endpoints
from eval_client.plan import Plan, trial_seed
from eval_client.run.capacity import CapacityLimits
from eval_client.store.connection import retry_until_available
from eval_client.store.journal import Journal
from eval_client.store.member import Member
from eval_client.store.records import Trial
from eval_client.trial.attempt import AttemptEnd, Outcome, attempt
from eval_client.trial.attempt_log import AttemptLog
from eval_client.trial.command import CommandAgents, CommandModel
from eval_client.trial.episode import Episode, Model, SessionServer, TrialHistory
from eval_client.trial.isolation import Isolation
from eval_client.trial.pending_trial import PendingTrial
from eval_client.trial.traces import Traces
from proctor.types import Finish, FinishReason
from task_server.wire.messages import Started

log = logging.getLogger(__name__)

PUT_BACK_S = 1.0
"""A trial that was put back, mostly because another client took its slot, waits this long."""


class Runner:
    """Plays one run on this client, from pending trials to final rows. Use it once."""

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
        commands: CommandAgents | None = None,
    ) -> None:
        self.plan, self.progress, self.endpoints = plan, progress, endpoints
        self.digests = digests
        """task -> the digest that the run began with"""
        self._store, self._member = member.store, member
        self._server, self._end_session, self._commands = server, end_session, commands
        self._policy = AttemptPolicy(plan.limits.attempts)
        self._isolation = Isolation(plan.limits.patience_s)
        self._waiting: dict[Pair, deque[PendingTrial]] = {}
        self._playing: set[asyncio.Task[None]] = set()
        self._sessions: dict[str, str] = {}
        self._traces = Traces(member.store.run)
        self._attempts = AttemptLog(journal, progress, self._traces, digests, endpoints.spend)
        self._pausing = 0
        self._idle = asyncio.Event()
        self.abandoned = False
        self.stopped: str | None = None
        self._limit: SpendLimit | None = None
        self.error_limit: ErrorLimit | None = None
        """At how many unscored trials the run drains; None: at no number."""
        self.refused: dict[Pair, str] = {}
        """pair -> why the agent's endpoint refuses it"""
        self.unreachable: set[str] = set()
        """Tasks that were unavailable to this client for too long, until they are available again."""
        self.given_up: frozenset[str] = frozenset()
        """Tasks that no other client of the run can reach either."""
        self.returned: list[Trial] = []
        """Trials that this client has taken and does not play, for other clients."""
        self.on_need: Callable[[], None] = lambda: None
        """Called when no more than `low` trials of a pair wait, and when nothing is left to do."""
        self.free: Mapping[Pair, int] = {}
        """pair -> trials that no client has taken and that this client would play"""
        self.others = 0
        """Other live clients of the run."""
        self.low: dict[Pair, int] = {}
        """pair -> the number of waiting trials at which to call `on_need`"""
        self.on_stop: Callable[[bool], None] = lambda at_once: None
        """Called with False when the run drains, and with True when it is abandoned."""
        self._more_to_come = not member.alone
        self._error: BaseException | None = None
        self.capacity_limits = CapacityLimits(plan, endpoints, alone=member.alone)
        self.flow = self.capacity_limits.flow

    async def run(self, trials: Sequence[Trial]) -> RunResult:
        """Play these trials, and those that are taken meanwhile. Raises Fenced if another client has taken over."""
        self.take(trials)
        try:
            await self._idle.wait()
        finally:
            await self._abandon()
        if self._error is not None:
            raise self._error
        return RunResult(self.stopped, self.refused, self.abandoned, self._limit)

    def take(self, trials: Sequence[Trial]) -> None:
        """Play these trials too. Those with attempts come first, as their sessions may hold slots."""
        for trial in sorted(trials, key=lambda trial: trial.attempts == 0):
            self.flow.add(self._enqueue(PendingTrial(trial, TrialHistory(), begun=trial.attempts > 0)))
        self._pump()

    def take_no_more(self) -> None:
        """End once the trials that were taken are settled."""
        self._more_to_come = False
        self._pump()

    def waiting(self) -> dict[Pair, int]:
        """pair -> trials that were taken and wait to be started"""
        return {pair: len(waiting) for pair, waiting in self._waiting.items() if waiting}

    def startable(self) -> dict[Pair, int]:
        """pair -> trials that could be started if there were slots"""
        waiting = self.waiting()
        return {pair: waiting.get(pair, 0) + self.free.get(pair, 0) for pair in {*waiting, *self.free}}

    @property
    def quiet(self) -> bool:
        """Whether no trial is played, and none waits."""
        return not (self._playing or self._pausing or any(self._waiting.values()))

    def fail(self, error: BaseException) -> None:
        """Stop at once; `run` raises this."""
        self._error = self._error or error
        self.abandon(str(error))

    def drain(self, why: str) -> None:
        """Start no more trials; those under way are played to their end."""
        self.stopped = self.stopped or why
        self.progress.draining = True
        for outage in self.endpoints.outages.values():
            outage.release()
        for pair in self._waiting:
            self._return(pair)
        self.on_stop(self.abandoned)
        self._pump()

    def abandon(self, why: str) -> None:
        """Stop at once; a resume goes on from the journal."""
        self.abandoned = True
        self.drain(why)
        self._idle.set()

    def limit_task(self, task: str, capacity: int, waiting: str | None, total: int) -> None:
        """Set how many sessions of a task the task server can hold: `capacity` for this client, `total` for all.

        `waiting` is why none can start; None if they can.
        """
        self.capacity_limits.limit_task(task, capacity, total)
        if waiting is None:
            self.unreachable.discard(task)
            self.given_up -= {task}
            self.progress.task_waits.pop(task, None)
        else:
            self.progress.task_waits[task] = waiting
        self._pump()

    def endpoint_limits_changed(self) -> None:
        """Apply the endpoints' current concurrency limits."""
        self.capacity_limits.endpoints_changed()
        self._pump()

    def grant(self, grants: Mapping[str, int]) -> None:
        """Set this client's part of the limits that it shares with other clients."""
        self.capacity_limits.grant(grants)
        self._pump()

    def sessions(self) -> dict[str, list[str]]:
        """worker URL -> this client's sessions there, whose leases must be renewed"""
        by_url: dict[str, list[str]] = {}
        for session, url in self._sessions.items():
            by_url.setdefault(url, []).append(session)
        return by_url

    def under_way(self, task: str) -> int:
        """How many trials of a task are being played."""
        return sum(count for (_, of), count in self.progress.running.items() if of == task)

    def held_up(self, endpoint: str | None = None) -> int:
        """How many trials of this client wait for an endpoint that is down: for this one, or for any."""
        down = {name for name, outage in self.endpoints.outages.items() if outage.down and endpoint in (None, name)}
        counts = [*self.waiting().items(), *self.progress.running.items()]
        return sum(count for (agent, _), count in counts if self.flow.endpoint_of[agent] in down)

    async def give_up_task(self, task: str, cause: str) -> None:
        """Settle a task's waiting trials without a score; return them instead if another client may reach the task."""
        self.unreachable.add(task)
        for pair, waiting in list(self._waiting.items()):
            if pair[1] == task and waiting:
                if self._member.alone or task in self.given_up:
                    await self._give_up_pair(pair, cause)
                else:
                    self._return(pair)
        self._pump()

    async def _give_up_pair(self, pair: Pair, cause: str) -> None:
        self.flow.drop(pair)
        given_up = list(self._waiting[pair])
        self._waiting[pair].clear()
        self._pausing += len(given_up)  # this client still has them
        try:
            await asyncio.gather(*(self._give_up(pending, cause) for pending in given_up))
        finally:
            self._pausing -= len(given_up)

    async def _give_up(self, pending: PendingTrial, cause: str) -> None:
        await self._recall(pending)
        await self._attempts.settle(pending, None, Finish.fault(FinishReason.TASK_ERROR, cause))

    async def _recall(self, pending: PendingTrial) -> None:
        """Read what an earlier client left of a trial; retried until the store can be read."""
        if pending.begun:
            await retry_until_available(pending.recall, self._store, aside=False)

    def _enqueue(self, pending: PendingTrial) -> Pair:
        pair = (pending.trial.agent, pending.trial.task)
        self._waiting.setdefault(pair, deque()).append(pending)
        return pair

    def _pump(self) -> None:
        """Start the trials that can start, and end the run when none is left or too many are unscored."""
        if self.stopped is None and not self.quiet and self.error_limit is not None:
            why = self.error_limit.reached(self.progress, self.held_up())
            if why is not None:
                self.drain(why)
        if self.stopped is None:
            for pair in self.flow.start():
                self._start(pair, self._waiting[pair].popleft())
                if len(self._waiting[pair]) <= self.low.get(pair, -1):
                    self.on_need()
        if not self._playing and (self.stopped is not None or self.quiet):
            if self.stopped is None and self._more_to_come:
                self.on_need()
            else:
                self._idle.set()

    def _start(self, pair: Pair, pending: PendingTrial) -> None:
        self.progress.running[pair] = self.progress.running.get(pair, 0) + 1
        task = asyncio.create_task(self._play(pair, pending), name=f"trial {pending.trial.id}")
        self._playing.add(task)
        task.add_done_callback(lambda _: self._ended(pair, task))

    def _ended(self, pair: Pair, task: asyncio.Task[None]) -> None:
        self._playing.discard(task)
        self.progress.running[pair] -= 1
        self.flow.release(pair)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)
        self._pump()

    async def _play(self, pair: Pair, pending: PendingTrial) -> None:
        """Play one attempt; one that may kill its worker is isolated from others like it."""
        await self._recall(pending)
        if self.plan.agent(pending.trial.agent).is_command and (left := pending.start_over()):
            self._end_session("", left)
        last_try = pending.attempts_made == self.plan.limits.attempts - 1
        async with self._isolation.entered(suspect=pending.lost_worker, last_try=last_try):
            await self._attempt(pair, pending)

    async def _attempt(self, pair: Pair, pending: PendingTrial) -> None:
        """Play one attempt, and act on its outcome."""
        await self._attempts.begin(pending)
        session, end = str(pending.session), AttemptEnd(outcome=Outcome.PUT_BACK)
        self._traces.enter(pending.trial, session)
        try:
            end = await self._made(pending, session)
        finally:
            url = self._sessions.pop(session, "")
            if end.finish is None or end.finish.reason.is_fault:
                self._end_session(url, session)
        if kind := end.fault():
            log.info("attempt %d: %s: %s", pending.trial.attempts, kind, end.cause)
            self.progress.count_fault(pair, kind)
        recalled, pending.recalled = pending.recalled, False
        match end.outcome:
            case Outcome.REFUSED:
                self.returned.append(pending.trial)
                self._refuse([of for of in self.plan.pairs() if of[0] == pair[0]], end.cause)
            case Outcome.TOOLS_REFUSED:
                self.returned.append(pending.trial)
                self._refuse([pair], end.cause)
            case Outcome.BUDGET:
                self.returned.append(pending.trial)
                self._limit = self._limit if self.stopped else self.endpoints.spend.limit_reached()
                self.drain(end.cause)
            case Outcome.ENDPOINT_DOWN:
                self.returned.append(pending.trial)
            case Outcome.PUT_BACK:
                self._pause(pending, PUT_BACK_S)
            case Outcome.LOST if recalled:
                await self._attempts.end(pending, end.outcome, end.cause, url)
                pending.session = None
                self._pause(pending, 0.0)
            case _:
                await self._conclude(pending, url, end)

    async def _made(self, pending: PendingTrial, session: str) -> AttemptEnd:
        """Make an attempt with the agent's model, or with its command."""
        agent = pending.trial.agent
        if not self.plan.agent(agent).is_command:
            return await attempt(self._episode(pending, session, self.endpoints.model(agent)))
        assert self._commands is not None

        async def attempted(command: CommandModel) -> AttemptEnd:
            episode = self._episode(pending, session, command)
            return await attempt(dataclasses.replace(episode, on_observation=command.observe))

        spend, calls = self.endpoints.spend, self.endpoints.calls
        return await self._commands.play(pending.trial, spend, calls, self._member.ensure_lease, attempted)

    def _episode(self, pending: PendingTrial, session: str, model: Model) -> Episode:
        trial = pending.trial

        def started(reply: Started) -> None:
            self._sessions[session] = reply.url

        return Episode(
            trial=trial,
            seed=trial_seed(self.plan.seed, trial.task, trial.sample, trial.epoch),
            digest=self.digests[trial.task],
            session=session,
            trial_history=pending.trial_history,
            model=model,
            server=self._server,
            limits=self.plan.trial_limits(trial.agent),
            write_turn=lambda turn: self._attempts.turn(pending, turn),
            reply_log=self._attempts.replies(pending),
            begun=pending.recalled,
            on_started=started,
        )

    async def _conclude(self, pending: PendingTrial, url: str, end: AttemptEnd) -> None:
        """Settle a trial after an attempt with a finish, or plan another attempt."""
        assert end.finish is not None
        pending.made_an_attempt(end.outcome)
        retry = end.finish.reason is FinishReason.TASK_ERROR and self.stopped is None
        wait_s = self._policy.wait_s(pending.attempts_made, random.random()) if retry else None
        leaves = self.stopped is not None and not self._member.alone and end.finish.reason is FinishReason.TASK_ERROR
        if wait_s is None and not leaves:
            await self._attempts.settle(pending, url, end.finish, end.outcome)
            return
        self.progress.attempts_lost += 1
        cause = str(end.finish.detail.get("cause"))
        await self._attempts.end(pending, end.outcome, cause, url)
        if wait_s is None:
            self.returned.append(pending.trial)  # for the other clients
        else:
            self._pause(pending, wait_s)

    def _pause(self, pending: PendingTrial, wait_s: float) -> None:
        """Enqueue the trial again after a wait; its slots are free meanwhile."""
        self._pausing += 1

        def again() -> None:
            self._pausing -= 1
            self.flow.add_again(self._enqueue(pending))
            self._pump()

        asyncio.get_running_loop().call_later(wait_s, again)

    def _refuse(self, pairs: Sequence[Pair], why: str) -> None:
        """Start no more trials of pairs that the agent's endpoint refuses; they stay without a final row."""
        for pair in pairs:
            self.refused.setdefault(pair, why)
            self._return(pair)

    def _return(self, pair: Pair) -> None:
        """Return a pair's waiting trials."""
        self.flow.drop(pair)
        waiting = self._waiting.get(pair, deque())
        self.returned += [pending.trial for pending in waiting]
        waiting.clear()

    async def _abandon(self) -> None:
        playing = list(self._playing)
        for task in playing:
            task.cancel()
        await asyncio.gather(*playing, return_exceptions=True)
        self._traces.close()
