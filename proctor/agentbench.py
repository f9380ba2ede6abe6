"""AgentBench's words for how a session stands, on the wires of v0.2 and of AgentRL."""

from proctor.types import FinishReason

RUNNING = "running"
CANCELLED = "cancelled"
TASK_ERROR = "task error"

STATUS: dict[FinishReason, str] = {
    FinishReason.COMPLETED: "completed",
    FinishReason.TURN_LIMIT: "task limit reached",
    FinishReason.INVALID_FORMAT: "agent validation failed",
    FinishReason.INVALID_ACTION: "agent invalid action",
    FinishReason.CONTEXT_LIMIT: "agent context limit",
    FinishReason.TASK_ERROR: TASK_ERROR,
    FinishReason.AGENT_ERROR: TASK_ERROR,
}
REASON: dict[str, FinishReason] = {status: reason for reason, status in STATUS.items() if not reason.is_fault}
"""The reason of each status with a score. All other statuses of an end are faults."""
