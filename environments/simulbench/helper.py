"""Who judges, and who asks, on the environment's side: models behind endpoints, or rules."""

import asyncio
from abc import abstractmethod
from typing import ClassVar, NamedTuple

from pydantic import Field, JsonValue

from environments.base import Agent, AgentStopped, AgentUnavailable, EnvironmentFault, Policy, PolicyAgent, Transcript
from environments.chat import ChatConfig, ChatModel, Replies, Reply, key_of
from environments.http import AnyClient
from environments.simulbench.ledger import Ledger
from environments.types import Action, Observation

CHARS_A_TOKEN = 4
"""What is paid for, where an endpoint doesn't say."""


class HelperConfig(ChatConfig):
    """A judge or user model at an OpenAI-compatible endpoint, with its own limits and budget."""

    operational: ClassVar[frozenset[str]] = ChatConfig.operational | {"concurrency", "tokens"}

    concurrency: int = Field(default=8, ge=1)
    """Requests in flight at once, in one worker."""
    tokens: int | None = Field(default=None, ge=1)
    """What all replies bought into the cache may have cost: reported by the endpoint, or else estimated."""


class Cost(NamedTuple):
    """What a helper's replies cost when they were bought; 0 for rules."""

    prompt_tokens: int = 0
    completion_tokens: int = 0


class Helper(Agent):
    """An agent that serves the environment for one session."""

    name: str
    """What every score says it came from: `rules`, or the model's name."""
    cost: Cost

    @abstractmethod
    async def act(self, observation: Observation) -> Action:
        """The answer. Raises EnvironmentFault alone: whatever fails here is no doing of the agent under test."""


class RuleHelper(Helper):
    """Follows a policy: deterministic, without any model."""

    name = "rules"
    cost = Cost()

    def __init__(self, policy: Policy) -> None:
        self._agent = PolicyAgent(policy)

    async def act(self, observation: Observation) -> Action:
        return await self._agent.act(observation)


class Desk:
    """Where the helpers of one model are asked: within its limits and budget, and never twice for the same."""

    def __init__(
        self, role: str, config: HelperConfig, defaults: dict[str, JsonValue], client: AnyClient, kept: Replies
    ) -> None:
        self.role, self._config = role, config
        self._sampling = {**defaults, **config.sampling}
        self._model = ChatModel(config, client)
        self._replies = kept
        self._ledger = Ledger(kept.folder / f"spent-{key_of(role, config.endpoint(), config.model)[:16]}")
        self._free = asyncio.Semaphore(config.concurrency)

    def helper(self, salt: str = "") -> Helper:
        """A helper for one session; equal questions with equal salts get equal answers."""
        return ModelHelper(self, self._config.model, salt)

    async def ask(self, transcript: Transcript, observation: Observation, salt: str) -> Reply:
        """The reply that holds for what was said so far. Raises EnvironmentFault."""
        messages = tuple(transcript.observe(observation))
        key = key_of(self._config.model, self._sampling, salt, messages)
        async with self._replies.locked(key):
            kept = self._replies.get(key)
            if kept is not None:
                return kept
            async with self._free:
                self._refuse_over_budget()
                try:
                    completion = await self._model.complete(messages, sampling=self._sampling)
                except (AgentUnavailable, AgentStopped) as error:
                    raise EnvironmentFault(f"the {self.role} {self._config.model} failed: {error}") from error
            reply, usage = Reply.of(completion), completion.usage
            said = sum(len(message.content) for message in messages) + len(reply.text)
            self._ledger.add(usage.prompt_tokens + usage.completion_tokens or said // CHARS_A_TOKEN)
            return await asyncio.to_thread(self._replies.keep, key, reply)

    def _refuse_over_budget(self) -> None:
        budget = self._config.tokens
        if budget is not None and self._ledger.spent() >= budget:
            raise EnvironmentFault(
                f"the {self.role}'s budget is spent: `{self.role}.tokens` is {budget}; name another `cache` for more"
            )


class ModelHelper(Helper):
    """Holds one session's transcript of a model at a desk."""

    def __init__(self, desk: Desk, model: str, salt: str) -> None:
        self.name = model
        self.cost = Cost()
        self._desk = desk
        self._salt = salt
        self._transcript = Transcript()

    async def act(self, observation: Observation) -> Action:
        reply = await self._desk.ask(self._transcript, observation, self._salt)
        self.name = reply.model
        self.cost = Cost(
            self.cost.prompt_tokens + reply.prompt_tokens, self.cost.completion_tokens + reply.completion_tokens
        )
        action = Action(content=reply.text)
        self._transcript.answer(observation, action)
        return action
