"""`environment: openenv`: episodes of an environment that an OpenEnv server plays."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue, ValidationError, WrapValidator, model_validator

from proctor.digest import digest_of
from proctor.environment import Agent, Environment
from proctor.tools import Protocol
from proctor.types import Finish
from proctor_bridges.worlds.openenv.episode import EnvEpisode
from proctor_bridges.worlds.openenv.server import MOST_SAMPLES, ServedEnvironment, described, session
from proctor_bridges.worlds.openenv.wire import Object, ScoreRule, action_field, is_mcp, text_field


def _tasks_or_count(source: object, validate: Callable[[object], int | str]) -> int | str:
    try:
        found = validate(source)
    except ValidationError:
        found = 0
    if isinstance(found, int) and not 1 <= found <= MOST_SAMPLES:
        raise ValueError(f"write `tasks`, or how many seeds to play, from 1 to {MOST_SAMPLES}")
    return found


class OpenEnv(Environment):
    """An environment of an OpenEnv server. One of MCP tools is played by function calls, any other by text."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    url: str = Field(pattern=r"^https?://[^\s@?#]+$")
    """The server's base URL, as its own clients are given it."""
    source: Annotated[int | Literal["tasks"], WrapValidator(_tasks_or_count)] = Field(default="tasks", alias="samples")
    """In plans `samples`: the tasks that the server counts, or a number N for the seeds 0 to N-1."""
    split: str | None = None
    """The split of the tasks; not needed where there is one."""
    reset: dict[str, JsonValue] = Field(default_factory=dict)
    """Further fields of each reset."""
    action: str | None = None
    """The action's field that takes the agent's reply; None for the only required one of type string."""
    text: str | None = None
    """The observation's field that the agent reads; None for the only one of type string, else the whole as JSON."""
    score: ScoreRule = "last"
    """How an episode's rewards become its score."""
    range: tuple[float, float] = (0.0, 1.0)
    """The rewards that mean score 0 and score 1; what lies beyond counts as these."""
    max_steps: int = Field(default=50, ge=1, le=100_000)
    """The most replies of an episode."""
    step_limit_s: float = Field(default=240.0, gt=0, le=3600)
    """An answer of the server that takes longer is a fault."""

    bad_replies: ClassVar[str | None] = "rejected_actions"
    operational: ClassVar[frozenset[str]] = frozenset({"url", "step_limit_s"})

    @model_validator(mode="after")
    def _is_a_range(self) -> "OpenEnv":
        low, high = self.range
        if not low < high < float("inf") or low == float("-inf"):
            raise ValueError("range: write the reward of score 0 before a larger one of score 1, as in [-1, 1]")
        return self

    def samples(self) -> Sequence[str]:
        tasks = self._served.tasks
        count = tasks.count if tasks is not None else int(self.source)
        return tuple(str(number) for number in _range(count))

    def digest(self) -> str:
        return digest_of((type(self).__name__, self.revision, self, self._served))

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        served = await asyncio.to_thread(lambda: self._served)
        async with session(self.url, self.step_limit_s) as opened:
            episode = EnvEpisode(opened, self._action, self._text, self.score, self.range)
            return await episode.play(agent, self._reset(served, sample, seed), self.max_steps)

    @property
    def max_turns(self) -> int | None:
        return self.max_steps

    @property
    def protocol(self) -> Protocol:
        """By function calls where the server's environment takes calls of tools."""
        return "tools" if self._action is None else "text"

    def not_comparable_because(self) -> str | None:
        return "the environment and its rewards are those of another program's OpenEnv server"

    @cached_property
    def _served(self) -> ServedEnvironment:
        """What the server says. A thread of its own asks: the caller may be a coroutine."""
        with ThreadPoolExecutor(1) as thread:
            asked = described(self.url, with_tasks=self.source == "tasks", split=self.split)
            served = thread.submit(asyncio.run, asked).result()
        if self.action is None and not is_mcp(served.action):
            action_field(served.action)
        return served

    @property
    def _action(self) -> str | None:
        """The action's field for the reply; None where actions are calls of tools."""
        if self.action is not None:
            return self.action
        return None if is_mcp(self._served.action) else action_field(self._served.action)

    @property
    def _text(self) -> str | None:
        return self.text if self.text is not None else text_field(self._served.observation)

    def _reset(self, served: ServedEnvironment, sample: str, seed: int) -> Object:
        if served.tasks is None:
            return {**self.reset, "seed": int(sample)}
        return {"seed": seed, **self.reset, "split": served.tasks.split, "index": int(sample)}


_range = range
"""The class has a field of this name."""
