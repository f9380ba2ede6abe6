"""Lateral thinking puzzles of AgentBench (arXiv 2308.03688, Appendix F)."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue, PrivateAttr

from environments.lateral_thinking import dataset, game, policies
from environments.lateral_thinking.dataset import Puzzle
from environments.lateral_thinking.host import Host, Profile
from environments.lateral_thinking.hosts.lexical import LexicalHost
from environments.lateral_thinking.hosts.model import SAMPLING, ModelHost
from environments.lateral_thinking.hosts.model_prompt import HOST_TEXTS
from environments.lateral_thinking.prompt import CALL_TEXTS, ROUNDS, SOLVER_TEXTS
from environments.lateral_thinking.reply import question_of, shown, toolset
from environments.lateral_thinking.scoring import PRIMARY, summarize
from proctor.digest import json_digest
from proctor.environment import Agent, Environment, Policy, default_folder
from proctor.llm.config import ChatConfig
from proctor.tables.table import counted
from proctor.tools import NO_PUBLISHED_FUNCTIONS, Protocol, in_tools, parsed_action
from proctor.types import Action, Finish, ParsedAction, Summary, asked_and_answered

SHIPPED_SAMPLES = Path(__file__).with_name("samples")
PUBLISHED_HOST = "gpt-3.5-turbo-0613"
PUBLISHED_SAMPLING: Mapping[str, JsonValue] = {"temperature": 0, "max_tokens": 512}
_REVISIONS: Mapping[Profile, str] = {"compat": "3", "strict": "4"}
"""A profile's is to be changed with any change of behaviour that shapes a trial."""


class LateralThinking(Environment):
    """The agent asks yes/no questions until it finds the hidden truth of a story."""

    data: Path | None = None
    """A puzzle file (xlsx as published, or YAML) or a folder of them; None for the puzzles shipped with Proctor."""
    profile: Profile = "strict"
    """`compat` counts as the published code does, `strict` as its rules intend."""
    protocol: Protocol = "text"
    """How the agent asks: by its text, or by calls of the function `ask`."""
    host: ChatConfig | None = None
    """The model that judges; None for the lexical host, which compares words and needs no model."""
    cache: Path | None = None
    """The folder for the host model's replies; None for `proctor/ltp` in the user's cache folder."""

    operational: ClassVar[frozenset[str]] = frozenset({"cache"})
    capacity: ClassVar[int] = 32
    max_turns: ClassVar[int | None] = ROUNDS

    _host: Host | None = PrivateAttr(default=None)

    def samples(self) -> Sequence[str]:
        return tuple(self._puzzles)

    def digest(self) -> str:
        host = None if self.host is None else (self.host.model, self.host.sampling, HOST_TEXTS)
        shape: list[object] = [_REVISIONS[self.profile], self.profile, host, SOLVER_TEXTS, list(self._puzzles.values())]
        shape += [] if self.protocol == "text" else [self.protocol, CALL_TEXTS]
        return json_digest(shape)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        host = LexicalHost() if self.host is None else ModelHost(self.host, self.cache or default_folder("ltp"))
        async with host.lifespan():
            self._host = host
            try:
                yield
            finally:
                self._host = None

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        puzzle = self._puzzle(sample)
        if self._host is None:
            raise RuntimeError("enter the environment's lifespan before playing")
        spoken = game.game_protocol(puzzle, self.profile, self.protocol)
        reason, tally = await game.play(puzzle, self._host.game(puzzle, self.profile), agent, spoken, self.profile)
        metrics = spoken.reader.metrics() | tally.metrics()
        found = f"{len(tally.hits)} of {counted(len(puzzle.keys), 'key point')} found"
        answered = ": ".join([found, *filter(None, ["; ".join(puzzle.keys[key] for key in sorted(tally.hits))])])
        return Finish(
            reason=reason,
            score=metrics[PRIMARY],
            metrics=metrics,
            detail={
                **asked_and_answered(puzzle.story, "; ".join(puzzle.keys), answered),
                "host": self._host.name,
                "profile": self.profile,
                "language": puzzle.language,
                "keys": len(puzzle.keys),
                "hits": {str(key + 1): round_ for key, round_ in sorted(tally.hits.items())},
                "finish_round": tally.finish_round,
            },
        )

    def parse_action(self, action: Action) -> ParsedAction | None:
        return parsed_action(game.question_reader("en", self.profile, self.protocol), action, shown)

    def category(self, sample: str) -> str:
        """The puzzle's language."""
        return self._puzzle(sample).language

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(sample, policies.reference(self._puzzle(sample)))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(sample, policies.naive(self._puzzle(sample)))

    def random(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(sample, policies.chance(self._puzzle(sample), seed))

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return summarize(finishes, "lexical" if self.host is None else f"model {self.host.model}")

    def not_comparable_because(self) -> str:
        if self.protocol == "tools":
            return NO_PUBLISHED_FUNCTIONS
        if self.data is None:
            return "the samples are Proctor's own, not the published ones"
        if self.host is None:
            return "the host is lexical; published scores were judged by a language model"
        if self.profile != "compat":
            return f"the profile {self.profile!r} counts differently from the published code; use compat"
        if self.host.model != PUBLISHED_HOST:
            return f"the host is {self.host.model}; published scores were judged by {PUBLISHED_HOST}"
        if (sampling := {**SAMPLING, **self.host.sampling}) != PUBLISHED_SAMPLING:
            return f"the host's sampling is {sampling}; published scores were judged with {PUBLISHED_SAMPLING}"
        if any(puzzle.language != "en" for puzzle in self._puzzles.values()):
            return "some puzzles are Chinese; the published code plays them with its English prompts"
        return "the instruction and the host's prompts are in Proctor's own words; the published ones can't be given"

    def _in_protocol(self, sample: str, policy: Policy) -> Policy:
        """A policy for text, in the protocol of this configuration."""
        if self.protocol == "text":
            return policy
        functions = toolset(self._puzzle(sample).language, self.profile)
        return in_tools(policy, partial(question_of, profile=self.profile), str, functions)

    @cached_property
    def _puzzles(self) -> Mapping[str, Puzzle]:
        return {puzzle.id: puzzle for puzzle in dataset.load(self.data or SHIPPED_SAMPLES)}

    def _puzzle(self, sample: str) -> Puzzle:
        if sample not in self._puzzles:
            raise ValueError(f"no sample {sample!r}; ids look like {next(iter(self._puzzles))}")
        return self._puzzles[sample]
