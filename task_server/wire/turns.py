"""Pure: the turn state of a session, and its lease."""

from dataclasses import dataclass, replace

from proctor.environment import AgentStopped, ContextLimitExceeded
from proctor.types import Finish, FinishReason
from task_server.wire.errors import TurnConflict
from task_server.wire.messages import Act, Finished, Observed, Step, Stop

Reply = Act | Stop


def stop_of(stopped: AgentStopped) -> Stop:
    """The answer of an agent that can't continue."""
    limited = stopped.reason is FinishReason.CONTEXT_LIMIT
    return Stop(reason=FinishReason.CONTEXT_LIMIT if limited else FinishReason.TURN_LIMIT)


def stopped_by(stop: Stop) -> AgentStopped:
    """What an environment is told of such an answer."""
    return ContextLimitExceeded() if stop.reason is FinishReason.CONTEXT_LIMIT else AgentStopped(stop.reason)


@dataclass(frozen=True, slots=True)
class Turns:
    """Answers to the turns 1..answered were applied; `step` is what came after them, None while it is in work."""

    answered: int = 0
    reply: Reply | None = None
    """The answer to turn `answered`."""
    step: Step | None = None

    def observed(self, step: Observed) -> "Turns":
        """The state after the environment's next observation, which asks for turn `answered + 1`."""
        return replace(self, step=step)

    def finished(self, finish: Finish) -> "Turns":
        """The state after the environment's finish."""
        return replace(self, step=Finished(finish=finish))

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


@dataclass(frozen=True, slots=True)
class Lease:
    """A lease of `length_s` seconds from each renewal, on a monotonic clock."""

    length_s: float
    until: float

    @classmethod
    def granted(cls, length_s: float, now: float) -> "Lease":
        """A lease that begins now."""
        return cls(length_s, now + length_s)

    def renewed(self, now: float) -> "Lease":
        """The same lease, begun anew."""
        return Lease.granted(self.length_s, now)

    def expired(self, now: float) -> bool:
        """True once the lease has expired."""
        return now >= self.until
