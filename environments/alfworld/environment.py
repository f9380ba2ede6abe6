"""ALFWorld (Shridhar et al., arXiv 2010.03768) as AgentBench plays it (arXiv 2308.03688, Appendix G)."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

from pydantic import Field, JsonValue, model_validator

from environments.alfworld import dataset, policies, prompt
from environments.alfworld.dataset import GameEntry, Split
from environments.alfworld.engine.game import ReadyGame
from environments.alfworld.engine.grammar import FORMATS, Format
from environments.alfworld.engine.s_expressions import GameError
from environments.alfworld.examples import before, example
from environments.alfworld.functions import spelled, toolset
from environments.alfworld.prompt import ROUNDS, HouseholdDialogue, appended, retold
from environments.alfworld.published_prompt import PROMPT, Published, read_prompts
from environments.alfworld.reply import Move, NoMove, Profile, read, shown
from environments.alfworld.scoring import WORDING, summarize
from environments.alfworld.session import HouseholdSession
from environments.alfworld.texts import TASK_TYPES, TaskType, task_type
from proctor.digest import json_digest
from proctor.environment import Agent, Environment, Policy
from proctor.published import AGENTBENCH_SAMPLING
from proctor.tools import OWN_FUNCTIONS, CallReader, Protocol, ReplyReader, TextReader, in_tools, parsed_action
from proctor.types import Action, Finish, Message, ParsedAction, Summary

_REVISION = "3"
"""To be changed with any change of behaviour that shapes a trial."""
_READINGS: Mapping[Profile, str] = {"compat": "2", "strict": "3"}
"""Those of how replies are read in profile `strict` and in protocol `tools`."""


class ALFWorld(Environment):
    """The agent finds, treats and places objects in a house that is described by text."""

    data: Path | None = None
    """The folder that game paths are relative to, or any folder of games; None for the games shipped with Proctor."""
    split: Path | None = None
    """A split file of AgentBench: which games of `data`, in which order; None for all of them, by their paths."""
    plans: Path | None = None
    """A JSON file of plans by game path, for the reference; games of ALFWorld since 0.4, and our own, hold theirs."""
    profile: Profile = "compat"
    """`compat` plays as published, `strict` carries out only commands that are on the list."""
    per_type: int | None = Field(default=None, ge=1)
    """How many games of each task type are played, from the first; None for all."""

    prompts: Path | None = None
    """A folder with another instruction and other examples, such as AgentBench's; None for our own. Python in it is
    read, not run."""
    protocol: Protocol = "text"
    """How the agent acts: by what it writes (`text`), or by function calls (`tools`)."""

    capacity: ClassVar[int] = 32

    @model_validator(mode="after")
    def _split_needs_data(self) -> "ALFWorld":
        if self.data is None and (self.split or self.plans):
            raise ValueError("split, plans: both need the folder of the games they list; set `data` as well")
        if self.prompts and self.protocol == "tools":
            raise ValueError("prompts: it is the published prompt of protocol text; remove it, or set protocol: text")
        return self

    @property
    def max_turns(self) -> int | None:
        return ROUNDS[self.protocol]

    def samples(self) -> Sequence[str]:
        _ = self._published  # a broken folder is refused now, before anything is played
        return tuple(self._entries)

    def digest(self) -> str:
        prompts: list[object] = [prompt.INSTRUCTION, prompt.CONSENT]
        examples: list[object] = [example(type_, format) for type_ in TASK_TYPES for format in FORMATS]
        if self._published is not None:
            prompts, examples = self._published.texts(), []
        if self.protocol == "tools":
            prompts, examples = [prompt.CALLS_INSTRUCTION, *toolset(self.profile).tools()], []
        prompts += [prompt.TASK, prompt.with_list("", ("look", "inventory"))]
        games = [(entry.sample, entry.path, entry.digest) for entry in self._entries.values()]
        reading = [] if (self.profile, self.protocol) == ("compat", "text") else [_READINGS[self.profile]]
        return json_digest([_REVISION, self.profile, prompts, examples, games, *reading])

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        entry = self._entry(sample)
        session = await asyncio.to_thread(self._session, entry, agent)
        with _naming(entry):
            finish = await session.play()
        return finish.model_copy(update={"detail": {"game": entry.path, **finish.detail}})

    def parse_action(self, action: Action) -> ParsedAction | None:
        return parsed_action(self._reader(), action, shown)

    def cluster(self, sample: str) -> str:
        """The task in its room: type, objects and room, which games that differ in the trial alone share."""
        return self._entry(sample).folder

    def category(self, sample: str) -> str:
        """The type of the task."""
        return task_type(self._entry(sample).folder) or ""

    def reference(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(policies.reference(self.plan(sample)))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(policies.fetch)

    def random(self, sample: str, seed: int = 0) -> Policy:
        return self._in_protocol(policies.chance(sample, seed))

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return summarize(finishes, self._split.skipped, WORDING[self.protocol] if self.prompts is None else None)

    @classmethod
    def detect_parameters(cls) -> dict[str, JsonValue]:
        return {"per_type": 1}

    def not_comparable_because(self) -> str | None:
        if self.protocol == "tools":
            return OWN_FUNCTIONS
        if self.data is None:
            return "the games are Proctor's own, not the published ones"
        if self.split is None:
            return "all games of a folder are played; give AgentBench v0.2's data/alfworld/standard.json as `split`"
        if self.profile != "compat":
            return f"the profile {self.profile!r} plays differently from the published code; use compat"
        if self.per_type is not None:
            return f"only the first {self.per_type} games of each task type are played; leave `per_type` out"
        other = PROMPT.differs(self.prompts, self._published and self._published.texts())
        return other or dataset.other_games(self.split, self._split.entries)

    def published_sampling(self) -> Mapping[str, JsonValue]:
        return AGENTBENCH_SAMPLING

    def _session(self, entry: GameEntry, agent: Agent) -> HouseholdSession:
        texts = dataset.texts(entry)
        with _naming(entry):
            game = ReadyGame(texts.pddl_domain, texts.grammar, texts.pddl_problem)
            type_ = task_type(entry.folder)
            return HouseholdSession(game, type_, agent, self.profile, self._dialogue(type_, game.grammar.format))

    def _dialogue(self, type_: TaskType, format: Format) -> HouseholdDialogue:
        reader = self._reader()
        if self.protocol == "tools":
            instruction = Message(role="system", content=prompt.CALLS_INSTRUCTION)
            return HouseholdDialogue(ROUNDS["tools"], reader, appended((instruction,), reader.tools))
        opening = before(type_, format) if self._published is None else self._published.before(type_)
        return HouseholdDialogue(ROUNDS["text"], reader, retold(opening))

    def _reader(self) -> ReplyReader[Move | NoMove]:
        """How the replies of one session are read."""
        if self.protocol == "tools":
            return CallReader(toolset(self.profile), strict=self.profile == "strict")
        return TextReader(partial(read, profile=self.profile))

    def _in_protocol(self, policy: Policy) -> Policy:
        if self.protocol == "text":
            return policy
        return in_tools(policy, partial(read, profile=self.profile), spelled, toolset(self.profile))

    def plan(self, sample: str) -> Sequence[str]:
        """Commands that win a sample. Raises ValueError where neither its game nor the field `plans` has them."""
        entry = self._entry(sample)
        plan = dataset.texts(entry).walkthrough or self._plans.get(entry.path)
        if not plan:
            raise ValueError(f"{entry.path}: no plan is known; give `plans`, a JSON file from game paths to plans")
        return plan

    @cached_property
    def _published(self) -> Published | None:
        return None if self.prompts is None else read_prompts(self.prompts)

    @cached_property
    def _split(self) -> Split:
        return dataset.load(self.data, self.split, self.per_type)

    @cached_property
    def _entries(self) -> Mapping[str, GameEntry]:
        return {entry.sample: entry for entry in self._split.entries}

    @cached_property
    def _plans(self) -> Mapping[str, Sequence[str]]:
        return {} if self.plans is None else dataset.plans(self.plans)

    def _entry(self, sample: str) -> GameEntry:
        if sample not in self._entries:
            raise ValueError(f"no sample {sample!r}; ids look like {next(iter(self._entries))}")
        return self._entries[sample]


@contextmanager
def _naming(entry: GameEntry) -> Iterator[None]:
    """Adds the game's path to a GameError."""
    try:
        yield
    except GameError as error:
        raise GameError(f"{entry.file or entry.path}: {error}") from error
