"""The records of a store, as values."""

import json
import time
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import BaseModel, Field, JsonValue

from eval_client.core.selection import NO_FILTERS, Filters, part_of
from eval_client.plan.plan import Plan
from eval_client.store.tables import reply_table, run_table, turn_table
from eval_client.store.values import json_object, json_of, parsed
from proctor.session.kept_replies import KeptReply, ModelReply
from proctor.types import Action, Message, TaskProtocol, Usage, Value
from task_server.wire.messages import Act, SampleList, Stop

Record = TypeVar("Record", bound=BaseModel)

DIVERGED = "diverged"
"""The outcome of an attempt whose replay got another observation than the journal has; the journal is not reused."""
INTERRUPTED = "interrupted"
"""The outcome of an attempt that ended with its client, and whose session is gone."""
RETRIED = "retried"
"""The outcome of an attempt with a score that `proctor resume --retry` set aside; its journal is not reused."""
MODEL_CHARS, STOP_CHARS = 255, 64
"""What is kept of a model's name, and of a finish_reason."""
CUT = "length"
"""The finish_reason of an answer that `max_tokens` cut."""


class TaskRecord(Value):
    """A task as it was when the run began."""

    environment: str
    digest: str
    samples: int
    comparable: str | None = None
    """Why scores are not comparable with published ones; None where they are."""
    published_sampling: dict[str, JsonValue] = Field(default_factory=dict)
    """The sampling parameters of the agents' requests behind published scores."""
    protocol: TaskProtocol = "text"
    """How the task takes answers."""
    selection: str = Field(default="", exclude_if=lambda text: not text)
    """How the samples were chosen among the task's, for reports; empty where all are played, and in older runs."""
    source: dict[str, str] = Field(default_factory=dict, exclude_if=lambda source: not source, repr=False)
    """What a world from a user's file was made of: `proctor.own_files.source.OwnSource.files`."""
    scales: dict[str, tuple[float, float]] = Field(default_factory=dict, exclude_if=lambda scales: not scales)
    """The `Environment.scales` of a world from a user's file."""

    @classmethod
    def of(cls, task: SampleList, samples: int, otherwise: str | None, selection: str = "") -> Self:
        """The record of a task; `otherwise` is why scores are not comparable where the task itself says nothing."""
        return cls(
            environment=task.environment,
            digest=task.digest,
            samples=samples,
            comparable=task.comparable or otherwise,
            published_sampling=task.published_sampling,
            protocol=task.protocol,
            selection=selection,
            source=task.source,
            scales=task.scales,
        )


class SeenModel(Value):
    """What a server shows of a model; None where it does not tell."""

    id: str
    root: str | None = None
    max_model_len: int | None = None
    text: str | None = None
    """The beginning of an answer at temperature 0."""
    digest: Annotated[str | None, Field(exclude_if=lambda digest: digest is None)] = None
    """Of an agent server's function: its file, parameters and model."""
    stateful: Annotated[bool, Field(exclude_if=lambda stateful: not stateful)] = False
    """Whether it is an agent that remembers conversations, of an agent server."""


class PlanPart(Value):
    """A fixed part of a plan's samples, which is a run of its own."""

    plan: str
    """The name of the plan's parts together: that of each begins with it."""
    number: int
    """From 1."""
    of: int
    samples: dict[str, dict[str, str]] = Field(repr=False)
    """task -> sample -> its cluster: all that the parts play together, in the plan's order."""

    def part_of(self, task: str, sample: str) -> int:
        """The number of the part that plays a sample."""
        return part_of(task, sample, self.of)

    def has(self, task: str, sample: str) -> bool:
        return self.part_of(task, sample) == self.number

    @property
    def run(self) -> str:
        return part_name(self.plan, self.number, self.of)

    @property
    def siblings(self) -> tuple[str, ...]:
        return tuple(part_name(self.plan, number, self.of) for number in range(1, self.of + 1) if number != self.number)


def part_name(plan: str, number: int, of: int) -> str:
    return f"{plan}.{number}of{of}"


class Addition(Value):
    """What `proctor extend` added to a run."""

    at: str
    """In UTC, as ISO 8601 text."""
    version: str
    """Of Proctor, which added it."""
    what: tuple[str, ...]
    trials: int
    """How many trials it added; of a part of a plan, to this part."""


class Manifest(Value):
    """A run's definition: the plan of its latest start or resume, and digests of everything that shapes its trials."""

    version: str
    id: str = Field(default="", exclude_if=lambda text: not text)
    """32 random hex digits, by which servers know the run whatever its name and store; empty in older runs."""
    plan_path: str
    plan: dict[str, JsonValue]
    overrides: tuple[str, ...] = ()
    """The `--set` options of the run and its resumes, in order."""
    identity: dict[str, JsonValue]
    limit: int | None = None
    """Samples per task, where `--limit` cut them."""
    filters: Filters = Field(default=NO_FILTERS, exclude_if=lambda filters: filters == NO_FILTERS)
    """What was chosen on the command line; a resume narrows the plan in the same way."""
    tasks: dict[str, TaskRecord] = Field(default_factory=dict)
    tags: tuple[str, ...] = Field(default=(), exclude_if=lambda tags: not tags)
    """Words that the run is found by, from its plan and `--tag`."""
    parent: str | None = Field(default=None, exclude_if=lambda parent: parent is None)
    """The run whose answers this run scores again; None for a run of its own answers."""
    owner: str | None = Field(default=None, exclude_if=lambda owner: owner is None)
    """Who began the run: PROCTOR_USER, or the account's name. None in runs of earlier versions."""
    models: dict[str, SeenModel] = Field(default_factory=dict, exclude_if=lambda models: not models)
    """agent -> what its servers showed of its model when the run began, where it may have several."""
    model_notes: tuple[str, ...] = Field(default=(), exclude_if=lambda notes: not notes)
    """How its servers differed, from each other or from those that the run began with; what no resume could check."""
    part: PlanPart | None = Field(default=None, exclude_if=lambda part: part is None)
    """Which part of its plan the run plays; None where it plays the plan in one piece."""
    resumed_at: tuple[str, ...] = Field(default=(), exclude_if=lambda times: not times)
    """When the run was resumed, in UTC, as ISO 8601 text."""
    additions: tuple[Addition, ...] = Field(default=(), exclude_if=lambda additions: not additions)
    """What was added since the run began."""
    order: dict[str, tuple[str, ...]] = Field(default_factory=dict, exclude_if=lambda order: not order, repr=False)
    """task -> its samples in the task's order, where some were added: their trials have later ids."""

    @property
    def alone(self) -> tuple[str, ...]:
        """What to know of a part of a plan that is read alone."""
        if self.part is None:
            return ()
        which = f"only part {self.part.number} of {self.part.of} of the samples"
        return (f"{which}; all parts: proctor report {self.part.plan}",)

    def read_plan(self) -> Plan:
        """The plan as a value. Raises StoreError where a store holds another."""
        return parsed(run_table.c.manifest, Plan.model_validate, self.plan)

    def parameters(self, task: str) -> dict[str, JsonValue] | None:
        """The parameters that shaped a task's trials; None where a controller defines the task."""
        tasks = self.identity.get("tasks")
        shape = tasks.get(task) if isinstance(tasks, dict) else None
        parameters = shape.get("parameters") if isinstance(shape, dict) else None
        return parameters if isinstance(parameters, dict) else None

    def digests(self) -> dict[str, str]:
        """task -> its digest when the run began."""
        return {name: task.digest for name, task in self.tasks.items()}


class Trial(Value):
    """A planned sample for an agent in one epoch; `id` counts from 0 within the run."""

    id: int
    agent: str
    task: str
    sample: str
    epoch: int
    attempts: int = 0
    cluster: str | None = None
    """The name that samples of the same world share; None in runs of schema 2."""


class ModelCall(Value):
    """A call to its model that a function made in a turn."""

    after: int
    """How many messages of the turn's conversation were sent before these."""
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    """The names of the functions that it offered."""
    sampling: dict[str, JsonValue]
    """What it asked for beside what the plan says."""
    action: Action
    prompt_tokens: int
    completion_tokens: int
    model_seconds: float


class TurnFigures(Value):
    """What is known of a turn beside its texts. What an earlier version did not store has its default."""

    turn: int
    digest: str
    """The observation's: equal where two trials were shown the same."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0
    estimated_tokens: int = 0
    billed_tokens: int = 0
    billed_money: float = 0.0
    model_seconds: float = 0.0
    tries: int = 0
    world_seconds: float | None = None
    """From the answer before, or the start of the session, to the observation. None in runs of schema 2."""
    model: str | None = None
    """The model's name as the endpoint reported it."""
    metered: bool | None = None
    """Whether the endpoint reported the usage; else it is estimated, and in runs of earlier versions 0."""
    replica: str | None = None
    """The base URL that answered, where the endpoint has several."""
    calls: tuple[ModelCall, ...] = Field(default=(), exclude_if=lambda calls: not calls)
    """Those that a function made; the turn's tokens are theirs in sum. They have rows of their own."""


class Turn(TurnFigures):
    """A journalled turn: the observation, the agent's reply and their costs."""

    observation: str
    """The observation's JSON text; without `tools` where they are those that its conversation was offered last."""
    reply: Act | Stop = Field(discriminator="kind")
    stop: str | None = None
    """The endpoint's finish_reason; `length` is a reply cut by `max_tokens`. None where the client stopped."""

    @property
    def conversation(self) -> str:
        """The environment's name for the conversation that the turn is of."""
        return str(json_object(self.observation).get("conversation", "main"))

    @property
    def is_cut(self) -> bool:
        """Whether the endpoint cut the answer at `max_tokens`."""
        return self.stop == CUT or (isinstance(self.reply, Act) and self.reply.action.cut)


def record(kind: type[Record], row: Mapping[Any, object], **more: object) -> Record:
    """The record in a row's columns of its fields' names: NULL is a field's default. `more` are other fields."""
    known = {name: row[name] for name in kind.model_fields if row.get(name) is not None}
    return kind.model_validate({**known, **more})


def turn_of(row: Mapping[Any, object]) -> Turn:
    """The turn in a row's columns of these names. Raises StoreError."""
    return parsed(turn_table.c.reply, lambda text: record(Turn, row, reply=json_of(text)), row["reply"])


def answers(turns: Iterable[Turn]) -> int:
    """How many of them the agent answered: the last one of a trial may only hold that it stopped."""
    return sum(isinstance(turn.reply, Act) for turn in turns)


class HelperCost(Value):
    """Calls and tokens of one model on the environment's side (judge, host, user) for one pair, over all its trials."""

    agent: str
    task: str
    model: str
    """The model's name at its endpoint."""
    calls: int
    tokens: Usage


class ReplicaCost(Value):
    """What one of the servers of an agent's endpoint answered, over all trials and attempts."""

    agent: str
    replica: str
    """Its base URL."""
    calls: int
    prompt_tokens: int
    cached_tokens: int
    """0 where the server does not tell them."""
    completion_tokens: int
    seconds: float
    """Of all calls, one after the other."""

    @property
    def tokens_a_second(self) -> float | None:
        """Completion tokens of one call in a second; None where the server reports no usage."""
        return self.completion_tokens / self.seconds if self.completion_tokens and self.seconds else None

    @property
    def cached_share(self) -> float | None:
        """Of the prompt tokens, how many were in the server's cache; None where it does not tell."""
        return self.cached_tokens / self.prompt_tokens if self.cached_tokens and self.prompt_tokens else None


class PairTotals(Value):
    """Progress of a pair of agent and task."""

    agent: str
    task: str
    planned: int
    scored: int
    unscored: int
    mean: float | None = None
    """The mean score over samples of the mean over their scored epochs; None without one."""
    trial_mean: float | None = None
    """The mean over scored trials, which earlier versions took for it: another number where epochs are missing."""
    reasons: dict[str, int]
    declined: int = 0
    """Trials whose input was refused, where the plan scores none of them; among the unscored ones."""
    turns: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int | None = None
    """None in a store of schema 2, as are the reasoning tokens."""
    reasoning_tokens: int | None = None
    cache_write_tokens: int = 0
    estimated_tokens: int = 0
    billed_tokens: int = 0
    billed_money: float = 0.0
    seconds: float = 0.0
    cut_answers: int | None = None
    """Answers that `max_tokens` cut, in trials with a final row; None where one of an earlier version can't tell."""

    @property
    def complete(self) -> bool:
        """Whether all trials have what the plan wants of them: a score, or a refusal that it does not score."""
        return self.scored + self.declined == self.planned

    def tokens(self) -> Usage:
        """The tokens that the pair's final rows cost."""
        return Usage(*(getattr(self, column) or 0 for column in Usage._fields))


def now_text() -> str:
    """The wall clock in UTC as ISO 8601 text, for records; no decision depends on it."""
    return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())


def storable(text: str, length: int) -> str:
    """A name from elsewhere as every database takes it: without NUL characters, cut to a length."""
    return text.replace("\0", "")[:length]


def reply_row(kept: KeptReply) -> dict[str, object]:
    """The columns of a kept reply, without `run`, `trial` and `number`."""
    reply = kept.reply.model_dump()
    reply |= {"text": json.dumps(kept.reply.text), "model": storable(kept.reply.model, MODEL_CHARS)}
    return kept.model_dump(exclude={"reply"}) | reply


def kept_reply(row: Mapping[Any, Any]) -> KeptReply:
    text = parsed(reply_table.c.text, json_of, row["text"])
    return record(KeptReply, row, reply=record(ModelReply, row, text=text))


class JournalledTools:
    """Puts the tools back that a journal leaves out of observations: one for each trial, for its turns in order."""

    def __init__(self) -> None:
        self._last: dict[str, JsonValue] = {}

    def whole(self, observation: str) -> dict[str, JsonValue]:
        """A turn's observation as plain data, with its tools."""
        observed: dict[str, JsonValue] = json_object(observation)
        conversation = str(observed.get("conversation", "main"))
        if "tools" not in observed:
            observed["tools"] = self._last.get(conversation, [])
        elif observed["tools"]:
            self._last[conversation] = observed["tools"]
        return observed
