"""The judge and the user that the sessions of a worker share: models at endpoints, or rules."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from pydantic import Field, JsonValue

from environments.simulbench import prompt, rules
from environments.simulbench.records import DialogueLine, Script, Task
from environments.simulbench.reply import Profile, UnreadableAnswer, UserRequest
from proctor.environment import EnvironmentFault
from proctor.http.client import HttpClient, http_client
from proctor.llm.cached_model import Answer, CachedModel, NoReadableReply, Question, Replies, key_of
from proctor.llm.config import ChatConfig
from proctor.llm.judges import all_answers, judge_names
from proctor.llm.model import Completion
from proctor.session.kept_replies import ModelReply
from proctor.session.thoughts import without_thought
from proctor.types import Message

JUDGE_DEFAULTS: dict[str, JsonValue] = {"temperature": 0, "max_tokens": 1024}
USER_DEFAULTS: dict[str, JsonValue] = {"temperature": 1.2, "max_tokens": 300}
"""Published values; entries of the configured `sampling` override them."""
TRIES: dict[Profile, int] = {"strict": 3, "compat": 20}
"""Limit of answers requested from a judge for one question."""
USER_TRIES = 5
MAX_ANSWER_CHARS = 100_000
"""A longer answer is unreadable; about 25 times the published limit of a judge's answer."""
CHARS_A_TOKEN = 4
"""Estimate for endpoints that report no usage."""
Meaning = TypeVar("Meaning")


class Unparsed(Exception):
    """No answer was readable in all tries. The trial ends in a fault without a score."""

    def __init__(self, who: str, problem: str, reply: ModelReply) -> None:
        super().__init__(f"{who}_unparsed: {problem}")
        self.reply = reply
        """The last answer, with the token usage of all answers."""
        self.detail: dict[str, JsonValue] = {
            "cause": f"{who}_unparsed",
            "problem": problem,
            "text": reply.text[:MAX_ANSWER_CHARS],
        }
        """Detail of the finish."""


def question(
    messages: tuple[Message, ...], parse: Callable[[str], Meaning], reminder: str | None, tries: int
) -> Question[Meaning]:
    """A question whose answers `parse` reads, or refuses with UnreadableAnswer; too long ones, thoughts aside, are too.

    `reminder` may hold `{problem}` for the error in the last answer; None to ask again with the same messages.
    """

    def read(text: str) -> Meaning:
        if len(text) > MAX_ANSWER_CHARS and len(without_thought(text)) > MAX_ANSWER_CHARS:
            raise UnreadableAnswer(f"the answer has more than {MAX_ANSWER_CHARS} characters")
        return parse(text)

    return Question(messages, read, None if reminder is None else partial(prompt.reminder, reminder), tries)


class HelperConfig(ChatConfig):
    """A judge or user model at an OpenAI-compatible endpoint, with its own limits and budget."""

    operational: ClassVar[frozenset[str]] = ChatConfig.operational | {"concurrency", "tokens"}

    concurrency: int = Field(default=8, ge=1)
    """Limit of concurrent requests of one worker, at each server of a list."""
    tokens: int | None = Field(default=None, ge=1)
    """Budget: limit of the tokens of all replies in the cache, as reported by the endpoint, else estimated."""


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
        self, role: str, config: HelperConfig, defaults: dict[str, JsonValue], client: HttpClient, kept: Replies
    ) -> None:
        super().__init__(role, config, client, kept, defaults)
        self._budget = config.tokens
        self._ledger = Ledger(kept.folder / f"spent-{key_of(role, config.endpoint(), config.model)[:16]}")
        self._free = asyncio.Semaphore(config.concurrency * (len(config.servers()) or 1))

    async def answer(self, question: Question[Meaning], salt: str) -> Answer[Meaning]:
        """The answer to a question, equal for equal questions with equal salts. Raises Unparsed, EnvironmentFault."""
        try:
            return await self.ask(question._replace(salt=salt))
        except NoReadableReply as error:
            raise Unparsed(self.role, error.problem, error.reply) from error

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


class Judges:
    """The judges and the user: models if there are pools for them, else rules.

    Methods raise Unparsed and EnvironmentFault, never due to the agent under test.
    """

    def __init__(self, judges: Mapping[str, ModelPool], user: ModelPool | None) -> None:
        self._judges = judges
        self._user = user

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the judges that are models."""
        return tuple(self._judges)

    async def rate(
        self, question: Question[float], script: Script, response: str, profile: Profile
    ) -> list[Answer[float]]:
        """Each judge's rating of a response. Each profile has its own cached replies, since it parses differently."""
        if self._judges:
            return await all_answers([judge.answer(question, profile) for judge in self._judges.values()])
        history = [line.message() for line in script.dialogue_history]
        rating = rules.rate(history, response, script.exchange)
        return [_by_rules("judge", question, f"Judged by rules, not by a model.\nRating: [[{rating:g}]]")]

    async def follow_up(
        self, question: Question[UserRequest], task: Task, history: tuple[DialogueLine, ...], seed: int
    ) -> Answer[UserRequest]:
        """The user's next message in a dialogue; equal seeds give equal messages."""
        if self._user is not None:
            return await self._user.answer(question, f"{task.id}:{seed}")
        strategy, request = rules.follow_up(task, len(history) // 2 + 1, seed)
        return _by_rules("user", question, json.dumps({"user": {"strategy": strategy, "request": request}}))


def _by_rules(role: str, question: Question[Meaning], text: str) -> Answer[Meaning]:
    reply = ModelReply(text=text, model="rules")
    try:
        return Answer(question.read(text), reply)
    except UnreadableAnswer as unreadable:
        raise Unparsed(role, str(unreadable), reply) from unreadable


@asynccontextmanager
async def open_judges(judges: Sequence[HelperConfig], user: HelperConfig | None, cache: Path) -> AsyncIterator[Judges]:
    """The judges of a lifespan. Raises EnvironmentFault if the cache can't be used."""
    if not judges and user is None:
        yield Judges({}, None)
        return
    replies = Replies(cache)
    replies.open()
    async with http_client() as client:
        yield Judges(
            {
                name: ModelPool("judge", judge, JUDGE_DEFAULTS, client, replies)
                for name, judge in zip(judge_names(judges), judges, strict=True)
            },
            None if user is None else ModelPool("user", user, USER_DEFAULTS, client, replies),
        )
