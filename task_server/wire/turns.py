"""Pure: the turn state of a session, and its lease."""

from typing import NamedTuple

from proctor.environment import AgentStopped, ContextLimitExceeded, InputRefused
from proctor.types import Finish, FinishReason
from task_server.wire.errors import TurnConflict
from task_server.wire.messages import Act, Finished, Observed, Step, Stop

Reply = Act | Stop


def stop_of(stopped: AgentStopped) -> Stop:
    """The answer of an agent that can't continue."""
    if isinstance(stopped, InputRefused):
        return Stop(reason=FinishReason.REFUSED, why=stopped.why, text=stopped.text)
    limited = stopped.reason is FinishReason.CONTEXT_LIMIT
    return Stop(reason=FinishReason.CONTEXT_LIMIT if limited else FinishReason.TURN_LIMIT)


def told(stop: Stop) -> Stop:
    """The answer as a worker is told it."""
    return Stop(reason=FinishReason.CONTEXT_LIMIT) if stop.reason is FinishReason.REFUSED else stop


def stopped_by(stop: Stop) -> AgentStopped:
    """What an environment is told of such an answer."""
    limited = stop.reason is not FinishReason.TURN_LIMIT
    return ContextLimitExceeded() if limited else AgentStopped(stop.reason)


def refused(finish: Finish, last: Reply | None, *, scored: bool = True) -> Finish:
    """The finish of a session whose last answer this is, where it is a refusal: with its reason, and no score if so."""
    if not isinstance(last, Stop) or last.reason is not FinishReason.REFUSED or finish.reason.is_fault:
        return finish
    detail = {**finish.detail, "cause": last.why}
    changed = {"reason": FinishReason.REFUSED, "score": finish.score if scored else None, "detail": detail}
    return finish.model_copy(update=changed)


class Turns(NamedTuple):
    """Answers to the turns 1..answered were applied; `step` is what came after them, None while it is in work."""

    answered: int = 0
    reply: Reply | None = None
    """The answer to turn `answered`."""
    step: Step | None = None

    def observed(self, step: Observed) -> "Turns":
        """The state after the environment's next observation, which asks for turn `answered + 1`."""
        return self._replace(step=step)

    def finished(self, finish: Finish) -> "Turns":
        """The state after the environment's finish."""
        return self._replace(step=Finished(finish=finish))

    def replied(self, turn: int, reply: Reply) -> tuple["Turns", bool]:
        """The state after an answer, and whether it is new and must be applied. Raises TurnConflict."""
        if turn == self.answered and reply == self.reply:
            return self, False
        if turn == self.answered + 1 and isinstance(self.step, Observed):
            return Turns(answered=turn, reply=reply), True
        answered_otherwise = turn == self.answered and turn > 0
        why = "it was answered otherwise" if answered_otherwise else self._current()
        raise TurnConflict(f"turn {turn}: {why}")

    def _current(self) -> str:
        if self.step is None:
            return f"turn {self.answered} is in work"
        return f"turn {self.step.turn} is current" if isinstance(self.step, Observed) else "the session is finished"


class Lease(NamedTuple):
    """A lease of `length_s` seconds from each renewal, on a monotonic clock."""

    length_s: float
    until: float

    @classmethod
    def granted(cls, length_s: float, now: float) -> "Lease":
        """A lease that begins now."""
        return cls(length_s, now + length_s)

    def renewed(self, now: float) -> "Lease":
        """The same lease, begun anew."""
        return Lease(self.length_s, now + self.length_s)

    def extended(self, seconds: float) -> "Lease":
        """The same lease, which ends so much later."""
        return Lease(self.length_s, self.until + seconds)

    def expired(self, now: float) -> bool:
        """True once the lease has expired."""
        return now >= self.until
