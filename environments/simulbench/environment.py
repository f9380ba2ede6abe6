"""SimulBench (Jia et al., arXiv 2409.07641): simulators, judged; and every stage that makes their scripts."""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import pydantic_core
from pydantic import Field, PrivateAttr

from environments.base import Agent, AgentStopped, Environment, Policy
from environments.chat import default_folder
from environments.simulbench import prompts
from environments.simulbench.bench import Bench, open_bench
from environments.simulbench.compare_stage import CompareStage
from environments.simulbench.extract_stage import ExtractStage
from environments.simulbench.generate_stage import GenerateStage
from environments.simulbench.helper import HelperConfig
from environments.simulbench.interview import Unparsed
from environments.simulbench.live_stage import LiveStage
from environments.simulbench.reading import Profile
from environments.simulbench.records import TURNS, Mode
from environments.simulbench.script_stage import ScriptStage
from environments.simulbench.stage import Direction, Setting, Stage
from environments.types import Finish, FinishReason, Summary

STAGES: dict[Mode, Callable[[Setting], Stage]] = {
    "script": ScriptStage,
    "live": LiveStage,
    "extract": ExtractStage,
    "generate": GenerateStage,
    "compare": CompareStage,
}
PUBLISHED_JUDGE = "gpt-4"
PUBLISHED_SCRIPTS = 500
_REVISION = "3"
"""To be changed with any change of behaviour that shapes a trial."""


class SimulBench(Environment):
    """The agent simulates a terminal, a game, a generator; a judge rates its reply from 1 to 10.

    In the modes `extract`, `generate` and `compare` the agent is itself the judge or author of the benchmark.
    """

    data: Path | None = None
    """A file of JSON lines: scripts, or what else the mode takes; None for those shipped with Proctor."""
    mode: Mode = "script"
    """`script` and `live` (samples: scripts, tasks) play the simulator; `extract`, `generate` and `compare` (dialogues,
    tasks, pairs) play the judge or author that makes scripts and compares runs."""
    profile: Profile = "strict"
    """`compat` reads ratings and verdicts as the published code does, `strict` as they are meant."""
    judge: HelperConfig | None = None
    """The model that rates in `script` and `live`; None for the judge by rules, which needs nothing."""
    user: HelperConfig | None = None
    """The model that plays the user in `live`; None for the user by rules."""
    types: Path | None = None
    """A JSON file from script id to `lastonly`, `firstchan` or `subseqchan`; None for the rule."""
    system: str | None = prompts.SYSTEM
    """The system line to the agent in `script` and `live`; null for none."""
    ensure_ascii: bool = False
    """True escapes non-ASCII characters in the JSON that judges and users are shown, as published."""
    max_response_chars: int = Field(default=32_000, ge=1)
    """A judge is shown no more of a response; what was cut is noted."""
    direction: Direction = "both"
    """`compare`: both orders of each pair, or one by the seed."""
    count: int = Field(default=20, ge=1)
    """`generate`: how many tasks."""
    cache: Path | None = None
    """Folder of the replies of judge and user; None for `proctor/simulbench` in the user's folder for caches."""

    capacity: ClassVar[int] = 16

    _bench: Bench | None = PrivateAttr(default=None)

    @property
    def max_turns(self) -> int:
        orders = 2 if self.direction == "both" else 1
        asked = {"script": 1, "live": TURNS, "compare": orders * self._setting.tries}
        return asked.get(self.mode, self._setting.tries)

    def samples(self) -> Sequence[str]:
        return self._stage.samples()

    def digest(self) -> str:
        helpers = [None if helper is None else (helper.model, helper.sampling) for helper in (self.judge, self.user)]
        setting = self._setting.model_dump(exclude={"data", "types"})
        shape = [_REVISION, self.mode, setting, helpers, prompts.ALL, self._stage.shape()]
        return hashlib.blake2b(pydantic_core.to_json(shape), digest_size=16).hexdigest()

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        async with open_bench(self.judge, self.user, self.cache or default_folder("simulbench")) as bench:
            self._bench = bench
            try:
                yield
            finally:
                self._bench = None

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        if self._bench is None:
            raise RuntimeError("enter the environment's lifespan before playing")
        about = {"simulbench": self.mode, **self._stage.about(sample)}
        try:
            finish = await self._stage.play(sample, agent, seed, self._bench)
        except AgentStopped as stopped:
            finish = Finish(reason=stopped.reason, score=0.0)
        except Unparsed as unparsed:
            finish = Finish(reason=FinishReason.TASK_ERROR, detail=unparsed.detail)
        return finish.model_copy(update={"detail": about | finish.detail})

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return self._stage.policies(sample, seed)[0]

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self._stage.policies(sample, seed)[1]

    def random(self, sample: str, seed: int = 0) -> Policy:
        return self._stage.policies(sample, seed)[2]

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return self._stage.summarize(finishes)

    def comparable(self) -> str | None:
        if self.mode != "script":
            return f"the mode {self.mode!r} has no published scores"
        if self.data is None:
            return "the samples are Proctor's own, not the published ones"
        if self.judge is None:
            return "the judge goes by rules; published ratings are a language model's"
        if self.profile != "compat":
            return f"the profile {self.profile!r} reads ratings other than the published code; use compat"
        if not f"{self.judge.model}-".startswith(f"{PUBLISHED_JUDGE}-"):
            return f"the judge is {self.judge.model}; published ratings are {PUBLISHED_JUDGE}'s"
        if not self.ensure_ascii:
            return "the published judge is shown escaped characters; set ensure_ascii: true"
        count = len(self.samples())
        if count != PUBLISHED_SCRIPTS:
            scripts = "1 script" if count == 1 else f"{count} scripts"
            return f"{self.data} holds {scripts}, the published file {PUBLISHED_SCRIPTS}"
        return None

    @cached_property
    def _setting(self) -> Setting:
        judged_by = "rules, not a model" if self.judge is None else f"model {self.judge.model}"
        return Setting(judged_by=judged_by, **self.model_dump(include=set(Setting.model_fields)))

    @cached_property
    def _stage(self) -> Stage:
        return STAGES[self.mode](self._setting)
