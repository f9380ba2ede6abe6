"""The entries of a plan: its endpoints, agents, tasks and limits."""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, JsonValue, Tag, model_validator

from eval_client.core import RequestsAMinute, TokensAMinute
from eval_client.core.spend import Price, RunLimits
from proctor.config.problems import FieldError
from proctor.config.task import TaskDefinition
from proctor.config.wording import NAME
from proctor.environment import PolicyKind, SampleSelection
from proctor.llm.config import EndpointFields, ModelName, ReplicaEntry, RequestForm, no_key, url
from proctor.registry import AGENT_KINDS, entry_points
from proctor.types import Value

Name = Annotated[str, Field(pattern=NAME)]
COMMAND_S = 3600.0
"""Longest time of a trial of a command, where `limits.trial.seconds` is not set."""


def _name_or_url(text: str) -> str:
    return url(text) if "://" in text else text


class Endpoint(EndpointFields):
    """An endpoint, and the limits that its agents share."""

    name: Name
    concurrency: int = Field(default=16, ge=1, le=10_000)
    """Trials in flight at once over all agents of this endpoint, at each replica; halved by a 429, growing back with
    success."""
    rpm: RequestsAMinute | None = None
    """Requests a minute, repeated ones counted."""
    tpm: TokensAMinute | None = None
    """Tokens a minute, prompts and completions together."""
    shared: bool = True
    """Whether the limits above hold for all runs together that use this URL with this key."""

    def divided(self, of: int) -> "Endpoint":
        """What a part of a plan in `of` parts may use of it: at least one trial, request and token."""
        limits = {name: getattr(self, name) for name in ("concurrency", "rpm", "tpm")}
        return self.model_copy(update={name: limit and max(1, limit // of) for name, limit in limits.items()})

    def at(self, replica: ReplicaEntry) -> "Endpoint":
        """What holds for one of the replicas alone."""
        concurrency = replica.concurrency or self.concurrency
        return self.model_copy(update={"base_url": replica.base_url, "concurrency": concurrency, "replicas_file": None})


CommandWords = Annotated[
    tuple[Annotated[str, Field(min_length=1), AfterValidator(no_key)], ...],
    Field(exclude_if=lambda words: not words),
]
"""A program and its arguments; no shell reads them."""
COMMAND_EXAMPLE = '[claude, -p, "{prompt}", --mcp-config, "{mcp_config}"]'


def agent_kind(name: str) -> Any:
    """What plays agents of a kind, an `AgentKind`; None where its package is not installed."""
    return next((entry.load() for entry in entry_points(AGENT_KINDS, name)), None)


class AgentEntry(RequestForm):
    """An agent under test: a model behind an endpoint, one of Proctor's built-in agents, or a command."""

    name: Name
    """Its name in reports; the model's name where `model` is absent."""
    kind: Annotated[Literal["command", "installed"] | None, Field(exclude_if=lambda kind: kind is None)] = None
    """`command`: a program that owns its loop, such as a coding agent; it plays by an MCP server. `installed`: one that
    runs in the container of a task of `environment: harbor`, and asks `model` at `endpoint`. Both: extra `bridges`."""
    command: CommandWords = ()
    """The program and its arguments, filled in for each trial: `{prompt}`; of a command `{mcp_config}` (a file) and
    `{url}`; of an installed agent `{model}`, and its endpoint's `{url}` and `{key}`, which its environment has too."""
    install: Annotated[str | None, Field(min_length=1, exclude_if=lambda code: code is None)] = None
    """Bash code that installs an agent of `kind: installed`, run once for each task's image."""
    function: Annotated[str | None, Field(exclude_if=lambda function: function is None)] = None
    """A function or a class of your own, `./agent.py:answer` or `module:answer`, which this client calls."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict, exclude_if=lambda parameters: not parameters)
    """What a `function` gets by name with each call, a class when it is made."""
    builtin: PolicyKind | Literal["function"] | None = None
    """A built-in agent. Without `endpoint`, an agent server is started for this run. `function` is a Python function:
    that of the field `function`, else one that `proctor.evaluate` was given."""
    endpoint: Annotated[str, AfterValidator(_name_or_url)] | None = None
    """The name of an entry in `endpoints`, or a base URL."""
    model: ModelName | None = None
    """The model's name at the endpoint; the agent's own name if absent."""
    concurrency: Annotated[int | None, Field(ge=1, le=10_000, exclude_if=lambda value: value is None)] = None
    """Trials of this agent in flight at once. If absent, as many as its endpoint takes; 4 of a command, 64 of a plain
    Python function, 256 of an async one and of a built-in agent."""
    metadata: bool = False
    """Send task, sample, conversation, seed, epoch and turn with each request; built-in agents need them."""
    price: Price | None = None
    """What its tokens cost; none for built-in agents."""

    @model_validator(mode="before")
    @classmethod
    def _function_is_built_in(cls, given: object) -> object:
        if isinstance(given, dict) and given.get("function") is not None:
            return {"builtin": "function", **given}
        return given

    @model_validator(mode="after")
    def _function_is_named(self) -> Self:
        if not self.is_function and self.function is None:
            if self.parameters:
                raise FieldError(("parameters",), "is for a `function`; name one, or leave it out")
            return self
        if (self.endpoint is None) != (self.model is None):
            lacks = "model" if self.model is None else "endpoint"
            raise FieldError((lacks,), "missing; a function that asks a model has both `endpoint` and `model`")
        if self.function is None:
            return self
        if not self.function.rpartition(":")[0]:
            raise FieldError(("function",), "write the file and the name in it: ./agent.py:answer")
        if self.builtin != "function":
            raise FieldError(("builtin",), "stands beside `function`; leave one of them out")
        return self

    @model_validator(mode="after")
    def _command_is_whole(self) -> Self:
        if self.kind is None:
            for field in ("command", "install"):
                if getattr(self, field):
                    kind = "command" if field == "command" else "installed"
                    raise FieldError((field,), f"is for `kind: {kind}`; add that, or leave it out")
            return self
        if not self.command:
            text = f"missing; list the program and its arguments, such as {COMMAND_EXAMPLE}"
            raise FieldError(("command",), text)
        if (kind := agent_kind(self.kind)) is not None:
            kind.check(self.command)
        others = ("endpoint", "price", "install") if self.is_command else ()
        for field in ("function", "builtin", "sampling", "metadata", *others):
            if getattr(self, field):
                raise FieldError((field,), f"an agent of `kind: {self.kind}` has none; leave it out")
        return self

    def relative_to(self, folder: Path) -> Self:
        """The same agent; its function's file is resolved against a folder, and may be loaded from now on."""
        if self.function is None:
            return self
        from proctor.own_files.loading import admit  # 35 ms that other plans do without

        return self.model_copy(update={"function": admit(self.function, folder)})

    @property
    def is_function(self) -> bool:
        """Whether the agent is a Python function of the process that runs the client."""
        return self.builtin == "function"

    @property
    def is_scaffold(self) -> bool:
        """Whether the agent is a Python function that asks a model behind an endpoint."""
        return self.is_function and self.endpoint is not None

    @property
    def is_command(self) -> bool:
        """Whether the agent is a program that this client starts."""
        return self.kind == "command"

    @property
    def is_installed(self) -> bool:
        """Whether the agent is a program in a task's container that asks a model behind an endpoint."""
        return self.kind == "installed"

    @property
    def harness(self) -> str:
        """The name of the program that owns the agent's loop, of one with a command."""
        return Path(self.command[0]).name

    @property
    def is_model(self) -> bool:
        """Whether the agent is a model behind an endpoint, or a function or a program around one."""
        return self.is_scaffold or (self.builtin is None and not self.is_command)

    @property
    def policy(self) -> PolicyKind | None:
        """The environment policy that the agent plays by; None for a model and for a Python function."""
        return None if self.builtin == "function" else self.builtin

    @property
    def sends_metadata(self) -> bool:
        """Whether requests have the trial's metadata."""
        return self.metadata or self.policy is not None


class RemoteTask(Value):
    """A task that is defined at the plan's controller."""

    name: Name
    samples: SampleSelection | None = Field(default=None, exclude_if=lambda selection: selection is None)
    """Which of the samples to play."""

    def shape(self) -> dict[str, JsonValue]:
        """The known fields that shape a trial; the digest from the controller covers the others."""
        return {"name": self.name}


def _kind_of_task(given: object) -> str:
    """A task without an environment or its fields is the controller's."""
    if isinstance(given, dict):
        return "remote" if given.keys() <= RemoteTask.model_fields.keys() else "local"
    return "remote" if isinstance(given, RemoteTask) else "local"


AnyTask = Annotated[
    Annotated[TaskDefinition, Tag("local")] | Annotated[RemoteTask, Tag("remote")], Discriminator(_kind_of_task)
]


class Assignment(Value):
    """Every agent listed plays every task listed."""

    agents: tuple[Name, ...] = Field(min_length=1)
    tasks: tuple[Name, ...] = Field(min_length=1)


class TrialLimits(Value):
    """Limits on one trial. More turns or tokens end it as `turn_limit`; more seconds leave it unscored."""

    turns: int | None = Field(default=None, ge=1)
    """Answers of the agent."""
    tokens: int | None = Field(default=None, ge=1)
    """Prompt and completion tokens of the agent's calls, as the endpoint reports them."""
    seconds: float | None = Field(default=None, gt=0)
    """Time of an attempt since its session started."""


class Limits(Value):
    """Limits on trials, the run, attempts and waiting."""

    trial: TrialLimits = TrialLimits.model_construct()
    run: RunLimits = RunLimits.model_construct()
    attempts: int = Field(default=3, ge=1, le=100)
    """A trial is left unscored after this many attempts that got no further than the one before, per run or resume."""
    patience_s: float = Field(default=60, gt=0)
    """How long a call to a part that is gone is repeated, then how long a task may be without a worker, or without a
    service of its environment, before its trials are left unscored; also how long a task server is waited for before
    its first answer (after it an hour, if that is more)."""


class Local(Value):
    """What to start for a run with `controller: local`."""

    workers: int = Field(default=1, ge=1, le=64)
    """Worker processes."""


class TraceSettings(Value):
    """What spans hold, where spans are recorded."""

    content: bool = False
    """Whether the spans of model calls hold the messages too."""
