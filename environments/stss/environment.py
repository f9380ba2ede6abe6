"""Social tasks in a simulated town (STSS, Wang et al., arXiv 2404.05337)."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, JsonValue, PrivateAttr, model_validator

from environments.stss import policies, prompt, scoring
from environments.stss.agent.performer import CallForms, Forms, Performer, Silent, toolset
from environments.stss.agent.script import PerformerScript, public_places, script
from environments.stss.characters.driver import Driver
from environments.stss.characters.model import MODEL_DEFAULTS, CharacterModel, ModelDriver, open_models
from environments.stss.characters.rule_driver import RuleDriver
from environments.stss.data.repairs import instantiate, repair
from environments.stss.dataset import SHIPPED, Data, SocialTask, shipped
from environments.stss.days.simulation import DayLimits, Simulation
from environments.stss.days.transcript import DayTranscript, EventLog, pack, picture
from environments.stss.invitation import FORM_RULE
from environments.stss.language.level import FormJudge, ModelJudge, SeveralJudges, language_metrics, play_scenarios
from environments.stss.language.scenarios import Scenario, by_task
from environments.stss.summary import OWN_WORLD, RULES_CAUTION, summarize
from proctor.digest import json_digest
from proctor.environment import Agent, Environment, Policy, TurnAddress, default_folder
from proctor.llm.config import ChatConfig
from proctor.llm.judges import check_judges, judge_names
from proctor.tools import NO_PUBLISHED_FUNCTIONS, Protocol
from proctor.types import JUDGEMENTS, Drawing, Finish, Summary, asked_and_answered

_REVISION = "17"
"""Raise it with every change to what a trial shows or how it is scored."""
MAX_CALLS = 200
_UNSHAPING = {"data", "scenarios", "cache", "driver", "judge", "judges", "protocol"}
"""Fields with paths and endpoints, and how requests are put: the digest's dump of all fields leaves them out."""
Outcome = tuple[float, dict[str, float], dict[str, JsonValue], str]
"""Score, metrics, detail, and what was done, in words."""


class Stss(Environment):
    """The agent lives two days in a small town and brings people together; the score is about what they then do."""

    data: Path | None = None
    """A folder in the published format; None for the town shipped with Proctor."""
    protocol: Protocol = "text"
    """How the agent answers a request: by a JSON object in its text, or by a call of the function that is offered."""
    level: Literal["action", "language"] = "action"
    """`action`: two simulated days. `language`: single conversations in saved meetings."""
    scenarios: Path | None = None
    """File of meetings for the language level, by `proctor export --as stss-scenarios`; None for the shipped ones."""
    driver: ChatConfig | None = None
    """The model that plays the background characters; None for rules, which need no model."""
    judge: ChatConfig | None = None
    """The model that judges the language level; None for the reader of the one form."""
    judges: tuple[ChatConfig, ...] = ()
    """Several models in place of `judge`: a condition is met if most say so, and by one half if they are split."""
    cache: Path | None = None
    """Folder for replies of driver and judge; None for `proctor/stss` in the user's cache folder."""
    planning: Literal["tdp", "ga"] = "tdp"
    """`tdp`: the paper's target-driven planning (two more calls). `ga`: the goal is only a part of the persona."""
    profile: Literal["strict", "compat"] = "strict"
    """`compat` plays the published tasks unchanged and scores as the published code does; `strict` repairs both."""
    sociability: float = Field(default=0.6, ge=0, le=1)
    """Probability of each routine activity of a character; it also scales how often characters begin a talk."""
    pass_on: bool = False
    """Whether characters invited by the performer may invite others."""
    history: bool = False
    """Whether the performer's persona includes facts about its acquaintances."""
    templates: int = Field(default=0, ge=0, le=1000)
    """Number of casts for each template of the data, instead of its tasks; 0 for the tasks."""
    talks_day_1: int = Field(default=14, ge=0, le=50)
    talks_day_2: int = Field(default=10, ge=0, le=50)
    calls: int = Field(default=MAX_CALLS, ge=1, le=MAX_CALLS)
    """Limit of the performer's replies; then it is silent."""
    walk_s: int = Field(default=10, ge=1, le=60)
    """Simulated seconds to walk one tile."""

    operational: ClassVar[frozenset[str]] = frozenset({"cache"})
    bad_replies: ClassVar[str | None] = "format_errors"
    capacity: ClassVar[int] = 16
    max_turns: ClassVar[int | None] = MAX_CALLS

    _mended: dict[str, SocialTask] = PrivateAttr(default_factory=dict)
    """The repaired tasks that `strict` plays, by name; `_tasks` fills it."""
    _meetings: dict[str, list[Scenario]] = PrivateAttr(default_factory=dict)
    """The scenarios of the language level, by task; `_tasks` fills it."""
    _helpers: dict[str, CharacterModel] = PrivateAttr(default_factory=dict)
    _floors: dict[tuple[str, int], float] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _judges_fit(self) -> "Stss":
        check_judges(self.judge, self.judges, MODEL_DEFAULTS)
        return self

    def samples(self) -> Sequence[str]:
        return tuple(self._tasks)

    def digest(self) -> str:
        fields = self.model_dump(mode="json", exclude=_UNSHAPING)
        shape: list[object] = [_REVISION, fields, list(self._tasks.values()), prompt.RULES]
        shape += [FORM_RULE if self.driver is None else None]
        shape += [model and (model.model, model.sampling) for model in (self.driver, self.judge)]
        shape += [[[each.model, each.sampling] for each in self.judges]] if self.judges else []
        if self.level == "language":
            shape.append(list(self._meetings.values()))
        town = self._data.town
        shape += [list(town.personas.values()), town.positions, town.known_places, town.world.walls, town.world.names]
        shape += [town.history if self.history else None]
        if self.protocol == "tools":
            shape += [self.protocol, prompt.CALL_RULE, toolset(*prompt.NAMES).tools()]
        return json_digest(shape)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        several = {f"judge {name}": each for name, each in zip(judge_names(self.judges), self.judges, strict=True)}
        configs = {"driver": self.driver, "judge": self.judge, **several}
        async with open_models(configs, self.cache or default_folder("stss")) as models:
            self._helpers.update(models)
            try:
                yield
            finally:
                self._helpers.clear()

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        task = self.task(sample)
        shown = self._mended[task.env_name] if self.profile == "strict" else task
        performer = self._performer(shown, agent, self.calls)
        if self.planning == "tdp":
            await performer.think()
        play_level = self._talks if self.level == "language" else self._days
        score, metrics, detail, done = await play_level(task, performer, seed)
        sub_goals = [each.in_words for each in shown.task.goal]
        about: dict[str, JsonValue] = {
            **asked_and_answered(shown.FPG, "; ".join(sub_goals), done),
            "level": self.level,
            "planning": self.planning,
            "category": task.category,
            "goal": shown.FPG,
            "performer": task.performer,
            "targets": list(task.task.target),
            "sub_goals": [*sub_goals],
            "driver": self._driver(task, seed).name,
            "note": OWN_WORLD,
        }
        return Finish(reason=performer.reason, score=score, metrics=metrics | performer.counts(), detail=about | detail)

    async def _days(self, task: SocialTask, performer: Performer, seed: int) -> Outcome:
        """Plays the action level: two days, with their scores and the task's floor."""
        log, metrics = await self._live(task, performer, seed)
        metrics["floor"] = await self._floor(task, seed)
        mended, world = self._mended[task.env_name], self._data.town.world
        hits = await asyncio.to_thread(scoring.reached, log, mended)
        days = await asyncio.to_thread(lambda: pack(DayTranscript(log, picture(world), hits)))
        done = dict.fromkeys(f"{name}: {mended.task.goal[goal].in_words}" for name, goal, *_ in hits)
        detail: dict[str, JsonValue] = {"profile": self.profile, "trajectory": log.digest(), "evidence": days}
        return metrics[self.profile], metrics, detail, "; ".join(done)

    async def _talks(self, task: SocialTask, performer: Performer, seed: int) -> Outcome:
        """Plays the language level: the task's scenarios."""
        town = self._data.town
        judge: FormJudge | ModelJudge | SeveralJudges = FormJudge(town.places)
        if self.judge is not None:
            judge = ModelJudge(self._helper("judge"))
        elif self.judges:
            names = judge_names(self.judges)
            judge = SeveralJudges({name: ModelJudge(self._helper(f"judge {name}")) for name in names})
        scenarios, mended = self._meetings[task.env_name], self._mended[task.env_name]
        driver = self._driver(task, seed)
        results = await play_scenarios(mended, scenarios, performer, personas=town.personas, driver=driver, judge=judge)
        metrics = language_metrics(results, judge.advice)
        detail: dict[str, JsonValue] = {
            "judge": judge.name,
            "scenarios": [result.model_dump(mode="json") for result in results],
        }
        if isinstance(judge, SeveralJudges):
            detail[JUDGEMENTS] = judge.judgements().model_dump(mode="json")
        return metrics["sr_conversation"], metrics, detail, "; ".join(result.summary for result in results)

    def _performer(self, shown: SocialTask, agent: Agent, calls: int) -> Performer:
        brief = prompt.brief(
            self._data.town, shown, tdp=self.planning == "tdp", history=self.history, form=self.driver is None
        )
        forms = Forms() if self.protocol == "text" else CallForms(strict=self.profile != "compat")
        return Performer(agent, forms, brief, calls)

    async def _live(self, task: SocialTask, performer: Performer, seed: int) -> tuple[EventLog, dict[str, float]]:
        """What happens on the two days, and its metrics."""
        drivers = self._driver(task, seed), self._rules(task, seed)
        limits = DayLimits(talks=(self.talks_day_1, self.talks_day_2), walk_s=self.walk_s, pass_on=self.pass_on)
        event_log = await Simulation(self._data.town, task, performer, drivers, limits).run()
        mended = self._mended[task.env_name]
        return event_log, await asyncio.to_thread(scoring.day_metrics, event_log, mended, task)

    def _rules(self, task: SocialTask, seed: int) -> RuleDriver:
        return RuleDriver(self._data.town, self.sociability, _seed(task, seed))

    def _driver(self, task: SocialTask, seed: int) -> Driver:
        if self.driver is None:
            return self._rules(task, seed)
        return ModelDriver(self._data.town, self._helper("driver"))

    def _helper(self, role: str) -> CharacterModel:
        if role not in self._helpers:
            raise RuntimeError("enter the environment's lifespan before playing")
        return self._helpers[role]

    async def _floor(self, task: SocialTask, seed: int) -> float:
        """The task's score with a performer that stays at home and says nothing."""
        key = (task.env_name, seed)
        if key not in self._floors:
            _, metrics = await self._live(task, self._performer(task, Silent(), 0), seed)
            self._floors[key] = metrics[self.profile]
        return self._floors[key]

    def cluster(self, sample: str) -> str:
        """The template; a task that was made from none is its own."""
        return self.task(sample).env_name.rpartition("-")[0] if self.templates else sample

    def category(self, sample: str) -> str:
        """The paper's category of the task."""
        return self.task(sample).category

    def reference(self, sample: str, seed: int = 0) -> Policy:
        task = self._mended[self.task(sample).env_name]
        return self._in_protocol(policies.ideal_inviter(task, self.script(sample, seed)))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        task = self._mended[self.task(sample).env_name]
        return self._in_protocol(policies.goal_repeater(task, public_places(self._data.town, task)))

    def random(self, sample: str, seed: int = 0) -> Policy:
        task = self.task(sample)
        return self._in_protocol(policies.random_performer(task, public_places(self._data.town, task), seed))

    def _in_protocol(self, policy: Policy) -> Policy:
        return policy if self.protocol == "text" else policies.called(policy)

    def script(self, sample: str, seed: int = 0) -> PerformerScript:
        """The script for scripted performers."""
        task = self._mended[self.task(sample).env_name]
        return script(self._data.town, task, self.sociability, _seed(task, seed))

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return summarize(finishes)

    @property
    def drawing_title(self) -> str | None:
        return "The two days on the map" if self.level == "action" else None

    def draw(self, finish: Finish, turn_address: TurnAddress | None = None) -> Drawing:
        from environments.stss.drawing.page import drawing  # only viewers need templates

        return drawing(finish, turn_address)

    def caution_for_models(self) -> str | None:
        return RULES_CAUTION if self.driver is None else None

    def not_comparable_because(self) -> str | None:
        if self.protocol == "tools":
            return NO_PUBLISHED_FUNCTIONS
        return OWN_WORLD[:1].lower() + OWN_WORLD[1:].rstrip(".")

    def task(self, sample: str) -> SocialTask:
        """The task of a sample, unrepaired. Raises ValueError if there is none."""
        if sample not in self._tasks:
            raise ValueError(f"no sample {sample!r}; ids look like {next(iter(self._tasks))}")
        return self._tasks[sample]

    @cached_property
    def _data(self) -> Data:
        return Data(self.data) if self.data else shipped()

    @cached_property
    def _tasks(self) -> Mapping[str, SocialTask]:
        data, people = self._data, tuple(self._data.town.personas)
        made = (
            instantiate(template, f"template-{number}", people, seed)
            for number, template in enumerate(data.templates if self.templates else ())
            for seed in range(self.templates)
        )
        tasks = {task.env_name: task for task in (made if self.templates else data.tasks)}
        self._mended.update({name: repair(task, data.town).task for name, task in tasks.items()})
        if self.level == "action":
            return tasks
        self._meetings.update(by_task(self.scenarios or SHIPPED / "scenarios.json", tasks))
        return {name: task for name, task in tasks.items() if name in self._meetings}


def _seed(task: SocialTask, seed: int) -> str:
    return f"{task.env_name}:{seed}"
