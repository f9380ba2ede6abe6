"""Social tasks in a simulated town (STSS, Wang et al., arXiv 2404.05337)."""

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal

import pydantic_core
from pydantic import Field, PrivateAttr

from environments.base import Agent, Environment, Policy
from environments.stss import policies, session
from environments.stss.chronicle import Chronicle, pack
from environments.stss.dataset import Data, Task
from environments.stss.performer import Performer
from environments.stss.repairs import repair
from environments.stss.rule_driver import RuleDriver
from environments.stss.script import Script, public_places, script
from environments.stss.session import Silent
from environments.stss.simulation import Drivers, Limits, Simulation
from environments.stss.summary import OWN_WORLD, summarize
from environments.stss.templates import instantiate
from environments.types import Finish, Summary

SHIPPED = Path(__file__).with_name("samples")
_REVISION = "1"
"""To be changed with any change of behaviour that shapes a trial."""
MAX_CALLS = 200


class Stss(Environment):
    """The agent lives two days in a small town and has to bring people together; what they do is scored."""

    data: Path | None = None
    """A folder in the published format; None for the town shipped with Proctor."""
    planning: Literal["tdp", "ga"] = "tdp"
    """With the target-driven planning of the paper (two calls more), or with the goal in the persona alone."""
    profile: Literal["strict", "compat"] = "strict"
    """`compat` shows the published tasks as they are and scores as the published code does."""
    sociability: float = Field(default=0.6, ge=0, le=1)
    """How much of their routines people spend away from home."""
    pass_on: bool = False
    """True: whom the performer has invited may invite others."""
    history: bool = False
    """True: the performer's persona tells what it knows of its acquaintances."""
    templates: int = Field(default=0, ge=0, le=1000)
    """Casts made of each template of the data, instead of its tasks; 0 for the tasks."""
    talks_day_1: int = Field(default=14, ge=0, le=50)
    talks_day_2: int = Field(default=10, ge=0, le=50)
    calls: int = Field(default=MAX_CALLS, ge=1, le=MAX_CALLS)
    """Replies the performer has; then it is silent."""
    walk_s: int = Field(default=10, ge=1, le=60)
    """Seconds that a tile takes."""

    capacity: ClassVar[int] = 16
    max_turns: ClassVar[int | None] = MAX_CALLS

    _scripts: dict[tuple[str, int], Script] = PrivateAttr(default_factory=dict)
    _floors: dict[tuple[str, int], float] = PrivateAttr(default_factory=dict)

    def samples(self) -> Sequence[str]:
        return tuple(self._tasks)

    def digest(self) -> str:
        shape = [_REVISION, self.model_dump(mode="json", exclude={"data"}), list(self._tasks.values())]
        town = self._data.town
        return hashlib.blake2b(
            pydantic_core.to_json([*shape, list(town.personas.values()), town.positions, town.world.objects]),
            digest_size=16,
        ).hexdigest()

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        task = self.task(sample)
        performer, chronicle = await self._live(task, agent, seed, self.calls)
        metrics = session.measures(chronicle, self._mended(task), task, self._data.town.places)
        metrics["floor"] = await self._floor(task, seed)
        metrics["calls"] = float(performer.calls)
        metrics |= {"format_errors": float(performer.format_errors), "action_errors": float(performer.action_errors)}
        return Finish(
            reason=performer.reason,
            score=metrics[self.profile],
            metrics=metrics,
            detail={
                "category": task.category,
                "goal": task.FPG,
                "performer": task.performer,
                "driver": "rules",
                "profile": self.profile,
                "note": OWN_WORLD,
                "trajectory": chronicle.digest(),
                "chronicle": pack(chronicle),
            },
        )

    async def _live(self, task: Task, agent: Agent, seed: int, calls: int) -> tuple[Performer, Chronicle]:
        shown = self._mended(task) if self.profile == "strict" else task
        tdp, town = self.planning == "tdp", self._data.town
        performer = Performer(agent, session.brief(town, shown, tdp=tdp, history=self.history), calls)
        rules = RuleDriver(town, self.sociability, _seed(task, seed))
        simulation = Simulation(town, shown, Drivers(rules, rules), performer, self._limits)
        return performer, await simulation.run(tdp=tdp)

    async def _floor(self, task: Task, seed: int) -> float:
        """What the task scores when the performer stays at home and says nothing."""
        key = (task.env_name, seed)
        if key not in self._floors:
            _, chronicle = await self._live(task, Silent(), seed, 0)
            measured = session.measures(chronicle, self._mended(task), task, self._data.town.places)
            self._floors[key] = measured[self.profile]
        return self._floors[key]

    def reference(self, sample: str, seed: int = 0) -> Policy:
        task = self._mended(self.task(sample))
        return policies.ideal_inviter(task, self.script(sample, seed))

    def naive(self, sample: str, seed: int = 0) -> Policy:
        task = self._mended(self.task(sample))
        return policies.goal_repeater(task, public_places(self._data.town, task))

    def random(self, sample: str, seed: int = 0) -> Policy:
        task = self.task(sample)
        return policies.random_performer(task, public_places(self._data.town, task), seed)

    def script(self, sample: str, seed: int = 0) -> Script:
        """What scripted performers go by."""
        key = (sample, seed)
        if key not in self._scripts:
            task = self._mended(self.task(sample))
            made = script(self._data.town, task, self.sociability, _seed(task, seed))
            self._scripts[key] = made
        return self._scripts[key]

    def summarize(self, finishes: Sequence[Finish]) -> Summary:
        return summarize(finishes)

    def comparable(self) -> str | None:
        return OWN_WORLD[:1].lower() + OWN_WORLD[1:].rstrip(".")

    def task(self, sample: str) -> Task:
        """The task of a sample as its file has it. Raises ValueError where there is none."""
        if sample not in self._tasks:
            raise ValueError(f"no sample {sample!r}; ids look like {next(iter(self._tasks))}")
        return self._tasks[sample]

    @property
    def _limits(self) -> Limits:
        return Limits(talks=(self.talks_day_1, self.talks_day_2), walk_s=self.walk_s, pass_on=self.pass_on)

    @cached_property
    def _data(self) -> Data:
        return Data(self.data or SHIPPED)

    @cached_property
    def _tasks(self) -> Mapping[str, Task]:
        data, people = self._data, tuple(self._data.town.personas)
        made = (
            instantiate(template, f"template-{number}", people, seed)
            for number, template in enumerate(data.templates if self.templates else ())
            for seed in range(self.templates)
        )
        return {task.env_name: task for task in (made if self.templates else data.tasks)}

    def _mended(self, task: Task) -> Task:
        return repair(task, self._data.town).task


def _seed(task: Task, seed: int) -> str:
    return f"{task.env_name}:{seed}"
