"""What a store keeps, as values."""

from pydantic import Field, JsonValue

from environments.types import Value
from task_server.protocol import Act, Stop

DIVERGED = "diverged"
"""The outcome of an attempt whose replay observed something else: its journal is of no more use."""


class TaskRecord(Value):
    """What a task was when the run began."""

    environment: str
    digest: str
    samples: int
    comparable: str | None = None


class Manifest(Value):
    """What a run is: the plan it was last played with, and the digests of everything that shapes its trials."""

    version: str
    plan_path: str
    plan: dict[str, JsonValue]
    overrides: tuple[str, ...] = ()
    """The `--set` options of the run and its resumes, in order."""
    identity: dict[str, JsonValue]
    limit: int | None = None
    """Samples per task, where `--limit` cut them."""
    tasks: dict[str, TaskRecord] = Field(default_factory=dict)

    def digests(self) -> dict[str, str]:
        """task -> the digest that the run began with."""
        return {name: task.digest for name, task in self.tasks.items()}


class Trial(Value):
    """A planned attempt at a sample by an agent; `id` counts from 0 within the run."""

    id: int
    agent: str
    task: str
    sample: str
    epoch: int
    attempts: int = 0


class Turn(Value):
    """A journalled turn: what was observed, what was answered, what it cost."""

    turn: int
    digest: str
    observation: str
    """The observation's JSON text."""
    reply: Act | Stop = Field(discriminator="kind")
    prompt_tokens: int = 0
    completion_tokens: int = 0
    model_seconds: float = 0.0
    tries: int = 0


class PairStanding(Value):
    """How far a pair of agent and task is; `mean` is over its scored trials."""

    agent: str
    task: str
    planned: int
    scored: int
    unscored: int
    mean: float | None
    reasons: dict[str, int]
    turns: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float
