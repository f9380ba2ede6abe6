"""A trial that is played or waits for it, with the state that earlier attempts have left."""

from dataclasses import dataclass

from eval_client.store.records import Trial
from eval_client.store.store import Store
from eval_client.trial.attempt import Outcome
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
    attempts_made: int = 0
    """Attempts by this client since the journal last grew: a trial that gets further is not what kills its worker."""
    lost_worker: bool = False
    """Whether the last of these attempts lost its worker."""
    turns_kept: int = 0
    """Turns in the journal when an attempt last ended."""

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
        self.turns_kept = 0
        if self.trial_history.turns:
            self.trial_history.start_anew()
        return left

    def made_an_attempt(self, outcome: Outcome) -> None:
        """Count an attempt that ended. The count restarts if the journal grew, the journal if the replay diverged."""
        self.session = None
        if len(self.trial_history.turns) > self.turns_kept > 0:
            self.attempts_made = 0
        self.turns_kept = len(self.trial_history.turns)
        self.attempts_made += 1
        self.lost_worker = outcome is Outcome.LOST
        if outcome is Outcome.DIVERGED:
            self.trial_history.start_anew()
