"""The checks of everything that a plan needs."""

import asyncio
import itertools
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from eval_client.cli.doctor import machine, tasks
from eval_client.cli.doctor.endpoint import ModelProbe
from eval_client.cli.doctor.finding import Check, Finding, Status, fail, ok, skip, warn
from eval_client.cli.doctor.readiness import UNSCORED, key_findings, wrong_variable
from eval_client.cli.doctor.servers import ServerProbe
from eval_client.cli.usage import in_thread
from eval_client.endpoints import likeness
from eval_client.endpoints.chat_configs import chat_config, replica_configs, task_models
from eval_client.plan.entries import AgentEntry
from eval_client.plan.plan import Plan
from eval_client.store.sqlite_file import damage, losses
from eval_client.store.store import Store
from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.config.tokens import AccessTokens
from proctor.http.client import HttpClient
from proctor.llm.config import ChatConfig
from proctor.llm.servers import replicas_of_file
from proctor.registry import AGENT_KINDS, missing
from task_server.wire.messages import TaskList

IMAGE = "proctor-os:latest"
CACHE_SHARE = "a report's share of cached tokens is `-` for vLLM without --enable-prompt-tokens-details"


@dataclass(frozen=True)
class Options:
    """The options of `proctor doctor`."""

    output: Path
    """Folder of the runs."""
    store: str | None
    patience_s: float
    """Seconds to wait for each answer."""
    calls: bool = True
    """Whether to send a completion to each model, which is paid for."""
    run: str | None = None
    """The run whose store is checked."""


def machine_checks(options: Options) -> dict[str, Check]:
    """The checks of `proctor doctor` without a plan."""
    docker = machine.docker(IMAGE, options.patience_s, needed=False)
    return {**_general(options, registry.names(), needed=False), "docker": docker}


def _general(options: Options, environments: Sequence[str], *, needed: bool) -> dict[str, Check]:
    checks: dict[str, Check] = {
        "packages": in_thread(machine.extras, environments, needed=needed),
        "folder": in_thread(machine.folder, options.output, in_sqlite=options.store is None),
    }
    if (url := options.store) is not None:
        checks["store"] = in_thread(lambda: [machine.store(url)])
    return checks


@dataclass
class PlanChecks:
    """The checks of one plan. What several checks need is asked once."""

    plan: Plan
    options: Options
    http: HttpClient

    def all(self) -> dict[str, Check]:
        """All checks, in the order of the report."""
        plan = self.plan
        checks: dict[str, Check] = {"keys": in_thread(key_findings, plan)}
        checks |= {f"agent {agent.name}": self._agent(agent) for agent in plan.agents}
        checks |= {name: self._model(name, config) for name, config in task_models(plan).items()}
        checks |= {} if plan.controller == "local" else {"controller": self._servers()}
        checks |= {name: self._task(definition) for name, definition in self.played.items()}
        names = sorted({definition.environment for definition in self.played.values()})
        return checks | _general(self.options, names, needed=True)

    @property
    def played(self) -> dict[str, TaskDefinition]:
        """The names of the checks of tasks that this machine plays."""
        return {f"task {definition.name}": definition for definition in self.plan.played_here()}

    async def _agent(self, agent: AgentEntry) -> Sequence[Finding]:
        if agent.is_command:
            lacks = missing(AGENT_KINDS, "command")
            program, said = agent.command[0], f"agent {agent.name} is a command: {agent.command[0]}"
            if lacks is None and shutil.which(program) is not None:
                return [skip("agent", f"{said}; it is started for each trial")]
            what = f"{said}, which is not on this machine" if lacks is None else f"{said}; what plays it is missing"
            fix = lacks or "install it, or write its absolute path"
            return [fail("agent-command", what, UNSCORED, fix)]
        if agent.builtin is not None and agent.endpoint is None:
            return [skip("agent", f"agent {agent.name} is built in; its server is started for the run")]
        config = chat_config(self.plan, agent, None)
        found = await self._model(f"agent {agent.name}", config, by_calls=agent.name in self._tool_players)
        return [*found, skip("agent", f"agent {agent.name}: {CACHE_SHARE}")] if config.has_replicas else found

    async def _model(self, name: str, config: ChatConfig, *, by_calls: bool = False) -> Sequence[Finding]:
        """The findings on a model, at each of its servers, and whether those are alike; `by_calls`: it plays so."""
        if name.startswith("task "):  # tasks ask for it unless the plan says otherwise
            config = config.model_copy(update={"sampling": {"temperature": 0, **config.sampling}})
        if not config.has_replicas:
            return await self._at(name, config, by_calls=by_calls)
        servers = (self._at(name, each, by_calls=by_calls) for each in replica_configs(config).values())
        found = await asyncio.gather(*servers, self._alike(name, config))
        return [*itertools.chain(*found)]

    async def _alike(self, name: str, config: ChatConfig) -> Sequence[Finding]:
        """What the servers of a model differ in, of those that answer, as a start of a run asks them."""
        asks = self.options.calls and not config.metadata
        problems = replicas_of_file(config.replicas_file)[1] if config.replicas_file is not None else []
        why, fix = "its servers come from this file", "write one URL a line into a file that you alone can write"
        found = [fail("replicas-file", f"{name}: {each}", why, fix) for each in problems]
        try:
            seen = await likeness.seen_models(self.http, replica_configs(config), self.options.patience_s, asks=asks)
        except ValueError:
            return found  # the check of each server, or of the environment, says it
        others = likeness.others(config.model, seen)
        for line in others:
            found.append(fail("replicas-other", f"{name}: {line}", "a run is refused", "leave such servers out"))
        why = "the scores of a trial would depend on the server that has it"
        for line in likeness.unlike(seen) if not others else ():
            found.append(warn("replicas-differ", f"{name}: {line}", why, "start the servers alike"))
        if found or len(seen) < 2:
            return found
        what = f"{len(seen)} servers are alike in what they list"
        if asks and all(one.text is not None for one in seen.values()):
            what += " and in 32 tokens at temperature 0"
        return [ok("agent", f"{name}: {what}")]

    async def _at(self, name: str, config: ChatConfig, *, by_calls: bool) -> Sequence[Finding]:
        """The findings at one server."""
        try:
            config.endpoint()
        except ValueError as error:
            return [wrong_variable(name, error)]
        try:
            probe = ModelProbe(self.http, name, config, self.options.patience_s)
        except ValueError:
            return [skip("agent", f"{name}: see key-broken")]
        if not self.options.calls or config.metadata:
            return [await probe.look_up()]
        if not by_calls:
            return [await probe.complete()]
        answered, with_tools = await asyncio.gather(probe.complete(), probe.tools())
        return [answered] if answered.status is Status.FAIL else [answered, *with_tools]

    @cached_property
    def _tool_players(self) -> set[str]:
        """The agents that play a task by function calls."""
        by_calls = {definition.name for definition in self.plan.definitions() if tasks.offers_tools(definition)}
        return {agent for agent, task in self.plan.pairs() if task in by_calls}

    async def _servers(self) -> Sequence[Finding]:
        found, _ = await self._served
        return found

    @cached_property
    def _served(self) -> "asyncio.Task[tuple[list[Finding], TaskList | None]]":
        return asyncio.create_task(self._ask_servers())

    async def _ask_servers(self) -> tuple[list[Finding], TaskList | None]:
        try:
            tokens = AccessTokens.of(self.plan.token_env)
        except ValueError:
            return [skip("controller", f"{self.plan.controller}: see key-broken")], None
        return await ServerProbe(self.http, self.plan, tokens, self.options.patience_s / 3).look()

    async def _task(self, definition: TaskDefinition) -> Sequence[Finding]:
        """The findings on a task's data, and on its environment, which is started where this machine serves it."""
        patience_s = self.options.patience_s
        async with asyncio.timeout(patience_s):
            data = await in_thread(tasks.read_data, definition, self.plan)
        if data.digest is None:
            return data.found
        if self.plan.controller != "local":
            return [*data.found, *await self._differs(definition.name, data.digest)]
        lacks = await tasks.engine(definition, patience_s / 2)
        if definition.fallback and any(each.status is Status.FAIL for each in lacks):
            why = "`fallback: true` lets a run go on: with another engine, or without the task"
            return [*data.found, *(each.model_copy(update={"status": Status.WARN, "why": why}) for each in lacks)]
        found = [*data.found, *lacks]
        if any(each.status is Status.FAIL for each in found):
            return found
        models = any(policy is None for policy in self.plan.playing(definition.name).values())
        by_calls = models and tasks.offers_tools(definition)
        return [*found, *await tasks.started(definition, patience_s, by_calls=by_calls)]

    async def _differs(self, task: str, digest: str) -> list[Finding]:
        """A failure where the servers have other data for a task of built-in agents."""
        _, listed = await self._served
        offered = listed.find(task, digest) if listed is not None else None
        if offered is None or offered.digest in (None, digest):
            return []
        what = f"task {task}: digest {digest[:12]} here, {str(offered.digest)[:12]} at the servers"
        why = "built-in agents would play other samples than the servers"
        return [fail("data-differs", what, why, "give this plan and the workers the same data")]


async def whole_store(store: Store) -> Sequence[Finding]:
    """Whether a run's store is complete and undamaged; reads all of it."""
    why = "lost turns would be paid for again, and lost results would be missing in the report"
    fix = "restore its store from a copy, or start a new run; `proctor resume` prints whether the run can be resumed"
    found, lost = await in_thread(damage, store.engine), await in_thread(losses, store.engine, store.run)
    found += [] if lost is None else [lost]
    damaged = [fail("run-damaged", f"run {store.run}: {each}", why, fix) for each in found]
    return damaged or [ok("run", f"run {store.run}: its store is whole")]
