"""The plan of a run: who plays what, within which limits."""

import copy
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import Field, JsonValue, ValidationInfo, field_validator, model_validator

from eval_client.core.spend import Price, helper
from eval_client.plan.entries import (
    COMMAND_S,
    AgentEntry,
    AnyTask,
    Assignment,
    CommandWords,
    Endpoint,
    Limits,
    Local,
    Name,
    RemoteTask,
    TraceSettings,
    TrialLimits,
    agent_kind,
)
from proctor.config.problems import FieldError, refuse_duplicates
from proctor.config.task import TaskDefinition
from proctor.config.wording import CONTROLLER, VARIABLE, nearest
from proctor.environment import PolicyKind
from proctor.http.tls import Tls
from proctor.llm.config import ChatConfig, ModelName, check_dialect
from proctor.tables.table import counted
from proctor.types import Value

BUILTIN_ENDPOINT = "built-in"
COMMAND_ENDPOINT = "commands"
DEFAULT_ENDPOINT = "default"
COMMANDS_AT_ONCE, FUNCTIONS_AT_ONCE, POLICIES_AT_ONCE = 4, 64, 256
MOST_AT_ONCE = 10_000
"""Trials in flight at once of an agent whose servers a file lists: the endpoint bounds them."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
ADDED_TO: Mapping[str, type] = {"epochs": int, "endpoints": dict, "agents": dict, "tasks": dict, "pairs": list}
"""What of a plan's identity an extension may widen."""
SEVERAL = "replicas"
"""Stands for the URLs of several servers where those may change."""


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
    refusals: Annotated[Literal["scored", "unscored"], Field(exclude_if=lambda value: value == "scored")] = "scored"
    """What a trial whose input the endpoint declined is: `scored` for what was reached, or left out of the mean.
    Neither is asked again."""
    traces: TraceSettings = TraceSettings.model_construct()
    prices: dict[ModelName, Price] = Field(default_factory=dict)
    """Prices of helper models (judges, hosts, users) by the model's name as its endpoint reports it, or the beginning
    of it; agents have a `price` of their own."""
    price_list: Annotated[Literal["shipped"] | None, Field(exclude_if=lambda name: name is None)] = None
    """`shipped`: agents without a `price` have that of their model in Proctor's own list, where it is there."""
    on_end: CommandWords = ()
    """A command to run when the run ends, as a list of words."""

    @field_validator("tasks")
    @classmethod
    def _tasks_name_endpoints(cls, tasks: tuple[AnyTask, ...], known: ValidationInfo) -> tuple[AnyTask, ...]:
        """The tasks with the fields of the endpoints that their models name."""
        entries = [entry.model_dump(mode="json", exclude_unset=True) for entry in known.data.get("endpoints", ())]
        return tuple(task.at_endpoints(entries) if isinstance(task, TaskDefinition) else task for task in tasks)

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
    def _dialects_have_what_agents_ask_for(self) -> Self:
        for agent in self.agents:
            try:
                check_dialect(self.endpoint_of(agent).dialect, agent, metadata=agent.sends_metadata)
            except FieldError as error:
                raise FieldError(("agents", agent.name, *error.location), str(error)) from error
        return self

    @model_validator(mode="after")
    def _installed_agents_reach_their_endpoint_alone(self) -> Self:
        for name, task in self.pairs():
            agent = self.agent(name)
            defined = next((each for each in self.definitions() if each.name == task), None)
            if agent.is_installed and defined is not None and (kind := agent_kind("installed")) is not None:
                kind.check_task(defined)
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

    def sizes(self) -> str:
        """How many agents, tasks and pairs it has, as text."""
        counts = {"agent": len(self.agents), "task": len(self.tasks), "pair": len(self.pairs())}
        return ", ".join(counted(count, noun) for noun, count in counts.items())

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

    def concurrency_of(self, agent: AgentEntry) -> int:
        """Trials of an agent in flight at once; of one without bound, what its endpoint takes by the plan."""
        if agent.concurrency is not None:
            return agent.concurrency
        if agent.is_command:
            return COMMANDS_AT_ONCE
        if agent.endpoint is None and agent.builtin is not None:
            return FUNCTIONS_AT_ONCE if agent.is_function else POLICIES_AT_ONCE
        endpoint = self.endpoint_of(agent)
        replicas = endpoint.replicas()
        if not replicas:
            return MOST_AT_ONCE if endpoint.has_replicas else endpoint.concurrency
        return min(MOST_AT_ONCE, sum(endpoint.at(replica).concurrency for replica in replicas))

    def varies_seed(self, agent: AgentEntry) -> bool:
        """Whether each epoch of an agent has a seed of its own in its sampling."""
        return self.epochs > 1 and agent.seed_per_epoch and isinstance(agent.sampling.get("seed"), int)

    def price_of(self, agent: AgentEntry) -> Price | None:
        """The price of an agent's tokens; None if it is not known."""
        if agent.price is not None or self.price_list is None or not agent.is_model:
            return agent.price
        from eval_client.plan.price_list import shipped_prices  # few plans take the list

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
        from eval_client.plan.price_list import shipped_prices  # as above

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

    def identity(self, functions: Mapping[str, Any] = NOTHING) -> dict[str, JsonValue]:
        """Everything that shapes a trial, as plain data: a resumed run must not change it.

        `functions` are those that a program gives for agents, by name: they stand for what the plan names.

        Concurrency, prices, the controller's address, patience and the run's own limits may change. So may paths, since
        the digests of the data there are compared.
        """
        full = self.model_dump(mode="json")
        for entry, agent in zip(full["agents"], self.agents, strict=True):
            entry.pop("seed_per_epoch", None)
            if agent.function is not None or agent.name in functions:
                entry.update(_function_identity(agent.function, functions.get(agent.name)))
            if self.varies_seed(agent):
                entry["seed_per_epoch"] = True
        operational = {"concurrency", "price", "capacity", "rpm", "tpm", "shared"} | ChatConfig.operational
        return {
            "seed": full["seed"],
            "epochs": full["epochs"],
            "agents": _by_name(full["agents"], operational),
            "endpoints": _by_name([_without_urls(one) for one in full["endpoints"]], operational),
            "tasks": {
                task.name: task.shape() if isinstance(task, TaskDefinition) else {"name": task.name}
                for task in self.tasks
            },
            "pairs": sorted(f"{agent} x {task}" for agent, task in self.pairs()),
            "limits": {"trial": full["limits"]["trial"]},
            **_selections(self.tasks),
        }


def _function_identity(reference: str | None, given: Any) -> dict[str, JsonValue]:
    """A function in a file of the user's own, whatever folder that is in, or `given` by a program. Raises OwnFileError.

    Without a source where what is given can't be checked.
    """
    from proctor.agent_function import own_function  # plans without functions do without
    from proctor.own_files.loading import NO_FILE
    from proctor.own_files.source import given_source, source_of

    if reference is None or given is not None:
        place, name, found = NO_FILE, getattr(given, "__qualname__", ""), given_source(given)
    else:
        place, _, name = reference.rpartition(":")
        found = source_of(own_function(reference))
    if found is None:
        return {"function": None}
    return {"function": f"{Path(place).name}:{name}", "source": {"digest": found.digest, **found.files}}


def _without_urls(endpoint: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """An endpoint without the URLs of its replicas, which a resume may change."""
    if "replicas_file" not in endpoint and not isinstance(endpoint["base_url"], list):
        return endpoint
    return {**endpoint, "base_url": SEVERAL}


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


def differences(before: JsonValue, after: JsonValue, path: str = "") -> list[str]:
    """The differences of two pieces of plain data, each as `field: before -> after`."""
    if isinstance(before, dict) and isinstance(after, dict):
        lines: list[str] = []
        for key in sorted(before.keys() | after.keys()):
            lines += differences(before.get(key), after.get(key), f"{path}.{key}" if path else key)
        return lines
    return [] if before == after else [f"{path}: {before!r} -> {after!r}"]


def additions(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """What an identity adds to an earlier one, and where it differs from it otherwise, a line for each.

    Which samples tasks choose is left out: that depends on what there is to choose from.
    """
    if not all(isinstance(before.get(key), kind) for key, kind in ADDED_TO.items()):
        return [], differences(dict(before), dict(after))  # whatever a store holds
    was, now = (copy.deepcopy({key: each[key] for key in each if key != "samples"}) for each in (before, after))
    added = list[str]()
    if now["epochs"] > was["epochs"]:
        added.append(f"epochs: {was['epochs']} -> {now['epochs']}")
        if was["epochs"] == 1:  # whose seed is that of the first of several
            for agent in now["agents"].keys() & was["agents"].keys():
                now["agents"][agent].pop("seed_per_epoch", None)
        was["epochs"] = now["epochs"]
    for kind in ("endpoints", "agents", "tasks"):
        new = [name for name in now[kind] if name not in was[kind]]
        added += [f"{kind[:-1]} {name}" for name in new if kind != "endpoints"]
        was[kind] |= {name: now[kind][name] for name in new}
    if all(pair in now["pairs"] for pair in was["pairs"]):
        added += [] if added else [pair for pair in now["pairs"] if pair not in was["pairs"]]
        was["pairs"] = now["pairs"]
    return added, differences(was, now)


def trial_seed(plan_seed: int, task: str, sample: str, epoch: int) -> int:
    """The seed of a trial, from 0 to 2**63-1; the same for all agents, so that they can be compared in pairs."""
    text = f"{plan_seed}\0{task}\0{sample}\0{epoch}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1
