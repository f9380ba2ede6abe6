"""The host as a judge model: it answers, keeps the known facts, and tests the key points (AgentBench, Appendix F)."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import JsonValue

from environments.lateral_thinking.dataset import Language, Puzzle
from environments.lateral_thinking.host import Answer, Host, HostedGame, Profile, Ruling, eligible
from environments.lateral_thinking.hosts import model_prompt
from proctor.environment import EnvironmentFault
from proctor.http.client import HttpClient, http_client
from proctor.llm.cached_model import CachedModel, NoReadableReply, Question, Replies
from proctor.llm.config import ChatConfig
from proctor.session.thoughts import without_thought
from proctor.types import Message

_COMPAT: dict[Language, tuple[str, str, str]] = {
    "en": ("Yes|yes", "No|no", "Irrelevant|irrelevant"),
    "zh": ("是", "不是|否", "无关|不相关"),
}
_STRICT: dict[Language, tuple[str, str, str]] = {
    "en": (r"yes\b", r"no\b", r"irrelevant\b"),
    "zh": ("是(?!否)", "不是|否", "无关|不相关"),
}
_OPENING = r"[\s\"'“”‘’「『`*]*"
"""What is skipped before an answer in `strict`: blanks, quotes and marks of emphasis."""
TRIES = 4
"""The most requests for one answer, where the model refuses or sends an empty reply."""
_REFUSAL = re.compile(
    r"(?:I['’]m |I am )?(?:very |so )?sorry\b|(?:I['’]m |I am )?unable to (?:assist|help|answer|comply|continue)"
    r"|I (?:can['’]t|can ?not|won['’]t) (?:assist|help|answer|comply|continue|provide|discuss)|As an AI\b"
    r"|(?:很|非常)?(?:抱歉|对不起)|我(?:无法|不能)(?:回答|提供|协助|继续)|作为一?个?(?:AI|人工智能)",
    re.IGNORECASE,
)
_REMINDER = "Please answer what was asked, in the form that was asked for. 请按要求的格式回答上面的问题。"
SAMPLING: dict[str, JsonValue] = {"temperature": 0}
"""The default sampling of requests to the host model; the sampling in its configuration takes precedence."""


class PuzzleJudge:
    """The host model behind its endpoint, at temperature 0 unless its configuration sets another."""

    def __init__(self, config: ChatConfig, client: HttpClient, replies: Replies) -> None:
        self._model = CachedModel("host model", config, client, replies, SAMPLING)

    async def ask(self, messages: Sequence[Message], profile: Profile) -> str:
        """The model's reply to a prompt, stripped, in `strict` without thoughts.

        Raises EnvironmentFault where there is no usable one.
        """
        read = _usable if profile == "compat" else _usable_without_thought
        try:
            return (await self._model.ask(Question(tuple(messages), read, lambda problem: _REMINDER, TRIES))).meaning
        except NoReadableReply as error:
            raise EnvironmentFault(str(error)) from error


def _usable(text: str) -> str:
    """The reply, stripped. Raises ValueError for an empty one and for a refusal."""
    text = text.strip()
    if not text or _REFUSAL.match(text):
        raise ValueError(f"it replied {text[:200]!r}" if text else "it sent an empty reply")
    return text


def _usable_without_thought(text: str) -> str:
    return _usable(without_thought(text))


def read_answer(text: str, language: Language, profile: Profile) -> Answer | None:
    """The answer at the beginning of a reply, in `compat` as published; None where it is none of the three."""
    strict = profile == "strict"
    answers: tuple[Answer, ...] = ("yes", "no", "irrelevant")
    for answer, pattern in zip(answers, (_STRICT if strict else _COMPAT)[language], strict=True):
        if re.match((_OPENING if strict else "") + f"(?:{pattern})", text, re.IGNORECASE if strict else 0):
            return answer
    return None


class ModelHost(Host):
    """Judges by asking a model behind an OpenAI-compatible endpoint."""

    def __init__(self, config: ChatConfig, cache: Path) -> None:
        self.name = f"model {config.model}"
        self._config = config
        self._cache = Replies(cache)
        self._judge: PuzzleJudge | None = None

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        self._cache.open()
        async with http_client() as client:
            self._judge = PuzzleJudge(self._config, client, self._cache)
            try:
                yield
            finally:
                self._judge = None

    def game(self, puzzle: Puzzle, profile: Profile) -> HostedGame:
        if self._judge is None:
            raise EnvironmentFault("the host model can't be used outside its lifespan")
        return ModelGame(puzzle, profile, self._judge)


class ModelGame(HostedGame):
    """Judges one game; remembers the known facts, and those since the last hit, which are the reasoning."""

    def __init__(self, puzzle: Puzzle, profile: Profile, judge: PuzzleJudge) -> None:
        self._puzzle = puzzle
        self._profile = profile
        self._judge = judge
        self._facts: list[str] = []
        self._reasoning: list[str] = []
        self._unreadable = 0

    async def rule(self, question: str, remaining: Sequence[int]) -> Ruling:
        """Asks for the answer and, where it is yes or no, for a statement, a merged sentence and each key point."""
        self._unreadable = 0
        prompt = model_prompt.answer_prompt(self._puzzle, self._facts, question, self._profile)
        reply = await self._ask(prompt)
        answer = self._read(reply)
        hits = () if answer == "irrelevant" else await self._hits(question, answer == "yes", remaining)
        return Ruling(answer=answer, reply=reply, hits=hits, unreadable=self._unreadable)

    async def _hits(self, question: str, holds: bool, remaining: Sequence[int]) -> tuple[int, ...]:
        """The key points that the reasoning now contains; in `compat` only the first one, as published."""
        language = self._puzzle.language
        piece = await self._ask(model_prompt.statement_prompt(language, question, holds=holds))
        self._facts.append(piece)
        self._reasoning.append(piece)
        sentence = piece
        if len(self._reasoning) > 1:
            sentence = await self._ask(model_prompt.merge_prompt(language, self._reasoning))
        hits: list[int] = []
        for key in eligible(self._puzzle, question, remaining, self._profile):
            prompt = model_prompt.contains_prompt(language, sentence, self._puzzle.keys[key])
            if self._read(await self._ask(prompt)) == "yes":
                hits.append(key)
                if self._profile == "compat":
                    break
        if hits:
            self._reasoning = []
        return tuple(hits)

    async def _ask(self, messages: Sequence[Message]) -> str:
        return await self._judge.ask(messages, self._profile)

    def _read(self, text: str) -> Answer:
        answer = read_answer(text, self._puzzle.language, self._profile)
        self._unreadable += answer is None
        return answer or "irrelevant"
