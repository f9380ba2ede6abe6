"""The agents of a run as callables. A call waits for its endpoint's limits and the run's spending limit."""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from eval_client.core.limits.pool import Share
from eval_client.core.limits.throttle import EndpointFeedback, EndpointLimit
from eval_client.core.spend import Spend
from eval_client.endpoints.bound_model import BoundModel
from eval_client.endpoints.chat_configs import address_of, chat_config, endpoints_of
from eval_client.endpoints.gate import Gate
from eval_client.endpoints.likeness import LASTING, differences, listed_models
from eval_client.endpoints.limited_model import Allowance, CallSize, LimitedModel, Rejections
from eval_client.endpoints.replica_watch import ReplicaWatch
from eval_client.endpoints.replicas import Replica, Replicas
from eval_client.metrics import EndpointMetrics
from eval_client.plan.entries import AgentEntry, Endpoint
from eval_client.plan.plan import BUILTIN_ENDPOINT, COMMAND_ENDPOINT, Plan
from eval_client.store.records import SeenModel
from proctor.http.client import HttpClient, HttpFailure
from proctor.llm.config import ChatConfig, ReplicaEntry
from proctor.llm.model import ChatModel
from proctor.llm.outage import Failed, Outage
from proctor.llm.outcome import Outcome
from task_server.client.client import Call

if TYPE_CHECKING:
    from eval_client.endpoints.called_agents import CalledAgent
    from proctor.agent_function import FunctionCaller


class Endpoints:
    """Every agent's model, and the limits that agents of one endpoint share.

    `changed` is called when a concurrency limit changes. A part of a plan has `1 / of` of each limit for itself.
    """

    def __init__(
        self,
        plan: Plan,
        client: HttpClient,
        spend: Spend,
        builtin: str | None,
        changed: Callable[[], None],
        *,
        called: "Mapping[str, CalledAgent]" = MappingProxyType({}),
        of: int = 1,
        pools_all: bool = False,
    ) -> None:
        """`called` are agents of this process.

        `pools_all`: also limits that are the run's own are kept in pools, for the other parts of its plan.
        """
        self.spend, self.allowance = spend, Allowance(spend)
        self._of, self._pools_all = of, pools_all
        self.limits: dict[str, EndpointLimit] = {}
        """What follows is by endpoint, or by replica where an endpoint has several."""
        self.calls: dict[int, Call] = {}
        """Model calls under way, oldest first, each named by its agent."""
        self.troubles: dict[str, str] = {}
        """agent -> how its last request failed, until one succeeds"""
        self.feedback: dict[str, EndpointFeedback] = {}
        """Answers since they were last reported to other clients."""
        self.on_throttled: list[Callable[[], None]] = []
        self.gates: dict[str, Gate] = {}
        self.pooled: dict[str, Endpoint] = {}
        """Those whose limits `run.sharing` keeps in pools; the limits of the others are this run's own."""
        self.addresses: dict[str, tuple[str, str]] = {}
        """(base URL, key, or where it comes from) of those in pools."""
        self.shares: dict[str, Share] = {}
        """This client's newest shares of those in pools."""
        self.unshared: dict[str, str] = {}
        """Why some of those in pools can't be shared with other runs at the moment."""
        self.metrics = EndpointMetrics()
        self._plan, self._client, self._builtin, self._changed = plan, client, builtin, changed
        self._called = called
        self.outages: dict[str, Outage] = {}
        """endpoint -> whether it is down"""
        self.began_with: Mapping[str, SeenModel] = {}
        """agent -> its model as the run began with it, where its endpoint has several servers or is one of agents"""
        self.replicas: dict[str, Replicas] = {}
        """endpoint that has several servers -> those"""
        self._rejections = {agent.name: Rejections(agent.name, self.calls) for agent in plan.agents}
        self._models: dict[tuple[str, str], LimitedModel] = {}
        self._endpoint_of = {agent.name: plan.endpoint_of(agent).name for agent in plan.agents}
        self._limit_all(plan)

    def _limit_all(self, plan: Plan) -> None:
        """Give every endpoint of the plan its limits, and every agent without replicas its model."""
        for endpoint in endpoints_of(plan):
            if endpoint.has_replicas:
                replicas = self.replicas[endpoint.name] = Replicas(endpoint, self._at, self._changed)
                self.outages[endpoint.name] = replicas.whole
                for replica in endpoint.replicas():
                    self.join(replicas, replica, ready=True)
            else:
                self._limit(endpoint.name, endpoint)
        for agent in plan.agents:
            endpoint = plan.endpoint_of(agent)
            if not agent.is_command and not endpoint.has_replicas:
                name = endpoint.name
                outage = self.outages.setdefault(name, Outage(endpoint.patience_s, self._changed))
                here = agent.name in self._called and agent.endpoint is None
                config = None if here else chat_config(plan, agent, self._builtin)
                self._models[agent.name, name] = self._limited(agent, name, config, outage)
                if config is not None and name in self.pooled:
                    self.addresses[name] = address_of(config)

    def model(self, agent: str, answered_by: str | None = None) -> LimitedModel | BoundModel:
        """The model of an agent that is no command, for one attempt; `answered_by` is the replica of its last turn."""
        endpoint = self._endpoint_of[agent]
        if endpoint in self.replicas:
            return BoundModel(self.replicas[endpoint], agent, answered_by)
        return self._models[agent, endpoint]

    def scaffold(self, agent: str) -> "FunctionCaller | None":
        """The function around the model of an agent, if there is one."""
        return self._called[agent].caller if self._plan.agent(agent).is_scaffold else None

    def is_stateful(self, agent: str) -> bool:
        """Whether an agent remembers conversations."""
        if agent in self._called:
            return (caller := self._called[agent].caller) is not None and caller.stateful
        return agent in self.began_with and self.began_with[agent].stateful

    async def end(self, agent: str, session: str, names: Iterable[str]) -> None:
        """Have a stateful agent forget the conversations of a session, some of which have these names."""
        if agent in self._called and (caller := self._called[agent].caller) is not None:
            await caller.end(session, names)
            return
        endpoint = self._endpoint_of[agent]
        several = self.replicas[endpoint].all.values() if endpoint in self.replicas else ()
        models = [self._at(agent, each) for each in several] or [self._models[agent, endpoint]]
        await asyncio.gather(*(each.model.end(session) for each in models if isinstance(each.model, ChatModel)))

    def is_down(self, endpoint: str) -> bool:
        """Whether an endpoint is down; that of the commands never is."""
        return endpoint in self.outages and self.outages[endpoint].down

    def capacities(self) -> dict[str, int]:
        """endpoint -> trials that it takes at once now"""
        alone = {name: limit.capacity for name, limit in self.limits.items() if name in self._endpoint_of.values()}
        return alone | {name: replicas.capacity for name, replicas in self.replicas.items()}

    def endpoint(self, name: str) -> str:
        """The endpoint whose limits have this name: itself, or that of a replica."""
        return self.pooled[name].name if name in self.pooled else name

    def granted(self, name: str, trials: int) -> int:
        """Record how many trials at once other clients leave to this one; how many that are over its endpoint."""
        replicas = self.replicas.get(self.endpoint(name))
        if replicas is None:
            return trials
        for replica in replicas.all.values():
            if replica.key == name:
                replica.grant = trials
        replicas.refresh()
        return replicas.granted

    def join(self, replicas: Replicas, replica: ReplicaEntry, *, ready: bool) -> Replica:
        """Use another replica of an endpoint; one that is not `ready` once it was seen to serve the model."""
        endpoint = replicas.endpoint.at(replica)
        key = f"{endpoint.name} at {replica.base_url}"
        self._limit(key, endpoint)
        agent = next(agent for agent in self._plan.agents if self._endpoint_of[agent.name] == endpoint.name)
        self.addresses[key] = address_of(chat_config(self._plan, agent, self._builtin).at(replica.base_url))
        return replicas.add(replica.base_url, key, self.limits[key], ready=ready)

    def watches(self) -> list[ReplicaWatch]:
        """Loops to run beside the run, one for each endpoint with several servers."""
        return [self._watch(replicas) for replicas in self.replicas.values()]

    def _watch(self, replicas: Replicas) -> ReplicaWatch:
        agents = [name for name, endpoint in self._endpoint_of.items() if endpoint == replicas.endpoint.name]

        async def ask(replica: Replica, agent: str | None) -> object:
            return await self._chat_at(agent or agents[0], replica).ask_one_token()

        async def look(replica: Replica) -> str | None:
            names = {agent: self._chat_at(agent, replica).name for agent in agents}
            listed = await listed_models(self._chat_at(agents[0], replica))
            if not listed:
                raise HttpFailure("no list of models")
            if missing := sorted({*names.values()} - listed.keys()):
                return f"it serves {', '.join(sorted(listed))}, not {', '.join(missing)}"
            known = [
                (self.began_with[agent], listed[name]) for agent, name in names.items() if agent in self.began_with
            ]
            return "; ".join(line for one, other in known for line in differences(one, other, LASTING)) or None

        return ReplicaWatch(replicas, ask, look, lambda replica: self.join(replicas, replica, ready=False))

    def _at(self, agent: str, replica: Replica) -> LimitedModel:
        """An agent's model at a replica."""
        known = self._models.get((agent, replica.key))
        if known is None:
            entry = self._plan.agent(agent)
            config = chat_config(self._plan, entry, self._builtin).at(replica.url)
            known = self._models[agent, replica.key] = self._limited(entry, replica.key, config, replica.outage)
        return known

    def _chat_at(self, agent: str, replica: Replica) -> ChatModel:
        model = self._at(agent, replica).model
        assert isinstance(model, ChatModel)
        return model

    def _limit(self, name: str, endpoint: Endpoint) -> None:
        endpoint = endpoint.divided(self._of)
        self.limits[name], self.gates[name] = EndpointLimit(endpoint.concurrency), Gate()
        self.feedback[name] = EndpointFeedback()
        own = self._pools_all and name not in (BUILTIN_ENDPOINT, COMMAND_ENDPOINT)
        if own or endpoint.shared or endpoint.rpm or endpoint.tpm or endpoint.name != name:
            self.pooled[name] = endpoint

    def _limited(self, agent: AgentEntry, name: str, config: ChatConfig | None, outage: Outage) -> LimitedModel:
        """An agent's model; without a configuration it is an agent of this process."""
        return LimitedModel(
            self._called[agent.name] if config is None else self._chat(agent, name, config, outage),
            agent.name,
            self.limits[name],
            self.allowance,
            self.calls,
            size=None if agent.policy or config is None else CallSize(config),
            gate=self.gates[name],
            metrics=self.metrics,
            rejections=self._rejections[agent.name],
        )

    def _chat(self, agent: AgentEntry, name: str, config: ChatConfig, outage: Outage) -> ChatModel:
        limit, gate, endpoint = self.limits[name], self.gates[name], self._endpoint_of[agent.name]

        def on_reply(failed: Failed | None) -> None:
            capacity = int(limit.limit)
            if failed is None:
                self.metrics.requests(endpoint, "ok").inc()
                self.troubles.pop(agent.name, None)
                self.feedback[name].answered += 1
                if limit.limit == limit.ceiling:
                    return
                limit.succeeded()
            elif failed.outcome is Outcome.TRANSIENT:
                self.metrics.requests(endpoint, "throttled" if failed.throttled else "retry").inc()
                self.troubles[agent.name] = failed.cause
                if failed.throttled:
                    limit.throttled(time.monotonic(), failed.retry_after_s)
                    self.feedback[name].was_throttled(failed.retry_after_s)
                    for call in self.on_throttled:
                        call()
                else:
                    limit.retried()
            if limit.capacity != capacity:
                self._changed()

        async def sleep(wait_s: float) -> None:
            await asyncio.sleep(wait_s)
            if gate.limited:
                await gate.enter(0.0)

        content = self._plan.traces.content
        return ChatModel(config, self._client, outage=outage, on_reply=on_reply, traces_content=content, sleep=sleep)
