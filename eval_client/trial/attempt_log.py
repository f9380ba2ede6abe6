"""A trial that this client has taken, and what its attempts write to the journal and add to the run's figures."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eval_client.core.events import AttemptOutcome, Job
from eval_client.core.progress import Progress
from eval_client.core.spend import Spend
from eval_client.store.journal import Journal, WriteRefused
from eval_client.store.records import Trial
from eval_client.store.store import Store
from eval_client.trial.episode import TrialHistory
from eval_client.trial.traces import Traces
from proctor.session.kept_replies import KeptReply
from proctor.session.time_limit import Untimed
from proctor.types import Finish, FinishReason, Usage
from task_server.client.client import ReplyLog


@dataclass
class PendingTrial:
    """A trial without a final row that this client plays."""

    job: Job
    """The trial, as the schedule knows it."""
    trial_history: TrialHistory = field(default_factory=TrialHistory)
    session: str | None = None
    """The session of the attempt under way."""
    recalled: bool = False
    """Whether the session is an earlier client's; it may be gone."""
    trial: Trial = field(init=False)
    """Its row, once it is `read`."""
    is_read: bool = False

    def read(self, store: Store) -> None:
        """Read the trial from the store, with the journal and the session that an earlier client left of it."""
        trial = self.trial = store.trial(self.job.trial)
        if trial.attempts:
            known = self.trial_history = TrialHistory(*store.journal(trial.id), replies=store.replies(trial.id))
            for journal, call in store.calls(trial.id):
                if journal == known.journal:
                    known.calls.append(call)
                else:
                    known.paid_before = known.paid_before.plus(Usage.of(call))
            self.session = store.last_session(trial.id)
            self.recalled = self.session is not None
        self.is_read = True

    def start_over(self) -> str | None:
        """Forget what earlier attempts have left, as the agent can't be replayed; their session if it may still live.

        Not for an attempt that was put back before its first answer: it has left nothing.
        """
        left, self.recalled = self.session if self.recalled else None, False
        if self.trial_history.turns or self.trial_history.calls:
            self.trial_history.start_anew()
            self.session = None
        self.session = None if left else self.session
        return left

    def attempt_ended(self, outcome: AttemptOutcome) -> None:
        """Note that the session is gone; begin the journal anew if its replay diverged."""
        self.session = None
        if outcome is AttemptOutcome.DIVERGED:
            self.trial_history.start_anew()


class _TrialReplies(ReplyLog):
    """The `ReplyLog` of one trial: its replies are kept in the journal, and added to the run's spending."""

    def __init__(self, journal: Journal, spend: Spend, pending: PendingTrial) -> None:
        self._journal, self._spend = journal, spend
        self._trial, self.replies = pending.trial, pending.trial_history.replies

    async def add(self, replies: Sequence[KeptReply]) -> None:
        with Untimed():  # what is written is known here too
            await self._journal.replies(self._trial, len(self.replies), replies)
            self.replies += replies
        for reply in (kept.reply for kept in replies if kept.bought):
            self._spend.add_helper(reply.model, Usage.of(reply), self._trial.task)


class AttemptLog:
    """Journals attempts. What a method writes is durable when it returns.

    Raises Fenced if another client has taken over, WriteRefused if the store refuses a row.
    """

    def __init__(
        self, journal: Journal, progress: Progress, traces: Traces, digests: Mapping[str, str], spend: Spend
    ) -> None:
        self._journal, self._progress, self._traces = journal, progress, traces
        self._digests, self._spend = digests, spend

    async def begin(self, pending: PendingTrial) -> None:
        """Journal a new attempt before its session starts. An attempt that was put back goes on under its number."""
        if pending.session is not None:
            return
        pending.session = secrets.token_hex(16)
        pending.trial = pending.trial.model_copy(update={"attempts": pending.trial.attempts + 1})
        digest = self._digests[pending.trial.task]
        await self._journal.begin(
            pending.trial, pending.trial.attempts, pending.trial_history.journal, pending.session, digest
        )

    def replies(self, pending: PendingTrial) -> ReplyLog:
        """The log of a trial's replies of environment models."""
        return _TrialReplies(self._journal, self._spend, pending)

    async def settle(
        self, pending: PendingTrial, url: str | None, finish: Finish, outcome: AttemptOutcome = AttemptOutcome.FINISHED
    ) -> None:
        """Journal the trial's final row. A finish that the store refuses becomes a fault of ours."""
        trial, pair = pending.trial, (pending.trial.agent, pending.trial.task)
        cost = pending.trial_history.cost()
        try:
            await self._journal.finish(trial, trial.attempts, url, finish, cost, outcome=outcome.value)
        except WriteRefused as refused:
            finish = Finish.fault(FinishReason.TASK_ERROR, str(refused))
            await self._journal.finish(trial, trial.attempts, url, finish, cost, outcome=outcome.value)
        self._progress.settled(pair, finish, cost.seconds)
        self._traces.settled(trial, finish)
