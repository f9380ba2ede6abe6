"""A trial that is played or waits for it, with the state that earlier attempts have left."""

from dataclasses import dataclass

from eval_client.core.events import Job, Outcome
from eval_client.store.records import Trial
from eval_client.store.store import Store
from eval_client.trial.episode import TrialHistory


@dataclass
class PendingTrial:
    """A trial without a final row that this client has taken."""

    trial: Trial
    trial_history: TrialHistory
    session: str | None = None
    """The session of the attempt under way."""
    begun: bool = False
    """Whether an earlier client has left a journal that has not been read yet."""
    recalled: bool = False
    """Whether the session is an earlier client's; it may be gone."""

    @property
    def job(self) -> Job:
        """The trial, as the schedule knows it."""
        return Job(self.trial.id, (self.trial.agent, self.trial.task), begun=self.begun)

    def recall(self, store: Store) -> None:
        """Read the trial's journal and session from the store, as an earlier client left them."""
        self.trial_history = TrialHistory(*store.journal(self.trial.id), replies=store.replies(self.trial.id))
        self.session = store.last_session(self.trial.id)
        self.begun, self.recalled = False, self.session is not None

    def start_over(self) -> str | None:
        """Forget what earlier attempts have left, as the agent can't be replayed; their session if it may still live.

        Not for an attempt that was put back: it has left nothing.
        """
        left, self.recalled = self.session if self.recalled else None, False
        self.session = None if left else self.session
        if self.trial_history.turns:
            self.trial_history.start_anew()
        return left

    def attempt_ended(self, outcome: Outcome) -> None:
        """Note that the session is gone; begin the journal anew if its replay diverged."""
        self.session = None
        if outcome is Outcome.DIVERGED:
            self.trial_history.start_anew()
