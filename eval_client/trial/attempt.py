"""How an attempt ended, as data. Only here are its failures classified."""

from eval_client.core.events import AttemptOutcome
from eval_client.endpoints.limited_model import BudgetExhausted
from eval_client.store.journal import WriteRefused
from proctor.environment import AgentRefused, AgentUnavailable, ConversationLost, ToolsRefused
from proctor.llm.outage import EndpointDown
from proctor.types import Finish, FinishReason, Value
from task_server.wire.errors import (
    DigestDiffers,
    NoCapacity,
    OtherClient,
    ServerAway,
    SessionLost,
    TaskServerError,
    Unauthorized,
)


class Diverged(Exception):
    """A replayed session observed something else than the journal has."""


class OutOfTime(Exception):
    """The attempt took longer than `limits.trial.seconds` after its session started."""


FAILURES = (
    AgentUnavailable,
    BudgetExhausted,
    Diverged,
    EndpointDown,
    OutOfTime,
    TaskServerError,
    WriteRefused,
)
"""What ends an attempt. Every other exception, such as Fenced, ends the run."""


class AttemptEnd(Value):
    """An outcome with its finish, that of a fault included; an outcome without one has only its cause."""

    outcome: AttemptOutcome
    finish: Finish | None = None
    cause: str = ""

    @classmethod
    def at(cls, finish: Finish) -> "AttemptEnd":
        """The end of an attempt whose session has a finish."""
        if finish.is_away:
            return cls(outcome=AttemptOutcome.SERVICE_AWAY, finish=finish, cause=str(finish.detail.get("cause")))
        return cls(outcome=AttemptOutcome.FINISHED, finish=finish)

    @classmethod
    def of(cls, failure: Exception) -> "AttemptEnd":
        """How one of FAILURES ends an attempt. Raises OtherClient, which ends the run, as it is."""
        match failure:
            case OtherClient():
                raise failure
            case OutOfTime():
                return _fault(AttemptOutcome.FINISHED, FinishReason.AGENT_ERROR, failure)
            case ToolsRefused():
                return cls(outcome=AttemptOutcome.TOOLS_REFUSED, cause=str(failure))
            case AgentRefused() | Unauthorized():
                return cls(outcome=AttemptOutcome.UNAUTHORIZED, cause=str(failure))
            case ConversationLost():
                return _fault(AttemptOutcome.DIVERGED, FinishReason.TASK_ERROR, failure)
            case AgentUnavailable():
                return _fault(AttemptOutcome.FINISHED, FinishReason.AGENT_ERROR, failure)
            case BudgetExhausted():
                return cls(outcome=AttemptOutcome.BUDGET, cause=str(failure))
            case EndpointDown():
                return cls(outcome=AttemptOutcome.ENDPOINT_DOWN, cause=str(failure))
            case NoCapacity() | DigestDiffers() | ServerAway():
                return cls(outcome=AttemptOutcome.PUT_BACK, cause=str(failure))
            case Diverged():
                return _fault(AttemptOutcome.DIVERGED, FinishReason.TASK_ERROR, failure)
            case SessionLost():
                return _fault(AttemptOutcome.LOST, FinishReason.TASK_ERROR, failure)
            case _:
                return _fault(AttemptOutcome.FAILED, FinishReason.TASK_ERROR, failure)

    def fault(self) -> str | None:
        """The kind of fault, for counts: the outcome, or for `finished` the finish's reason; None for a score."""
        if self.outcome is not AttemptOutcome.FINISHED:
            return str(self.outcome.value)
        assert self.finish is not None
        return str(self.finish.reason) if self.finish.reason.is_fault else None


def _fault(outcome: AttemptOutcome, reason: FinishReason, failure: Exception) -> AttemptEnd:
    return AttemptEnd(outcome=outcome, finish=Finish.fault(reason, str(failure)), cause=str(failure))
