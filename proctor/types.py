"""The values that travel between the parts and are stored.

All are frozen and refuse unknown fields, so a value that exists is a valid one.
"""

import hashlib
from enum import StrEnum
from typing import ClassVar, Literal

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from proctor.observability.redaction import redacted


class Value(BaseModel):
    """A frozen value without behaviour; equal when its fields are equal."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    operational: ClassVar[frozenset[str]] = frozenset()
    """Fields that shape no trial: a resumed run may change them."""


class ToolCall(Value):
    """A function the agent asks to be run, as in OpenAI Chat Completions."""

    id: str
    name: str
    arguments: str
    """The JSON text exactly as the model wrote it; it may be malformed."""


class Tool(Value):
    """A function offered to the agent; `parameters` is a JSON Schema object."""

    name: str
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)


class Message(Value):
    """One chat message, as in OpenAI Chat Completions."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


class Observation(Value):
    """What the agent is told next: only the messages that are new since its last action."""

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    conversation: str = "main"
    """Which of the session's histories the messages belong to."""
    fresh: bool = False
    """True: forget the conversation's history first."""

    def digest(self) -> str:
        """16 hex digits that agree exactly when two observations are equal."""
        return hashlib.blake2b(pydantic_core.to_json(self), digest_size=8).hexdigest()


class Action(Value):
    """What the agent answers to an observation."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()

    def message(self) -> Message:
        """The action as the assistant message that a transcript keeps."""
        return Message(role="assistant", content=self.content, tool_calls=self.tool_calls)


class FinishReason(StrEnum):
    """Why a session ended: AgentBench's validity classes (arXiv 2308.03688, section 4.2) and two faults."""

    COMPLETED = "completed"
    TURN_LIMIT = "turn_limit"
    INVALID_FORMAT = "invalid_format"
    INVALID_ACTION = "invalid_action"
    CONTEXT_LIMIT = "context_limit"
    AGENT_ERROR = "agent_error"
    TASK_ERROR = "task_error"

    @property
    def is_fault(self) -> bool:
        """True where the service failed, not the agent: such a finish has no score."""
        return self in (FinishReason.AGENT_ERROR, FinishReason.TASK_ERROR)


class Finish(Value):
    """The end of a session. A fault has no score; everything else has one."""

    reason: FinishReason
    score: float | None = Field(default=None, ge=0.0, le=1.0)
    """The primary measure of this sample, from 0 to 1."""
    metrics: dict[str, float] = Field(default_factory=dict)
    """Further measures of this sample, by name."""
    detail: dict[str, JsonValue] = Field(default_factory=dict)
    """Evidence for a reader and for `Environment.summarize`; a fault's cause stands under "cause"."""

    @model_validator(mode="after")
    def _score_unless_fault(self) -> "Finish":
        if self.reason.is_fault != (self.score is None):
            raise ValueError("a fault (agent_error, task_error) has no score, every other finish has one")
        return self

    @classmethod
    def fault(cls, reason: FinishReason, cause: str) -> "Finish":
        """A finish that says the service failed, and why, without any secret."""
        return cls(reason=reason, detail={"cause": redacted(cause)})


class Summary(Value):
    """What an environment says about many finishes of one task."""

    primary: str
    """Which of `metrics` is the one to compare agents by; it may be missing only where no finish is completed."""
    metrics: dict[str, float]
    """A metric over an empty group is absent, never 0."""
    standard_error: float | None = None
    """Of the primary metric; None where too few trials are scored. Environments leave it to `proctor.summary`."""
    notes: tuple[str, ...] = ()
    """What a reader must know beside the numbers, one sentence each."""
