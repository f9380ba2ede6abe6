"""The plan of a run: its agents, tasks and limits."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, JsonValue, Tag, model_validator

from eval_client.core.limits.rates import RequestsAMinute, TokensAMinute
from eval_client.core.selection import SelectionError, catalogue_of, choose
from eval_client.core.spend import Price, RunLimits, helper
from eval_client.mcp.command import CommandWords, check_command
from eval_client.on_end import OnEnd
from eval_client.price_list import shipped_prices
from proctor.config.patterns import CONTROLLER, NAME, VARIABLE
from proctor.config.problems import FieldError, FieldProblem, refuse_duplicates
from proctor.config.task import TaskDefinition
from proctor.config.wording import nearest
from proctor.config.yaml import Document, FieldErrors, FileError, parse, read_text
from proctor.environment import PolicyKind, missing_policies
from proctor.http.tls import Tls
from proctor.llm.config import ModelName, RequestForm, RequestLimits, VariableName, plain_url
from proctor.samples import SampleSelection
from proctor.types import Value

Name = Annotated[str, Field(pattern=NAME)]
BUILTIN_ENDPOINT = "built-in"
COMMAND_ENDPOINT = "commands"
DEFAULT_ENDPOINT = "default"
COMMAND_S = 3600.0
"""Longest time of a trial of a command, where `limits.trial.seconds` is not set."""


def _url(text: str) -> str:
    plain_url(text)
    return text


def _name_or_url(text: str) -> str:
    return _url(text) if "://" in text else text


Url = Annotated[str, AfterValidator(_url)]


class Endpoint(RequestLimits):
    """An OpenAI-compatible endpoint, and the limits that its agents share."""

    name: Name
    base_url: Url | None = None
    """Up to and including `/v1`; `OPENAI_BASE_URL` if absent."""
    api_key_env: VariableName = "OPENAI_API_KEY"
    """The NAME of the environment variable that holds the key. A plan never holds keys."""
    concurrency: int = Field(default=16, ge=1, le=10_000)
    """Trials in flight at once over all agents of this endpoint; halved by a 429, growing back with success."""
    rpm: RequestsAMinute | None = None
    """Requests a minute, repeated ones counted."""
    tpm: TokensAMinute | None = None
    """Tokens a minute, prompts and completions together."""
    shared: bool = True
    """Whether the limits above hold for all runs together that use this URL with this key."""


class AgentEntry(RequestForm):
    """An agent under test: a model behind an endpoint, one of Proctor's built-in agents, or a command."""

    name: Name
    """Its name in reports; the model's name where `model` is absent."""
    kind: Annotated[Literal["command"] | None, Field(exclude_if=lambda kind: kind is None)] = None
    """`command`: a program that owns its loop, such as a coding agent; it plays by an MCP server."""
    command: CommandWords = ()
    """The program and its arguments; `{prompt}`, `{mcp_config}` (a file) and `{url}` are filled in for each trial."""
    builtin: PolicyKind | Literal["function"] | None = None
    """A built-in agent. Without `endpoint`, an agent server is started for this run. `function` is a Python function
    that `proctor.evaluate` was given."""
    endpoint: Annotated[str, AfterValidator(_name_or_url)] | None = None
    """The name of an entry in `endpoints`, or a base URL."""
    model: ModelName | None = None
    """The model's name at the endpoint; the agent's own name if absent."""
    concurrency: int = Field(default=16, ge=1, le=10_000)
    """Trials of this agent in flight at once."""
    metadata: bool = False
    """Send task, sample, conversation, seed, epoch and turn with each request; built-in agents need them."""
    price: Price | None = None
    """What its tokens cost; none for built-in agents."""

    @model_validator(mode="after")
    def _command_is_whole(self) -> Self:
        if self.kind is None:
            if self.command:
                raise FieldError(("command",), "is for `kind: command`; add that, or leave it out")
            return self
        check_command(self.command)
        for field in ("builtin", "endpoint", "sampling", "metadata", "price"):
            if getattr(self, field):
                raise FieldError((field,), "an agent of `kind: command` has none; leave it out")
        return self

    @property
    def is_function(self) -> bool:
        """Whether the agent is a Python function of the process that runs the client."""
        return self.builtin == "function"

    @property
    def is_command(self) -> bool:
        """Whether the agent is a program that this client starts."""
        return self.kind == "command"

    @property
    def harness(self) -> str:
        """The name of the program of a command, which owns the agent's loop."""
        return Path(self.command[0]).name

    @property
    def is_model(self) -> bool:
        """Whether the agent is a model behind an endpoint."""
        return self.builtin is None and not self.is_command

    @property
    def policy(self) -> PolicyKind | None:
        """The environment policy that the agent plays by; None for a model and for a Python function."""
        return None if self.builtin == "function" else self.builtin

    @property
    def sends_metadata(self) -> bool:
        """Whether requests have the trial's metadata."""
        return self.metadata or self.builtin is not None


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
    """How long a call to a part that is gone is repeated, then how long a task may be without a worker before its
    trials are left unscored; also how long an endpoint that never answered is silent until its trials wait for it."""


class Local(Value):
    """What to start for a run with `controller: local`."""

    workers: int = Field(default=1, ge=1, le=64)
    """Worker processes."""


class TraceSettings(Value):
    """What spans hold, where spans are recorded."""

    content: bool = False
    """Whether the spans of model calls hold the messages too."""


class Plan(Value):
    """A run: agents by tasks by samples by epochs."""

    name: Name = "run"
    """The first part of the run's name."""
    tags: tuple[Name, ...] = ()
    """Words to find the run by, beside those of `proctor run --tag`."""
    seed: int = 0
    """The seeds of trials are derived from it by task, sample and epoch, equal for all agents."""
    epochs: int = Field(default=1, ge=1, le=1000)
    """How often each agent plays each sample."""
    controller: str = Field(default="local", pattern=CONTROLLER)
    """`local`: workers are started for this run and stopped after it. Else a controller's or a lone worker's URL."""
    token_env: str = Field(default="PROCTOR_TOKEN", pattern=VARIABLE)
    """The NAME of the environment variable with the controller's bearer token."""
    tls: Tls = Tls.model_construct()
    """PEM files: authorities to trust besides the usual ones, and our own certificate for servers that require one."""
    route: Literal["auto", "relayed"] = "auto"
    """`auto`: turns go straight to the worker that holds the session where it can be reached, which is tried again
    after 10 s to 5 min where not, else through the controller; `relayed`: always through the controller."""
    local: Local = Local.model_construct()
    endpoints: tuple[Endpoint, ...] = ()
    agents: tuple[AgentEntry, ...] = Field(min_length=1)
    tasks: tuple[AnyTask, ...] = Field(min_length=1)
    assignments: tuple[Assignment, ...] = ()
    """If empty, every agent plays every task."""
    limits: Limits = Limits.model_construct()
    traces: TraceSettings = TraceSettings.model_construct()
    prices: dict[ModelName, Price] = Field(default_factory=dict)
    """Prices of helper models (judges, hosts, users) by the model's name as its endpoint reports it, or the beginning
    of it; agents have a `price` of their own."""
    price_list: Annotated[Literal["shipped"] | None, Field(exclude_if=lambda name: name is None)] = None
    """`shipped`: agents without a `price` have that of their model in Proctor's own list, where it is there."""
    on_end: OnEnd = ()
    """A command to run when the run ends, as a list of words."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        refuse_duplicates("agents", [agent.name for agent in self.agents])
        refuse_duplicates("tasks", [task.name for task in self.tasks])
        refuse_duplicates("endpoints", [endpoint.name for endpoint in self.endpoints])
        return self

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        agents, tasks = {agent.name for agent in self.agents}, {task.name for task in self.tasks}
        for index, assignment in enumerate(self.assignments):
            _known(("assignments", index, "agents"), assignment.agents, agents)
            _known(("assignments", index, "tasks"), assignment.tasks, tasks)
        endpoints = {endpoint.name for endpoint in self.endpoints}
        for agent in self.agents:
            if agent.is_function and agent.endpoint is not None:
                raise FieldError(("agents", agent.name, "endpoint"), "a function has none; leave it out")
            if agent.endpoint is not None and not agent.endpoint.startswith(("http://", "https://")):
                _known(("agents", agent.name, "endpoint"), (agent.endpoint,), endpoints)
        return self

    @model_validator(mode="after")
    def _remote_tasks_have_a_controller(self) -> Self:
        remote = {task.name for task in self.tasks if isinstance(task, RemoteTask)}
        if remote and self.controller == "local":
            raise FieldError(
                ("tasks", min(remote)), "no `environment`; add one, or set `controller` to a URL that serves it"
            )
        for name, task in self.pairs():
            agent = self.agent(name)
            if task in remote and agent.policy is not None and agent.endpoint is None:
                raise FieldError(
                    ("agents", name),
                    f"a built-in agent must know task {task!r}; add the task's `environment` and data, or the "
                    "agent's `endpoint`",
                )
        return self

    @model_validator(mode="after")
    def _money_has_prices(self) -> Self:
        if self.limits.run.money is not None:
            for agent in self.agents:
                if agent.is_command:
                    text = f"the tokens of agent {agent.name!r}, a command, are unknown; leave this limit out"
                    raise FieldError(("limits", "run", "money"), text)
                if agent.is_model and self.price_of(agent) is None:
                    text = f"agent {agent.name!r} has no `price`; add one, or limit tokens"
                    raise FieldError(("limits", "run", "money"), text)
        return self

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The (agent, task) pairs to play, each once, in the plan's order."""
        if not self.assignments:
            return tuple((agent.name, task.name) for agent in self.agents for task in self.tasks)
        listed = ((a, t) for assignment in self.assignments for a in assignment.agents for t in assignment.tasks)
        return tuple(dict.fromkeys(listed))

    def agent(self, name: str) -> AgentEntry:
        """The agent of this name."""
        return next(agent for agent in self.agents if agent.name == name)

    def endpoint_of(self, agent: AgentEntry) -> Endpoint:
        """The endpoint of an agent. If the agent names a URL or none, this makes an endpoint with a name of its own."""
        if agent.is_command:
            return Endpoint(name=COMMAND_ENDPOINT, concurrency=10_000, shared=False)
        if agent.endpoint is None:
            if agent.builtin is not None:
                return Endpoint(name=BUILTIN_ENDPOINT, concurrency=10_000, shared=False)
            return Endpoint(name=DEFAULT_ENDPOINT)
        for endpoint in self.endpoints:
            if endpoint.name == agent.endpoint:
                return endpoint
        digest = hashlib.blake2b(agent.endpoint.encode(), digest_size=4).hexdigest()
        return Endpoint(name=f"url-{digest}", base_url=agent.endpoint)

    def price_of(self, agent: AgentEntry) -> Price | None:
        """The price of an agent's tokens; None if it is not known."""
        if agent.price is not None or self.price_list is None or not agent.is_model:
            return agent.price
        return shipped_prices().price(agent.model or agent.name)

    def trial_limits(self, agent: str) -> TrialLimits:
        """The limits on a trial of an agent; a command always has one on its time."""
        limits = self.limits.trial
        if limits.seconds is not None or not self.agent(agent).is_command:
            return limits
        return limits.model_copy(update={"seconds": COMMAND_S})

    def price_note(self) -> str | None:
        """Which list prices are from, for reports; None if all are the plan's own."""
        if self.price_list is None:
            return None
        shipped = shipped_prices()
        return f"prices: Proctor's list of {shipped.date} ({shipped.currency}), where the plan has none"

    def all_prices(self) -> dict[str, Price]:
        """Prices of agents by name, and of environment models by `helper(model)`."""
        priced = {agent.name: self.price_of(agent) for agent in self.agents}
        agents = {name: price for name, price in priced.items() if price is not None}
        return {**agents, **{helper(model): price for model, price in self.prices.items()}}

    def definitions(self) -> tuple[TaskDefinition, ...]:
        """The tasks that this plan defines itself."""
        return tuple(task for task in self.tasks if isinstance(task, TaskDefinition))

    def played_here(self) -> tuple[TaskDefinition, ...]:
        """The tasks whose data this machine reads: all if it runs the workers, else those of its built-in agents."""
        own = {agent.name for agent in self.agents if agent.policy is not None and agent.endpoint is None}
        wanted = {task for agent, task in self.pairs() if agent in own}
        return tuple(task for task in self.definitions() if self.controller == "local" or task.name in wanted)

    def playing(self, task: str) -> dict[str, PolicyKind | None]:
        """agent -> its policy (None for a model or a function), for the agents that play a task"""
        return {agent: self.agent(agent).policy for agent, name in self.pairs() if name == task}

    def identity(self) -> dict[str, JsonValue]:
        """Everything that shapes a trial, as plain data: a resumed run must not change it.

        Concurrency, prices, the controller's address, patience and the run's own limits may change. So may paths, since
        the digests of the data there are compared.
        """
        full = self.model_dump(mode="json")
        operational = {"concurrency", "api_key_env", "price", "capacity", "rpm", "tpm", "shared", "max_tokens_field"}
        operational |= RequestLimits.model_fields.keys()
        return {
            "seed": full["seed"],
            "epochs": full["epochs"],
            "agents": _by_name(full["agents"], operational),
            "endpoints": _by_name(full["endpoints"], operational),
            "tasks": {
                task.name: task.shape() if isinstance(task, TaskDefinition) else {"name": task.name}
                for task in self.tasks
            },
            "pairs": sorted(f"{agent} x {task}" for agent, task in self.pairs()),
            "limits": {"trial": full["limits"]["trial"]},
            **_selections(self.tasks),
        }


def _selections(tasks: Sequence[TaskDefinition | RemoteTask]) -> dict[str, JsonValue]:
    """The samples that tasks choose, for `identity`; empty where no task chooses any, as in older plans."""
    chosen: dict[str, JsonValue] = {
        task.name: task.samples.model_dump(mode="json") for task in tasks if task.samples is not None
    }
    return {"samples": chosen} if chosen else {}


def _known(field: tuple[int | str, ...], names: Sequence[str], known: set[str]) -> None:
    for name in names:
        if name not in known:
            close = nearest(name, known)
            meant = f"; did you mean {close}?" if close else ""
            raise FieldError(field, f"unknown name {name!r}; known are: {', '.join(sorted(known)) or 'none'}{meant}")


def _by_name(entries: Sequence[dict[str, JsonValue]], leave_out: set[str]) -> JsonValue:
    return {
        str(entry["name"]): {key: value for key, value in entry.items() if key not in leave_out} for entry in entries
    }


def load_plan(path: Path, overrides: Sequence[str] = (), narrow: Callable[[Plan], Plan] = lambda plan: plan) -> Plan:
    """The plan in a YAML file; paths are relative to the file. `narrow` may leave parts of it out.

    Also checks the data that this machine plays: see `check_data`. Raises FileError.
    """
    document = Document(read_text(path), str(path), overrides)
    plan = document.read(Plan)
    with document.located():
        plan = narrow(placed(plan, path.resolve().parent))
        if plan.tls != Tls():
            plan.tls.context()
        check_data(plan)
    return plan


def check_data(plan: Plan) -> None:
    """Raises FieldErrors where the data that this machine plays, or a built-in agent, do not fit the tasks."""
    problems = [problem for task in plan.played_here() for problem in _data_problems(plan, task)]
    if problems:
        raise FieldErrors(problems)


def _data_problems(plan: Plan, task: TaskDefinition) -> Sequence[FieldProblem]:
    """What is wrong with a task's data, or with the built-in agents that are to play it."""
    playing = plan.playing(task.name)
    try:
        environment = task.opened()
        if task.samples is not None:
            choose(task.name, catalogue_of(environment), task.samples)
    except FieldErrors as error:
        return error.problems
    except SelectionError as error:
        return [FieldProblem(("tasks", task.name, "samples", *error.where), error.text)]
    missing = missing_policies(environment, playing.values())
    return [
        FieldProblem(
            ("agents", agent, "builtin"),
            f"the environment {task.environment} of task {task.name!r} has no {kind} policy; list the pairs to play "
            f"without this one under `assignments`, or give the environment a method `{kind}`",
        )
        for agent, kind in playing.items()
        if kind in missing
    ]


def read_plan(path: Path, overrides: Sequence[str] = ()) -> Plan:
    """The plan in a YAML file, without its data being checked; paths are relative to the file. Raises FileError."""
    document = Document(read_text(path), str(path), overrides)
    plan = document.read(Plan)
    with document.located():
        return placed(plan, path.resolve().parent)


def placed(plan: Plan, folder: Path) -> Plan:
    """The same plan with all paths resolved against a folder, normally that of the plan's file. Raises FieldErrors."""
    tasks = tuple(task.relative_to(folder) if isinstance(task, TaskDefinition) else task for task in plan.tasks)
    return plan.model_copy(update={"tasks": tasks, "tls": plan.tls.relative_to(folder)})


def with_overrides(plan: Plan, overrides: Sequence[str]) -> Plan:
    """A recorded plan with `a.b.c=value` overrides. Raises FileError."""
    return parse(json.dumps(plan.model_dump(mode="json", exclude_none=True)), "the recorded plan", Plan, overrides)


def with_tags(plan: Plan, tags: Sequence[str]) -> Plan:
    """A plan with further tags. Raises FileError."""
    for tag in tags:
        if not re.fullmatch(NAME, tag):
            raise FileError(f"--tag {tag}: use up to 64 letters, digits, dots, dashes and underscores")
    return plan.model_copy(update={"tags": (*plan.tags, *tags)})


def differences(before: JsonValue, after: JsonValue, path: str = "") -> list[str]:
    """The differences of two pieces of plain data, each as `field: before -> after`."""
    if isinstance(before, dict) and isinstance(after, dict):
        lines: list[str] = []
        for key in sorted(before.keys() | after.keys()):
            lines += differences(before.get(key), after.get(key), f"{path}.{key}" if path else key)
        return lines
    return [] if before == after else [f"{path}: {before!r} -> {after!r}"]


def trial_seed(plan_seed: int, task: str, sample: str, epoch: int) -> int:
    """The seed of a trial, from 0 to 2**63-1; the same for all agents, so that they can be compared in pairs."""
    text = f"{plan_seed}\0{task}\0{sample}\0{epoch}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1
