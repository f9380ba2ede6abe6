"""A trial that waits to be played, or is, and what earlier attempts at it have left."""

from dataclasses import dataclass

from eval_client.store.records import Trial
from eval_client.store.store import Store
from eval_client.trial.attempt import Outcome
from eval_client.trial.episode import TrialHistory


@dataclass
class PendingTrial:
    """A trial that waits to be played, and what it has paid for so far."""

    trial: Trial
    trial_history: TrialHistory
    session: str | None = None
    """The session of the attempt under way."""
    begun: bool = False
    """An earlier client has left a journal, not yet read."""
    recalled: bool = False
    """The session is an earlier client's: it may live or not."""
    attempts_made: int = 0
    """By this client, since the journal last grew: who gets further is not what kills its worker."""
    lost_worker: bool = False
    """The last of these attempts ended since its worker was lost."""
    turns_kept: int = 0
    """Of the journal when an attempt last ended."""

    def recall(self, store: Store) -> None:
        """Read what an earlier client left, only now that the trial is played."""
        self.trial_history = TrialHistory(*store.journal(self.trial.id), replies=store.replies(self.trial.id))
        self.session = store.last_session(self.trial.id)
        self.begun, self.recalled = False, self.session is not None

    def made_an_attempt(self, outcome: Outcome) -> None:
        """An attempt has ended; one that got no further than the last counts, and a diverged one leaves no journal."""
        self.session = None
        if len(self.trial_history.turns) > self.turns_kept > 0:
            self.attempts_made = 0
        self.turns_kept = len(self.trial_history.turns)
        self.attempts_made += 1
        self.lost_worker = outcome is Outcome.LOST
        if outcome is Outcome.DIVERGED:
            self.trial_history.start_anew()
