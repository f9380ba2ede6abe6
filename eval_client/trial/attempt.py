"""How an attempt ended, as data. Only here are its failures classified."""

from eval_client.core.events import Outcome
from eval_client.endpoints.endpoints import BudgetExhausted
from eval_client.endpoints.outage import EndpointDown
from eval_client.store.journal import WriteRefused
from eval_client.trial.episode import Diverged, Episode, OutOfTime
from proctor.environment import AgentRefused, AgentUnavailable, ToolsRefused
from proctor.types import Finish, FinishReason, Value
from task_server.wire.errors import DigestDiffers, NoCapacity, SessionLost, TaskServerError


class AttemptEnd(Value):
    """An outcome with its finish, that of a fault included; an outcome without one has only its cause."""

    outcome: Outcome
    finish: Finish | None = None
    cause: str = ""

    def fault(self) -> str | None:
        """The kind of fault, for counts: the outcome, or for `finished` the finish's reason; None for a score."""
        if self.outcome is not Outcome.FINISHED:
            return str(self.outcome.value)
        assert self.finish is not None
        return str(self.finish.reason) if self.finish.reason.is_fault else None


def _fault(outcome: Outcome, reason: FinishReason, error: object) -> AttemptEnd:
    return AttemptEnd(outcome=outcome, finish=Finish.fault(reason, str(error)), cause=str(error))


async def attempt(episode: Episode) -> AttemptEnd:
    """Play an episode and classify how it ended. Raises what is no failure of the attempt, such as Fenced."""
    try:
        return AttemptEnd(outcome=Outcome.FINISHED, finish=await episode.play())
    except OutOfTime as late:
        return _fault(Outcome.FINISHED, FinishReason.AGENT_ERROR, late)
    except ToolsRefused as refused:
        return AttemptEnd(outcome=Outcome.TOOLS_REFUSED, cause=str(refused))
    except AgentRefused as refused:
        return AttemptEnd(outcome=Outcome.REFUSED, cause=str(refused))
    except AgentUnavailable as unavailable:
        return _fault(Outcome.FINISHED, FinishReason.AGENT_ERROR, unavailable)
    except BudgetExhausted as exhausted:
        return AttemptEnd(outcome=Outcome.BUDGET, cause=str(exhausted))
    except EndpointDown as down:
        return AttemptEnd(outcome=Outcome.ENDPOINT_DOWN, cause=str(down))
    except (NoCapacity, DigestDiffers) as not_now:
        return AttemptEnd(outcome=Outcome.PUT_BACK, cause=str(not_now))
    except Diverged as diverged:
        return _fault(Outcome.DIVERGED, FinishReason.TASK_ERROR, diverged)
    except SessionLost as lost:
        return _fault(Outcome.LOST, FinishReason.TASK_ERROR, lost)
    except WriteRefused as refused:
        return _fault(Outcome.FAILED, FinishReason.TASK_ERROR, refused)
    except TaskServerError as failed:
        return _fault(Outcome.FAILED, FinishReason.TASK_ERROR, failed)
