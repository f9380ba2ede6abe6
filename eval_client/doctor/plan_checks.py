"""The checks of everything that a plan needs."""

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from eval_client.doctor import models, resumed, servers, tasks, tool_calls
from eval_client.doctor.docker_host import Sandboxes
from eval_client.doctor.finding import Finding, Status, fail, skip, warn
from eval_client.doctor.machine_checks import Options, docker, general_checks
from eval_client.doctor.quick import key_findings, most_trials
from eval_client.doctor.run_checks import Check, in_thread
from eval_client.endpoints import likeness
from eval_client.endpoints.endpoints import chat_config, replica_configs
from eval_client.endpoints.replica_watch import replicas_of_file
from eval_client.plan.entries import AgentEntry
from eval_client.plan.plan import Plan
from eval_client.report.preview import planned_tasks, volumes
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from proctor.config.secrets import secret
from proctor.config.task import TaskDefinition
from proctor.config.yaml import FileError
from proctor.http.client import AnyClient
from proctor.llm.config import ChatConfig
from proctor.llm.model import connection
from task_server.wire.messages import TaskList

TURN_BYTES, TRIAL_BYTES = 4096, 4096
"""Bytes in a SQLite store, with indexes. The demo's 889 turns of 90 trials over all environments took 3.2 MB."""
USUAL_TURNS = 20
"""The turns assumed of a trial whose turns are unbounded."""


@dataclass
class PlanChecks:
    """The checks of one plan. Facts that several checks need are gathered once."""

    plan: Plan
    options: Options
    http: AnyClient
    resume: Store | None
    """The run to resume; None where there is none."""
    closing: set[asyncio.Task[None]]
    """Gets the environments that are still starting or closing when reported; wait for them before the process ends."""

    def all(self) -> list[Check]:
        """All checks, in the order of the report."""
        plan, here = self.plan, self.plan.played_here()
        environments = sorted({definition.environment for definition in here})
        under_way = most_trials(plan)
        checks = [Check(f"agent {agent.name}", self._agent(agent)) for agent in plan.agents]
        checks.insert(0, Check("keys", in_thread(key_findings, plan)))
        if not self._local:
            checks.append(Check("controller", self._servers()))
        checks += [Check(f"task {definition.name}", self._data(definition)) for definition in here]
        if self._local:
            checks.append(Check("environments", self._environments()))
        if self.resume is not None:
            checks.append(Check(f"run {self.resume.run}", self._resumed(self.resume)))
            if self.options.run is not None:
                checks.append(resumed.store_check(self.resume))
        needed = 0 if self.options.store else self._needed_bytes()
        return [*checks, *general_checks(self.options, environments, trials=under_way, needed_bytes=needed)]

    @property
    def _local(self) -> bool:
        return self.plan.controller == "local"

    def _needed_bytes(self) -> int:
        try:
            return sum(
                samples * self.plan.epochs * (TRIAL_BYTES + TURN_BYTES * (turns or USUAL_TURNS))
                for _, _, samples, turns in volumes(self.plan, planned_tasks(self.plan, None))
                if samples is not None
            )
        except (FileError, OSError, ValueError):
            return 0  # the check of the data reports the error

    async def _agent(self, agent: AgentEntry) -> Sequence[Finding]:
        if agent.is_command:
            found = shutil.which(agent.command[0])
            said = f"agent {agent.name} is a command: {agent.command[0]}"
            if found is None:
                return [fail("agent-command", f"{said}, which is not on this machine")]
            return [skip("agent", f"{said}; it is started for each trial")]
        if agent.builtin is not None and agent.endpoint is None:
            return [skip("agent", f"agent {agent.name} is built in; its server is started for the run")]
        if self.plan.endpoint_of(agent).has_replicas:
            return await self._replicas(agent)
        return await self._at(agent, chat_config(self.plan, agent, None))

    async def _replicas(self, agent: AgentEntry) -> Sequence[Finding]:
        """The findings at each server of the agent's endpoint, and how they differ."""
        endpoint = self.plan.endpoint_of(agent)
        problems = replicas_of_file(endpoint)[1] if endpoint.replicas_file is not None else []
        configs = replica_configs(self.plan, agent)
        found = await asyncio.gather(*(self._at(agent, config) for config in configs.values()))
        findings = [fail("replicas-file", f"agent {agent.name}: {problem}") for problem in problems]
        findings += [finding for each in found for finding in each]
        if not self.options.calls:
            return findings
        seen = await likeness.seen_models(self.http, configs)
        unlike = [*likeness.others(agent.model or agent.name, seen), *likeness.unlike(seen)]
        return [*findings, *(warn("replicas-unlike", f"agent {agent.name}: {line}") for line in unlike)]

    async def _at(self, agent: AgentEntry, config: ChatConfig) -> Sequence[Finding]:
        """The findings at one server."""
        try:
            config.endpoint()
        except ValueError as error:
            return [
                fail(
                    "agent-url", f"agent {agent.name}: {error}", f"correct the variable {str(error).partition(':')[0]}"
                )
            ]
        try:
            connection(config)
        except ValueError:
            return [skip("agent", f"agent {agent.name}: see key-broken")]
        patience_s = self.options.patience_s
        if not self.options.calls or config.metadata:
            return [await models.look_up(self.http, agent.name, config, patience_s)]
        if agent.name not in self._tool_players:
            return [await models.complete(self.http, agent.name, config, patience_s)]
        answered, with_tools = await asyncio.gather(
            models.complete(self.http, agent.name, config, patience_s),
            tool_calls.probe(self.http, agent.name, config, patience_s),
        )
        return [answered] if answered.status is Status.FAIL else [answered, *with_tools]

    @cached_property
    def _tool_players(self) -> set[str]:
        return tool_calls.players(self.plan.pairs(), self.plan.definitions())

    async def _servers(self) -> Sequence[Finding]:
        try:
            facts = await self._server_facts
        except ValueError:
            return [skip("controller", f"{self.plan.controller}: see key-broken")]
        found = servers.server_findings(
            facts,
            token_env=self.plan.token_env,
            has_token=secret(self.plan.token_env) is not None,
            tasks=[task.name for task in self.plan.tasks],
            relayed=self.plan.route == "relayed",
        )
        known = [await self._known(definition) for definition in self.plan.played_here()]
        here = [each for each in known if each is not None]
        offered = await self._offered({each.name: each.digest for each in here})
        return [*found, *tasks.digest_findings(here, offered)]

    @cached_property
    def _server_facts(self) -> "asyncio.Task[servers.ServerFacts]":
        return asyncio.create_task(self._ask_servers())

    async def _ask_servers(self) -> servers.ServerFacts:
        token = secret(self.plan.token_env)
        shown = token.get_secret_value() if token is not None else None
        return await servers.server_facts(self.http, self.plan.controller, shown, self.options.patience_s / 3)

    async def _offered(self, expected: Mapping[str, str]) -> dict[str, str | None]:
        """task -> its digest at the servers: the expected one if a worker has it. Empty where no server answers."""
        try:
            listed = (await self._server_facts).tasks
        except ValueError:
            return {}
        if not isinstance(listed, TaskList):
            return {}
        found = ((task, listed.find(task, digest)) for task, digest in expected.items())
        return {task: capacity.digest for task, capacity in found if capacity is not None}

    @cached_property
    def _task_facts(self) -> Mapping[str, "asyncio.Task[tasks.TaskFacts]"]:
        return {
            definition.name: asyncio.create_task(
                in_thread(tasks.task_facts, definition, self.plan.playing(definition.name).values())
            )
            for definition in self.plan.played_here()
        }

    async def _known(self, definition: TaskDefinition) -> tasks.TaskFacts | None:
        try:
            return await asyncio.shield(self._task_facts[definition.name])
        except FileError:
            return None

    async def _data(self, definition: TaskDefinition) -> Sequence[Finding]:
        try:
            facts = await asyncio.shield(self._task_facts[definition.name])
        except FileError as error:
            return [fail("data-broken", str(error))]
        return tasks.data_findings(tasks.as_planned(facts, self.plan), self.plan.playing(definition.name))

    async def _environments(self) -> Sequence[Finding]:
        """Start each environment once, unless another check shows that it can't start."""
        wanted = {d.name: found for d in self.plan.played_here() if (found := tasks.sandboxes(d)) is not None}
        engine = asyncio.create_task(self._engine(sorted(set(wanted.values()))))
        entering = (self._entered(d, engine if d.name in wanted else None) for d in self.plan.played_here())
        entered = await asyncio.gather(*entering)
        return [*await engine, *(finding for each in entered for finding in each)]

    async def _engine(self, wanted: Sequence[Sandboxes]) -> list[Finding]:
        return await docker(wanted, self.options.patience_s / 2, needed=True) if wanted else []

    async def _entered(self, definition: TaskDefinition, engine: "asyncio.Task[list[Finding]] | None") -> list[Finding]:
        name, patience_s = definition.name, self.options.patience_s
        if await self._known(definition) is None:
            return [skip("environment", f"task {name}: see data-broken")]
        if tasks.lacks_mariadb(definition):
            return [fail("mariadb-missing", f"task {name}: no program mariadbd on this machine")]
        if engine is not None:
            patience_s /= 2
            for finding in await asyncio.shield(engine):
                if finding.id in tasks.NO_CONTAINERS:
                    return [skip("environment", f"task {name}: see {finding.id}")]
        models = any(policy is None for policy in self.plan.playing(name).values())
        by_calls = models and tool_calls.offers_tools(definition)
        return await tasks.entered(definition, patience_s, self.closing, by_calls=by_calls)

    async def _resumed(self, run: Store) -> Sequence[Finding]:
        try:
            manifest = await in_thread(run.manifest)
        except StoreError as error:
            return [resumed.unreadable(error)]
        if self._local:
            known = [await self._known(definition) for definition in self.plan.played_here()]
            digests: Mapping[str, str | None] = {facts.name: facts.digest for facts in known if facts is not None}
        else:
            digests = await self._offered(manifest.digests())
        return resumed.run_findings(run.run, manifest, self.plan, digests)
