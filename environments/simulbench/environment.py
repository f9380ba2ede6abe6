"""SimulBench (Jia et al., arXiv 2409.07641): rates agents as simulators, and compares two of them."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from pydantic import Field, JsonValue, PrivateAttr, model_validator

from environments.simulbench import dataset
from environments.simulbench.judges import JUDGE_DEFAULTS, HelperConfig, Judges, Unparsed, open_judges
from environments.simulbench.modes import BAD_REPLIES, CompareStage, LiveStage, ScriptStage
from environments.simulbench.prompt import ALL, PROMPT, SYSTEM, read_judge
from environments.simulbench.records import TURNS, Mode, Script
from environments.simulbench.reply import Profile
from environments.simulbench.scoring import Direction, Setting
from environments.simulbench.summary import RULES, RULES_CAUTION
from proctor.digest import json_digest
from proctor.environment import Agent, AgentStopped, Environment, Policy, default_folder
from proctor.llm.judges import check_judges, judge_names
from proctor.published import lowered, other_records, records_of, unlike
from proctor.tools import Protocol
from proctor.types import Finish, FinishReason, Summary, asked_and_answered

AnyStage = ScriptStage | LiveStage | CompareStage
STAGES: dict[Mode, Callable[[Setting], AnyStage]] = {
    "script": ScriptStage,
    "live": LiveStage,
    "compare": CompareStage,
}
PUBLISHED_JUDGES = ("gpt-4", "gpt-4-0613")
"""Two names of one model: `gpt-4` meant `gpt-4-0613` when the ratings were published."""
PUBLISHED = {
    "SimulBench's data/simulbench_all.jsonl": "c778a904930b1a90c6ca371066cd4b05e30f09ede6abefc0df0adbeb63f82feb"
}
"""The published scripts, by the hash of their records."""
PUBLISHED_SAMPLING: Mapping[str, JsonValue] = {"temperature": 0, "max_tokens": 1024}
"""The agents' sampling."""
USUAL_RESPONSE_CHARS = 32_000
"""More characters than 1024 tokens can have."""
_REVISIONS: Mapping[Mode, str] = {"script": "4", "live": "6", "compare": "4"}
"""Raise a mode's revision with every change to what its trials show or how they are scored."""
_STRICT_READING = ["2"]
"""Raise it with every change to how `strict` reads replies."""
_RULES_REVISION = "2"
"""Raise it with every change to the ratings of the judge by rules."""


class SimulBench(Environment):
    """The agent simulates a terminal, a game or a generator; a judge rates its reply from 1 to 10.

    In the mode `compare` the agent is the benchmark's judge.
    """

    data: Path | None = None
    """A file of JSON lines with the mode's records: scripts, tasks or pairs; None for the shipped ones."""
    mode: Mode = "script"
    """In `script` (samples: scripts) and `live` (tasks) the agent is the simulator, in `compare` (pairs) the judge."""
    protocol: Protocol = "text"
    """Only `text`: the reply is what is judged, so there are no functions to call."""
    profile: Profile = "strict"
    """`compat` parses ratings and verdicts as the published code does; `strict` also accepts common variants."""
    judge: HelperConfig | None = None
    """The judge model in `script` and `live`; None for the judge by rules, which needs no model."""
    judges: tuple[HelperConfig, ...] = ()
    """Several judge models in place of `judge`: the rating is the median of theirs, of two the mean."""
    user: HelperConfig | None = None
    """The user model in `live`; None for the user by rules."""
    prompts: Path | None = None
    """A Python file with another judge prompt, such as SimulBench's; None for ours. The file is parsed, not run."""
    types: Path | None = None
    """A JSON file from script id to `lastonly`, `firstchan` or `subseqchan`; None for the rule."""
    task_config: Path | None = None
    """`live`: a JSON file from task id to the `request_type` and `strategy_type` that the user is told there."""
    system: str | None = SYSTEM
    """The agent's system message in `script` and `live`; null for none. If not set, `prompts` replaces the default."""
    ensure_ascii: bool = False
    """Whether to escape non-ASCII characters in the JSON in prompts of judges and users, as published."""
    max_response_chars: int = Field(default=USUAL_RESPONSE_CHARS, ge=1)
    """Limit on the characters of a response that a judge is shown; the number of cut ones is recorded."""
    direction: Direction = "both"
    """`compare`: judge both orders of each pair, or one chosen by the seed."""
    cache: Path | None = None
    """Folder for replies of judge and user; None for `proctor/simulbench` in the user's cache folder."""

    operational: ClassVar[frozenset[str]] = frozenset({"cache"})
    bad_replies: ClassVar[str | None] = BAD_REPLIES
    capacity: ClassVar[int] = 16
    scales: ClassVar[Mapping[str, tuple[float, float]]] = {
        **dict.fromkeys(("strict_mean", "rules_mean"), (1.0, 10.0)),
        "difference": (-100.0, 100.0),
        "distinct": (0.0, 1.0),
    }

    _judges: Judges | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _fields_fit_together(self) -> "SimulBench":
        if self.protocol == "tools":
            raise ValueError("protocol: the agent's reply is what is judged, so there are no functions; set it to text")
        check_judges(self.judge, self.judges, JUDGE_DEFAULTS)
        if self.judges and self.mode == "compare":
            raise ValueError("judges: in the mode 'compare' the agent is the judge; leave it out")
        if self.prompts is not None and self.mode not in ("script", "live"):
            raise ValueError(f"prompts: the mode {self.mode!r} has no judge beside the agent; leave it out")
        if self.task_config is not None and self.mode != "live":
            raise ValueError(f"task_config: the mode {self.mode!r} has no user; leave it out, or set mode to live")
        return self

    @property
    def max_turns(self) -> int:
        orders = 2 if self.direction == "both" else 1
        turns = {"script": 1, "live": TURNS, "compare": orders * self._setting.tries}
        return turns[self.mode]

    def samples(self) -> Sequence[str]:
        return tuple(self._stage.records)

    def digest(self) -> str:
        helpers = [None if helper is None else (helper.model, helper.sampling) for helper in (self.judge, self.user)]
        setting = self._setting.model_dump(exclude={"data", "types", "task_config"})
        shape = [_REVISIONS[self.mode], self.mode, setting, helpers, ALL, self._stage.shape()]
        shape += _STRICT_READING if self.profile == "strict" else []
        shape += [[[each.model, each.sampling] for each in self.judges]] if self.judges else []
        return json_digest([*shape, _RULES_REVISION] if self._rated_by_rules else shape)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        async with open_judges(self._judge_models, self.user, self.cache or default_folder("simulbench")) as judges:
            self._judges = judges
            try:
                yield
            finally:
                self._judges = None

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        if self._judges is None:
            raise RuntimeError("enter the environment's lifespan before playing")
        about = {"simulbench": self.mode, **self._stage.about(sample)}
        try:
            finish = await self._stage.play(sample, agent, seed, self._judges)
        except AgentStopped as stopped:
            finish = Finish(reason=stopped.reason, score=0.0)
        except Unparsed as unparsed:
            finish = Finish(reason=FinishReason.TASK_ERROR, detail=unparsed.detail)
        won = next((name for name in ("win", "tie", "lose") if finish.metrics.get(name)), "")
        answered = f"the candidate: {won}" if won else str(finish.detail.get("response", ""))
        words = asked_and_answered(*self._stage.question(sample), answered)
        return finish.model_copy(update={"detail": words | about | finish.detail})

    def cluster(self, sample: str) -> str:
        """The simulation task, which all scripts, dialogues and pairs from it share."""
        return self._stage.cluster(sample)

    def category(self, sample: str) -> str:
        """Whether the simulation has a state, and which turn of the dialogue it is about."""
        about = self._stage.about(sample)
        return " ".join(str(about[name]) for name in ("type", "place") if name in about)

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return self._stage.policies(sample, seed)[0]

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self._stage.policies(sample, seed)[1]

    def random(self, sample: str, seed: int = 0) -> Policy:
        return self._stage.policies(sample, seed)[2]

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return self._stage.summarize(finishes)

    def caution_for_models(self) -> str | None:
        return RULES_CAUTION if self._rated_by_rules else None

    def not_comparable_because(self) -> str | None:
        if self.mode != "script":
            return f"the mode {self.mode!r} has no published scores"
        if self.data is None:
            return "the samples are Proctor's own, not the published ones"
        if self.judges:
            return "several judges; published ratings are those of one"
        if self.judge is None:
            return "the judge goes by rules; published ratings are a language model's"
        if self.profile != "compat":
            return f"the profile {self.profile!r} reads ratings other than the published code; use compat"
        return self._other_judging(self.judge) or self._other_scripts(self.data)

    def _other_judging(self, judge: HelperConfig) -> str | None:
        if judge.model not in PUBLISHED_JUDGES:
            return f"the judge is {judge.model}; published ratings are those of {PUBLISHED_JUDGES[0]}"
        if any(unlike({**JUDGE_DEFAULTS, **judge.sampling}, JUDGE_DEFAULTS)):
            return "the published judge had temperature 0 and max_tokens 1024; leave `judge.sampling` out"
        if judge.system_role != "system" or judge.reasoning != "auto":
            return "the published judge was told its role as `system`; leave `system_role` and `reasoning` out"
        published = self._setting.published
        other = PROMPT.differs(self.prompts, published and published.texts())
        if other is not None:
            return other
        if published is not None and self._setting.system != published.system:
            return "the published agents had another system line; leave `system` out"
        if not self.ensure_ascii:
            return "the published judge is shown escaped characters; set ensure_ascii: true"
        return lowered(self, "max_response_chars")

    def _other_scripts(self, data: Path) -> str | None:
        scripts = dataset.load(data, Script)
        if self.types is not None and dataset.places(scripts, self.types) != dataset.places(scripts):
            return f"{self.types}: other types than the published ones; leave `types` out"
        return other_records(data, records_of(dataset.read(data)), PUBLISHED)

    def published_sampling(self) -> Mapping[str, JsonValue]:
        return PUBLISHED_SAMPLING if self.mode == "script" else {}

    @property
    def _rated_by_rules(self) -> bool:
        return not self._judge_models and self.mode in ("script", "live")

    @property
    def _judge_models(self) -> tuple[HelperConfig, ...]:
        return self.judges or (() if self.judge is None else (self.judge,))

    @cached_property
    def _setting(self) -> Setting:
        judged_by = RULES if self.judge is None else f"model {self.judge.model}"
        if self.judges:
            judged_by = f"models {', '.join(judge_names(self.judges))}; a rating is the median of theirs"
        published = None if self.prompts is None else read_judge(self.prompts)
        fields = self.model_dump(include=set(Setting.model_fields))
        if published is not None and "system" not in self.model_fields_set:
            fields["system"] = published.system
        return Setting(judged_by=judged_by, published=published, **fields)

    @cached_property
    def _stage(self) -> AnyStage:
        return STAGES[self.mode](self._setting)
