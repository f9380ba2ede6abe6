"""Judge and user models of the environment: endpoints, or replies made by rules."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import Field, JsonValue

from environments.simulbench.judges.interview import JudgeQuestion, Meaning, Unparsed
from environments.simulbench.reply import UnreadableAnswer
from proctor.environment import EnvironmentFault
from proctor.http.client import AnyClient
from proctor.llm.cache import Replies, key_of
from proctor.llm.cached_model import Answer, CachedModel, NoReadableReply, Question
from proctor.llm.config import ChatConfig
from proctor.llm.model import Completion
from proctor.session.kept_replies import ModelReply
from proctor.types import Message

CHARS_A_TOKEN = 4
"""Estimate for endpoints that report no usage."""


class HelperConfig(ChatConfig):
    """A judge or user model at an OpenAI-compatible endpoint, with its own limits and budget."""

    operational: ClassVar[frozenset[str]] = ChatConfig.operational | {"concurrency", "tokens"}

    concurrency: int = Field(default=8, ge=1)
    """Limit of concurrent requests of one worker."""
    tokens: int | None = Field(default=None, ge=1)
    """Budget: limit of the tokens of all replies in the cache, as reported by the endpoint, else estimated."""


class SessionModel(ABC):
    """A judge or user for one session."""

    @abstractmethod
    async def ask(self, question: JudgeQuestion[Meaning]) -> Answer[Meaning]:
        """The parsed answer with its reply. Raises Unparsed or EnvironmentFault, never due to the agent under test."""


class RuleModel(SessionModel):
    """Replies with a fixed text made by rules, without a model."""

    def __init__(self, text: str) -> None:
        self._reply = ModelReply(text=text, model="rules")

    async def ask(self, question: JudgeQuestion[Meaning]) -> Answer[Meaning]:
        try:
            return Answer(question.read(self._reply.text), self._reply)
        except UnreadableAnswer as unreadable:
            raise Unparsed(question.who, str(unreadable), self._reply) from unreadable


class Ledger:
    """A file of the tokens that models have used, a count per line; several processes may append to it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, tokens: int) -> None:
        """Appends a count."""
        with self._path.open("a") as file:
            file.write(f"{tokens}\n")

    def spent(self) -> int:
        """The sum of all counts."""
        return sum(map(int, self._path.read_text().split())) if self._path.exists() else 0


class ModelPool(CachedModel):
    """One cached model for all sessions, with a limit on concurrent requests and a token budget."""

    def __init__(
        self, role: str, config: HelperConfig, defaults: dict[str, JsonValue], client: AnyClient, kept: Replies
    ) -> None:
        super().__init__(role, config, client, kept, defaults)
        self._budget = config.tokens
        self._ledger = Ledger(kept.folder / f"spent-{key_of(role, config.endpoint(), config.model)[:16]}")
        self._free = asyncio.Semaphore(config.concurrency)

    async def complete(self, messages: Sequence[Message], sampling: Mapping[str, JsonValue]) -> Completion:
        async with self._free:
            self._refuse_over_budget()
            completion = await super().complete(messages, sampling)
        usage = completion.usage
        chars = sum(len(message.content) for message in messages) + len(completion.action.content)
        self._ledger.add(usage.prompt_tokens + usage.completion_tokens or chars // CHARS_A_TOKEN)
        return completion

    def _refuse_over_budget(self) -> None:
        if self._budget is not None and self._ledger.spent() >= self._budget:
            raise EnvironmentFault(
                f"the {self.role}'s budget is spent: `{self.role}.tokens` is {self._budget}; "
                "name another `cache` for more"
            )


class EndpointModel(SessionModel):
    """Asks a model pool; equal questions with equal salts get equal answers."""

    def __init__(self, pool: ModelPool, salt: str) -> None:
        self._pool, self._salt = pool, salt

    async def ask(self, question: JudgeQuestion[Meaning]) -> Answer[Meaning]:
        salted = Question(question.messages, question.read, question.remind, question.tries, self._salt)
        try:
            return await self._pool.ask(salted)
        except NoReadableReply as error:
            raise Unparsed(question.who, error.problem, error.reply) from error
