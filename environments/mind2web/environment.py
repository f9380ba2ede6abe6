"""Web browsing on recorded pages: Mind2Web (arXiv 2306.06070) as AgentBench plays it (arXiv 2308.03688, Appendix I)."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar
from weakref import WeakValueDictionary

from pydantic import Field, JsonValue, model_validator

from environments.mind2web import dataset, policies, prompt, session
from environments.mind2web.contest import Contest, Ranker
from environments.mind2web.data import files
from environments.mind2web.dataset import StepDataset
from environments.mind2web.examples import PUBLISHED, Prompt, own_examples
from environments.mind2web.functions import TOOLSET
from environments.mind2web.pages.markup import Rendered
from environments.mind2web.policies import Chooser
from environments.mind2web.reply import StepReply, read, read_kindly, shown, written
from environments.mind2web.summary import summarize
from environments.mind2web.tournament import Profile
from proctor.digest import json_digest
from proctor.environment import Agent, Environment, EnvironmentFault, Policy, default_folder
from proctor.published import AGENTBENCH_SAMPLING, Opening
from proctor.tools import (
    NO_PUBLISHED_FUNCTIONS,
    CallReader,
    Protocol,
    ReplyReader,
    TextReader,
    in_tools,
    parsed_action,
)
from proctor.types import Action, Finish, Message, ParsedAction, Summary

SAMPLES = Path(__file__).with_name("samples")
OWN_SPLIT = "own"
OWN_SCORES = SAMPLES / "own_scores.jsonl.xz"
DEMO_STEPS = 40
PUBLISHED_STEPS = 100
NO_PUBLISHED_STEPS = (
    f"whether these are the published {PUBLISHED_STEPS} steps can't be verified: those exist only in AgentBench's "
    "container image"
)
OWN_NOTE = "Pages and scores are Proctor's own: they compare with no Mind2Web score."
_REVISION = "2"
"""Raise it with every change to what a trial shows or how it is scored."""
_READINGS: Mapping[Profile, str] = {"compat": "2", "strict": "3"}
"""Those of how replies are read in profile `strict` and in protocol `tools`."""


class Mind2Web(Environment):
    """Choose the next element of a recorded page and the action on it; earlier steps are the recorded ones."""

    data: Path | None = None
    """A folder of official task files, or one file; None for the tasks shipped with Proctor."""
    split: str | None = Field(default=None, pattern=files.SPLIT)
    """Play the files `<split>_*.json` of the folder (train, test_task, test_website, test_domain)."""
    scores: Path | None = None
    """A file of ranks in JSON lines; see `proctor mind2web scores`."""
    ranker: Ranker | None = None
    """Ranker of the candidates, ten of which are played: `scores` (the score file) or `bm25`. None for the score file
    if there is one."""
    allow_unranked: bool = False
    """Accept a score file that lacks more than half of the steps; BM25 ranks those steps."""
    profile: Profile = "compat"
    """`compat` plays as the published code does; `strict` also asks about a single last candidate."""
    protocol: Protocol = Field(default="text", exclude_if=lambda protocol: protocol == "text")
    """`text`: a reply's text holds the answer; `tools`: the agent calls a function, and sees no solved examples."""
    prompt: Prompt = "cot"
    """Our own solved examples with thoughts (`cot`) or without (`plain`); has no effect on the examples of a file."""
    examples: Path | None = None
    """AgentBench's llm_prompt_cot.json or llm_prompt.json, or a file like them; None for our own solved examples."""
    shuffle_seed: int = 123
    """Seed of the order in which a step's candidates are played."""
    steps: int | None = Field(default=None, ge=1)
    """Play only the first `steps` steps; the published benchmark plays 100."""
    cache: Path | None = None
    """Folder for indexes of the data; None for `proctor/mind2web` in the user's cache folder."""

    operational: ClassVar[frozenset[str]] = frozenset({"cache"})
    max_turns: ClassVar[int | None] = 3
    bad_replies: ClassVar[str | None] = "unparsed"
    capacity: ClassVar[int] = 16
    scales: ClassVar[Mapping[str, tuple[float, float]]] = {"step_sr": (0.0, 100.0)}

    @model_validator(mode="after")
    def _fields_fit_together(self) -> "Mind2Web":
        if self.data is None and (self.scores or self.split):
            raise ValueError("data: the shipped tasks have one split, with scores of their own; give `data` as well")
        if self.ranker == "scores" and self.data is not None and self.scores is None:
            raise ValueError("scores: the ranker `scores` needs a score file; give one, or set ranker: bm25")
        if self.protocol == "tools" and self.examples is not None:
            raise ValueError("examples: the file's prompt is for protocol: text; leave one of the two out")
        if self.protocol == "tools" and self.prompt != "cot":
            raise ValueError("prompt: protocol: tools shows no solved examples; leave `prompt` out")
        if self.examples is not None and self.prompt != "cot":
            raise ValueError("prompt: chooses among our own examples; for a file without thoughts, leave it out")
        return self

    def samples(self) -> Sequence[str]:
        _ = self._opening  # refuses a broken file before the first trial
        number = self._dataset.head.steps
        return tuple(map(self._dataset.sample, range(min(number, self.steps or number))))

    def digest(self) -> str:
        shape = self.model_dump(mode="json", exclude={"data", "scores", "examples", "cache"})
        messages = [*self._opening, prompt.asked(Rendered("", ()), "", ())]
        reading = [] if (self.profile, self.protocol) == ("compat", "text") else [_READINGS[self.profile]]
        return json_digest([_REVISION, shape, self._ranker, self._dataset.head.digest, messages, *reading])

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        try:
            contest, opening = await asyncio.to_thread(lambda: (self.contest(sample), self._opening))
        except (OSError, ValueError) as error:
            raise EnvironmentFault(str(error)) from error
        reader = self._reader()
        finish = await session.play(contest, agent, self.profile, opening, reader)
        own = self._dataset.head.own_tasks == self._dataset.head.tasks
        words = session.words_of(contest, finish, redistributable=own)
        updated = {"metrics": reader.metrics() | finish.metrics, "detail": words | finish.detail}
        return finish.model_copy(update=updated)

    def parse_action(self, action: Action) -> ParsedAction | None:
        return parsed_action(self._reader(), action, shown)

    def cluster(self, sample: str) -> str:
        """The recorded task, named by its first step."""
        return self._dataset.first_step(sample)

    def contest(self, sample: str) -> Contest:
        """The step, prepared for play. Raises ValueError if its record is broken, OSError if it can't be read.

        As long as anybody plays it, all get the same one.
        """
        key = sample, self._ranker, self.shuffle_seed
        contest = self._contests.get(key)
        if contest is None:
            contest = self._contests[key] = Contest(self._dataset.step(sample), self._ranker, self.shuffle_seed)
        return contest

    def rehearsed(self, sample: str, chooser: Chooser) -> Policy:
        """A policy whose replies are chosen from the step's data."""
        return policies.rehearsed(lambda: self.contest(sample), chooser, self.profile)

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(self.rehearsed(sample, policies.gold))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(policies.naive)

    def random(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(policies.chance(sample, seed))

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return summarize(finishes, self._notes())

    @classmethod
    def detect_parameters(cls) -> dict[str, JsonValue]:
        return {"steps": DEMO_STEPS}

    def not_comparable_because(self) -> str:
        if self.protocol == "tools":
            return NO_PUBLISHED_FUNCTIONS
        if self._dataset.head.own_tasks:
            return "the tasks, pages and scores are Proctor's own, not Mind2Web's"
        if self._ranker == "bm25":
            return "the candidates are ranked by words; published scores rest on those of a trained ranker"
        if unranked := self._dataset.head.unranked:
            return (
                f"{unranked} of {self._dataset.head.steps} steps lack scores, so their candidates are ranked by words"
            )
        if self.profile != "compat":
            return f"the profile {self.profile!r} asks more than the published code; use compat"
        if self.steps not in (None, PUBLISHED_STEPS):
            return f"only the first {self.steps} steps are played; leave `steps` out, or set {PUBLISHED_STEPS}"
        return PUBLISHED.differs(self.examples, Opening(self._opening)) or NO_PUBLISHED_STEPS

    def published_sampling(self) -> Mapping[str, JsonValue]:
        return AGENTBENCH_SAMPLING

    def _reader(self) -> ReplyReader[StepReply]:
        """How the replies of one session are read."""
        strict = self.profile != "compat"
        return (
            CallReader(TOOLSET, strict=strict)
            if self.protocol == "tools"
            else TextReader(read_kindly if strict else read)
        )

    def _in_protocol(self, policy: Policy) -> Policy:
        """A policy written for `text`, in the protocol of this environment."""
        return in_tools(policy, read, written, TOOLSET) if self.protocol == "tools" else policy

    @property
    def _ranker(self) -> Ranker:
        return self.ranker or ("scores" if self._scores else "bm25")

    @property
    def _scores(self) -> Path | None:
        return OWN_SCORES if self.data is None else self.scores

    @cached_property
    def _contests(self) -> "WeakValueDictionary[tuple[str, Ranker, int], Contest]":
        return WeakValueDictionary()

    @cached_property
    def _opening(self) -> tuple[Message, ...]:
        """The messages before each question."""
        if self.protocol == "tools":
            return (Message(role="system", content=prompt.CALLS_INSTRUCTION),)
        return own_examples(self.prompt) if self.examples is None else PUBLISHED.read(self.examples).messages

    @cached_property
    def _dataset(self) -> StepDataset:
        data, split = (SAMPLES, OWN_SPLIT) if self.data is None else (self.data, self.split)
        found = files.task_files(data, split)
        scores = self._scores if self._ranker == "scores" else None
        name = split or files.split_of(found[0])
        return dataset.load(name, found, scores, self.cache or default_folder("mind2web"), self.allow_unranked)

    def _notes(self) -> tuple[str, ...]:
        ranker = f"Ranker: {self._ranker}."
        if self._ranker == "scores" and (unranked := self._dataset.head.unranked):
            ranker = f"Ranker: scores; {unranked} of {self._dataset.head.steps} steps have none and fall to bm25."
        return (ranker, OWN_NOTE) if self._dataset.head.own_tasks else (ranker,)
