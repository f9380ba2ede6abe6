"""The agents of a run as callables. A call waits for its endpoint's limits and the run's spending limit."""

import asyncio
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from eval_client.core.limits.pool import Share
from eval_client.core.limits.rates import Estimate
from eval_client.core.limits.shares import EndpointFeedback
from eval_client.core.limits.throttle import EndpointLimit
from eval_client.core.spend import Spend, Tokens
from eval_client.endpoints.allowance import Allowance, CallSize, Turn
from eval_client.endpoints.gate import Gate
from eval_client.endpoints.rejections import SAME_REJECTIONS, Rejections
from eval_client.metrics import EndpointMetrics
from eval_client.plan.entries import AgentEntry, Endpoint
from eval_client.plan.plan import Plan
from proctor.config.secrets import secret
from proctor.environment import AgentRefused, AgentStopped, AgentUnavailable, RequestRejected
from proctor.http.client import AnyClient
from proctor.http.connection import ConnectionFields
from proctor.llm.config import ChatConfig, EndpointForm, RequestForm, RequestLimits
from proctor.llm.model import ChatModel, Completion, EndpointEvent, ModelRefused, connection
from proctor.llm.outage import EndpointDown, Outage
from proctor.types import Message, Tool
from task_server.client.client import Call

LOCAL_TOKEN_ENV = "PROCTOR_LOCAL_TOKEN"
"""Environment variable with the token of the servers that runs of this process start."""


class Endpoints:
    """Every agent's model, and the limits that agents of one endpoint share.

    `changed` is called when a concurrency limit changes. `ensure_lease` is awaited right before every request: it
    returns once no other client can be playing the same trial.
    """

    def __init__(
        self,
        plan: Plan,
        client: AnyClient,
        spend: Spend,
        builtin: str | None,
        changed: Callable[[], None],
        *,
        ensure_lease: Callable[[], Awaitable[None]],
    ) -> None:
        self.spend, self.allowance = spend, Allowance(spend)
        self._ensure_lease = ensure_lease
        self.limits = {endpoint.name: EndpointLimit(endpoint.concurrency) for endpoint in _endpoints(plan)}
        self.calls: dict[int, Call] = {}
        """Model calls under way, oldest first, each named by its agent."""
        self.troubles: dict[str, str] = {}
        """agent -> how its last request failed, until one succeeds"""
        self.feedback = {name: EndpointFeedback() for name in self.limits}
        """endpoint -> its answers since they were last reported to other clients"""
        self.on_throttled: list[Callable[[], None]] = []
        self.gates = {name: Gate() for name in self.limits}
        self.pooled = {one.name: one for one in _endpoints(plan) if one.shared or one.rpm or one.tpm}
        """The endpoints whose limits `run.sharing` keeps in pools; the limits of the others are this run's own."""
        self.addresses: dict[str, tuple[str, str]] = {}
        """pooled endpoint -> (base URL, key, or where it comes from)"""
        self.shares: dict[str, Share] = {}
        """pooled endpoint -> this client's newest share"""
        self.unshared: dict[str, str] = {}
        """pooled endpoint -> why it can't be shared with other runs at the moment"""
        self.metrics = EndpointMetrics()
        self._changed = changed
        self.outages: dict[str, Outage] = {}
        """endpoint -> whether it is down"""
        models = [agent for agent in plan.agents if not agent.is_command]
        for agent in models:
            endpoint = plan.endpoint_of(agent)
            self.outages.setdefault(endpoint.name, Outage(endpoint.patience_s, changed))
        self._models = {
            agent.name: _Limited(
                self._chat(plan, agent, client, builtin),
                agent.name,
                self._limit(plan, agent),
                self.allowance,
                self.calls,
                size=None if agent.builtin else CallSize(chat_config(plan, agent, builtin)),
                gate=self.gates[plan.endpoint_of(agent).name],
                metrics=self.metrics,
                ensure_lease=ensure_lease,
            )
            for agent in models
        }
        for agent in models:
            name = plan.endpoint_of(agent).name
            if name in self.pooled:
                self.addresses[name] = _address(chat_config(plan, agent, builtin))

    def model(self, agent: str) -> "_Limited":
        """The model of an agent that is no command."""
        return self._models[agent]

    def is_down(self, endpoint: str) -> bool:
        """Whether an endpoint is down; that of the commands never is."""
        return endpoint in self.outages and self.outages[endpoint].down

    def _limit(self, plan: Plan, agent: AgentEntry) -> EndpointLimit:
        return self.limits[plan.endpoint_of(agent).name]

    def _chat(self, plan: Plan, agent: AgentEntry, client: AnyClient, builtin: str | None) -> ChatModel:
        limit, name = self._limit(plan, agent), plan.endpoint_of(agent).name
        gate = self.gates[name]

        def on_event(event: EndpointEvent) -> None:
            self.metrics.requests(name, event.kind).inc()
            capacity = int(limit.limit)
            if event.kind == "ok":
                self.troubles.pop(agent.name, None)
                self.feedback[name].answered += 1
                if limit.limit == limit.ceiling:
                    return
                limit.succeeded()
            elif event.kind == "throttled":
                limit.throttled(time.monotonic(), event.retry_after_s)
                self.feedback[name].was_throttled(event.retry_after_s)
                for call in self.on_throttled:
                    call()
            else:
                limit.retried()
            if event.kind != "ok":
                self.troubles[agent.name] = event.cause
            if limit.capacity != capacity:
                self._changed()

        async def sleep(wait_s: float) -> None:
            await asyncio.sleep(wait_s)
            if gate.limited:
                await gate.enter(0.0)
            await self._ensure_lease()

        config, content = chat_config(plan, agent, builtin), plan.traces.content
        outage = self.outages[name]
        return ChatModel(config, client, outage=outage, on_event=on_event, traces_content=content, sleep=sleep)


def chat_config(plan: Plan, agent: AgentEntry, builtin: str | None) -> ChatConfig:
    """The chat settings of an agent; `builtin` is the base URL of the run's own agent server."""
    endpoint = plan.endpoint_of(agent)
    own = agent.builtin is not None and agent.endpoint is None
    return ChatConfig(
        base_url=builtin if own else endpoint.base_url,
        model=agent.model or agent.name,
        api_key_env=LOCAL_TOKEN_ENV if own else endpoint.api_key_env,
        metadata=agent.sends_metadata,
        **{name: getattr(agent, name) for name in RequestForm.model_fields},
        **{
            name: getattr(endpoint, name)
            for part in (RequestLimits, EndpointForm, ConnectionFields)
            for name in part.model_fields
        },
    )


def check_settings(plan: Plan) -> None:
    """Raises ValueError, which names the variable, if a key, a base URL or the controller's token can't be used."""
    secret(plan.token_env)
    for agent in plan.agents:
        if not agent.is_command and (agent.builtin is None or agent.endpoint is not None):
            config = chat_config(plan, agent, None)
            connection(config)


def _address(config: ChatConfig) -> tuple[str, str]:
    """(base URL, key, or where the key comes from if it changes)"""
    reached = connection(config)
    return reached.url, reached.keys.identity


class _Limited:
    """A model that waits while its endpoint pauses, or its rates are used up.

    Raises BudgetExhausted.
    """

    def __init__(
        self,
        model: ChatModel,
        agent: str,
        limit: EndpointLimit,
        allowance: Allowance,
        calls: dict[int, Call],
        *,
        size: CallSize | None,
        gate: Gate,
        metrics: EndpointMetrics,
        ensure_lease: Callable[[], Awaitable[None]],
    ) -> None:
        self._model, self._agent, self._limit, self._calls = model, agent, limit, calls
        self._allowance, self._spend, self._size = allowance, allowance.spend, size
        self._bounded = self._spend.bounded
        self._gate, self._metrics, self._ensure_lease = gate, metrics, ensure_lease
        self._estimate = Estimate()
        self._rejections = Rejections()

    async def __call__(
        self, messages: Sequence[Message], tools: Sequence[Tool], metadata: Mapping[str, str]
    ) -> Completion:
        """The model's answer. Raises AgentRefused also where calls in a row were all rejected alike."""
        reserved = 0.0
        if self._gate.limited or self._limit.cool_until > time.monotonic():
            reserved = await self._slot(messages)
        await self._ensure_lease()
        turn = self._agent, metadata.get("task", ""), metadata.get("sample", ""), metadata.get("epoch", "")
        await self._reserve(turn, messages, tools)
        call = Call(self._agent, time.monotonic())
        self._calls[id(call)] = call
        number = self._rejections.begin()
        try:
            completion = await self._model.complete(messages, tools, metadata)
            self._paid(completion, messages, reserved)
            self._spend.turns[turn[1]] += 1
            self._rejections.answered()
            return completion
        except AgentStopped as stopped:
            self._rejections.answered()
            if isinstance(stopped, ModelRefused) and stopped.completion is not None:
                self._paid(stopped.completion, messages, reserved)
            raise
        except (AgentUnavailable, EndpointDown) as failed:
            if failed.paid is not None:
                self._spend.add(self._agent, Tokens.of(failed.paid))
            if not isinstance(failed, RequestRejected) or not self._rejections.rejected(number, str(failed)):
                raise
            raise AgentRefused(f"{failed}, like {SAME_REJECTIONS} calls in a row") from failed
        finally:
            del self._calls[id(call)]
            self._returned(turn)
            self._rejections.end(number)

    async def _reserve(self, turn: Turn, messages: Sequence[Message], tools: Sequence[Tool]) -> None:
        """Wait until the run's limits allow a call of this estimated size. Raises BudgetExhausted."""
        if not self._bounded:
            return
        prompt, completion = (0, 0) if self._size is None else self._size.of(messages, tools)
        await self._allowance.take(turn, self._spend.call(self._agent, prompt, completion))

    def _returned(self, turn: Turn) -> None:
        if self._bounded:
            self._allowance.returned(turn)

    async def _slot(self, messages: Sequence[Message]) -> float:
        """Wait for the endpoint's pause to end and for a time slot; the tokens that the slot reserves."""
        await self._cooled()
        if not self._gate.limited:
            return 0.0
        tokens = self._estimate.of(_chars(messages)) if self._gate.rates.tpm else 0.0
        await self._gate.enter(tokens)
        await self._cooled()
        return tokens

    def _paid(self, completion: Completion, messages: Sequence[Message], reserved: float) -> None:
        """Count what an answer took and cost; tokens beyond those reserved become the gate's debt."""
        usage = completion.usage
        self._metrics.answer_s(self._agent).observe(completion.seconds)
        self._spend.add(self._agent, Tokens.of(usage))
        if self._size is not None and self._bounded:
            self._size.learn(messages, usage.prompt_tokens, usage.completion_tokens)
        if completion.metered and reserved:
            self._gate.debt += usage.prompt_tokens + usage.completion_tokens - reserved
            self._estimate.learn(_chars(messages), usage.prompt_tokens, usage.completion_tokens)

    async def _cooled(self) -> None:
        """Wait until the endpoint's pause is over, up to a quarter longer at random to spread the requests."""
        now = time.monotonic()
        while (wait_s := self._limit.cool_for_s(now)) > 0:
            await asyncio.sleep(wait_s * random.uniform(1.0, 1.25))
            now = time.monotonic()


def _chars(messages: Sequence[Message]) -> int:
    return sum(len(message.content) for message in messages)


def _endpoints(plan: Plan) -> list[Endpoint]:
    return list({endpoint.name: endpoint for endpoint in map(plan.endpoint_of, plan.agents)}.values())


def local_token() -> str:
    """The token of the servers that runs of this process start; kept in LOCAL_TOKEN_ENV for them and our requests."""
    token = os.environ[LOCAL_TOKEN_ENV] = os.environ.get(LOCAL_TOKEN_ENV) or os.urandom(16).hex()
    return token
