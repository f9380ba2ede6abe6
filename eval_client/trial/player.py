"""Makes attempts at trials: recalls what earlier ones have left, plays an episode, and writes what it leaves."""

import contextlib
import dataclasses
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

from eval_client.core import Pair
from eval_client.core.events import AttemptEnded, AttemptOutcome, Job
from eval_client.core.progress import Progress
from eval_client.core.spend import SpendLimit
from eval_client.endpoints.bound_model import BoundModel
from eval_client.endpoints.endpoints import Endpoints
from eval_client.plan.entries import agent_kind
from eval_client.plan.plan import Plan, trial_seed
from eval_client.store.connection import retry_until_available
from eval_client.store.journal import Journal
from eval_client.store.records import Trial, Turn
from eval_client.store.store import Store
from eval_client.trial.agent_kind import InstalledKind, LoopAgents, LoopModel, ModelCaller
from eval_client.trial.attempt import AttemptEnd
from eval_client.trial.attempt_log import AttemptLog, PendingTrial
from eval_client.trial.episode import Episode, Model, SessionServer
from eval_client.trial.isolation import Isolation
from eval_client.trial.services import Services
from eval_client.trial.traces import Traces
from proctor.event_loop import clock
from proctor.observability.descriptors import lacks_descriptors
from proctor.registry import is_own
from proctor.session.play import read_answer
from proctor.types import Finish, FinishReason
from task_server.wire.messages import Act, Started

log = logging.getLogger(__name__)


class Played(NamedTuple):
    """An attempt that was made."""

    end: AttemptEnd
    url: str
    """The worker that had its session; empty if none started."""
    turns: int
    """Turns in the journal, if another attempt can replay them."""

    def event(self, job: Job, spend_limit: SpendLimit | None) -> AttemptEnded:
        """What the schedule is told of it; `spend_limit` is the limit of the run that it met."""
        end = self.end
        return AttemptEnded(
            job,
            end.outcome,
            reason=end.finish.reason if end.finish else None,
            cause=end.cause,
            fault=end.fault(),
            turns=self.turns,
            started=bool(self.url),
            chance=random.random(),
            spend_limit=spend_limit,
        )


class TrialPlayer:
    """The trials of one run on this client. `digests` is task -> the digest that the run began with."""

    def __init__(
        self,
        *,
        plan: Plan,
        digests: Mapping[str, str],
        store: Store,
        journal: Journal,
        server: SessionServer,
        endpoints: Endpoints,
        progress: Progress,
        end_session: Callable[[str, str], None],
        end_conversations: Callable[[str, str, Iterable[str]], None] = lambda agent, session, names: None,
        services: Services,
        commands: LoopAgents | None = None,
    ) -> None:
        self._plan, self._digests, self._store, self._server = plan, digests, store, server
        self._endpoints, self._end_session, self._commands = endpoints, end_session, commands
        self._end_conversations = end_conversations
        self._journal, self._services = journal, services
        self._isolation = Isolation(plan.limits.patience_s)
        self._sessions: dict[str, str] = {}
        self.playing: dict[str, Pair] = {}
        """session of an attempt under way -> its trial's pair"""
        self._own_worlds = {task.name: task.build() for task in plan.definitions() if is_own(task.environment)}
        """Those from users' files, which read what is answered while it is journalled."""
        self._traces = Traces(store.run)
        self._log = AttemptLog(journal, progress, self._traces, digests, endpoints.spend)

    def sessions(self) -> dict[str, list[str]]:
        """worker URL -> this client's sessions there, whose leases must be renewed; under "" those that begin"""
        by_url: dict[str, list[str]] = {}
        for session, url in self._sessions.items():
            by_url.setdefault(url, []).append(session)
        return by_url

    async def play(self, pending: PendingTrial, *, suspect: bool, last_try: bool) -> Played:
        """Make an attempt. One that may kill its worker, a suspect, is isolated from others like it.

        Raises Fenced if another client has taken over.
        """
        await self._read(pending)
        agent = pending.trial.agent
        stateful = self._endpoints.is_stateful(agent)
        anew = stateful or self._plan.agent(agent).kind is not None
        if anew:
            await self._begin_anew(pending, stateful=stateful)
        async with self._isolation.entered(suspect=suspect, last_try=last_try):
            await self._log.begin(pending)
            session, end = str(pending.session), AttemptEnd(outcome=AttemptOutcome.PUT_BACK)
            self._sessions[session] = ""
            self._traces.enter(pending.trial, session)
            self.playing[session] = pending.job.pair
            try:
                end = await self._made(pending, session)
            except OSError as error:
                if not lacks_descriptors(error):
                    raise
                end = AttemptEnd(outcome=AttemptOutcome.PUT_BACK, cause=str(error))
            finally:
                url = self._sessions.pop(session, "")
                del self.playing[session]
                none = not url and end.outcome is AttemptOutcome.PUT_BACK and end.cause
                if not none and (end.finish is None or end.finish.reason.is_fault):
                    self._end_session(url, session)
                if stateful:
                    self._end_conversations(agent, session, ())
        end = self._as_served(pending, end)
        if kind := end.fault():
            log.info("attempt %d: %s: %s", pending.trial.attempts, kind, end.cause)
        pending.recalled = False
        return Played(end, url, 0 if anew else len(pending.trial_history.turns))

    async def _begin_anew(self, pending: PendingTrial, *, stateful: bool) -> None:
        """Have an agent that can't go on in the middle of a trial begin it anew."""
        trial, outcome = pending.trial, AttemptOutcome.INTERRUPTED
        names = {turn.conversation for turn in pending.trial_history.turns} or {"main"}
        if left := pending.start_over():
            self._end_session("", left)
            if stateful:
                self._end_conversations(trial.agent, left, names)
            await self._journal.end(trial, trial.attempts, outcome.value, "the agent can't go on in mid-trial", None)

    def _as_served(self, pending: PendingTrial, end: AttemptEnd) -> AttemptEnd:
        """The end of an attempt; one that says that a service is away is an ordinary fault where the service is not.

        A session that is gone was lost by its client where that was an earlier one.
        """
        if end.outcome is AttemptOutcome.LOST and pending.recalled:
            return end.model_copy(update={"outcome": AttemptOutcome.INTERRUPTED})
        if end.outcome is not AttemptOutcome.SERVICE_AWAY or end.finish is None:
            return end
        turns, patience_s = len(pending.trial_history.turns), end.finish.detail.get("patience_s")
        away = self._services.away(pending.job, turns, end.cause, clock(), patience_s)
        return end if away else AttemptEnd(outcome=AttemptOutcome.FINISHED, finish=end.finish)

    async def end(self, pending: PendingTrial, played: Played) -> None:
        """Write the end of an attempt whose trial goes on."""
        assert played.end.finish is not None
        pending.attempt_ended(played.end.outcome)
        trial, cause = pending.trial, str(played.end.finish.detail.get("cause"))
        await self._journal.end(trial, trial.attempts, played.end.outcome.value, cause, played.url)

    async def settle(self, pending: PendingTrial, played: Played) -> None:
        """Write the trial's final row."""
        assert played.end.finish is not None
        pending.attempt_ended(played.end.outcome)
        await self._log.settle(pending, played.url, played.end.finish, played.end.outcome)

    async def give_up(self, pending: PendingTrial, cause: str) -> None:
        """Write the final row of a trial that can't be played."""
        await self._read(pending)
        await self._log.settle(pending, None, Finish.fault(FinishReason.TASK_ERROR, cause))

    def close(self) -> None:
        """End the traces of trials that are not settled."""
        self._traces.close()

    async def _read(self, pending: PendingTrial) -> None:
        """Read a trial, and what an earlier client left of it; retried until the store can be read."""
        if not pending.is_read:
            await retry_until_available(pending.read, self._store)

    def _made(self, pending: PendingTrial, session: str) -> Awaitable[AttemptEnd]:
        """Make an attempt with the agent's model, or with its command."""
        agent = pending.trial.agent
        entry, history = self._plan.agent(agent), pending.trial_history
        if not entry.is_command:
            model = self._endpoints.model(agent, history.turns[-1].replica if history.turns else None)
            caller: ModelCaller | None = self._endpoints.scaffold(agent)
            asked, changed = cast(Model, model), dict[str, Any]()
            if entry.is_installed:
                kind: InstalledKind = agent_kind("installed")
                caller = installed = kind.begun(self._plan, agent, history, self._server)
                changed = {"server": installed, "stateful": True}
            if caller is not None:
                from eval_client.trial.scaffold import Scaffold  # runs without functions do without

                write_call = partial(self._journal.turn, pending.trial, history.journal)
                asked = Scaffold(caller, model, agent, history, write_call, self._endpoints.spend)
            episode = dataclasses.replace(self._episode(pending, session, asked), **changed)
            if isinstance(model, BoundModel):
                return self._bound(episode, model)
            return episode.play()
        assert self._commands is not None

        def attempted(command: LoopModel) -> Awaitable[AttemptEnd]:
            episode = self._episode(pending, session, command)
            return dataclasses.replace(episode, on_observation=command.observe).play()

        spend, calls = self._endpoints.spend, self._endpoints.calls
        return self._commands.play(pending.trial, spend, calls, attempted)

    async def _bound(self, episode: Episode, model: BoundModel) -> AttemptEnd:
        """Make an attempt with a model that keeps its place at one of several servers until the attempt's end."""
        try:
            return await episode.play()
        finally:
            model.leave()

    def _journal_read(self, trial: Trial, journal: int, turn: Turn) -> Awaitable[None]:
        """Journal a turn of a world from a user's file, with how it reads the answer."""
        if isinstance(reply := turn.reply, Act):
            with contextlib.suppress(Exception):  # the user's code costs the reading, not the run
                reading = read_answer(self._own_worlds[trial.task], reply.action)
                turn = turn.model_copy(update={"reply": Act(action=reply.action, reading=reading)})
        return self._journal.turn(trial, journal, turn)

    def _episode(self, pending: PendingTrial, session: str, model: Model) -> Episode:
        trial, endpoints = pending.trial, self._endpoints
        turn = trial.agent, trial.task, trial.sample, str(trial.epoch)

        write_turn = self._journal_read if trial.task in self._own_worlds else self._journal.turn

        def started(reply: Started) -> None:
            self._sessions[session] = reply.url

        return Episode(
            trial=trial,
            seed=trial_seed(self._plan.seed, trial.task, trial.sample, trial.epoch),
            digest=self._digests[trial.task],
            session=session,
            trial_history=pending.trial_history,
            model=model,
            server=self._server,
            limits=self._plan.trial_limits(trial.agent),
            write_turn=partial(write_turn, trial, pending.trial_history.journal),
            reply_log=self._log.replies(pending),
            begun=pending.recalled,
            stateful=endpoints.is_stateful(trial.agent),
            scores_refusals=self._plan.refusals == "scored",
            on_started=started,
            on_progress=partial(self._services.worked, trial.task),
            on_turn_over=partial(endpoints.allowance.over, turn) if endpoints.spend.bounded else None,
        )
