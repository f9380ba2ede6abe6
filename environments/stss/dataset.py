"""Characters, tasks and map of a folder in the published format of STSS (arXiv 2404.05337)."""

import csv
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import AfterValidator, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from environments.stss.town import world
from environments.stss.town.files import bad, only, parsed, read_json, read_text
from environments.stss.town.schedule import read_stamp, read_time
from environments.stss.town.world import Places, TownMap
from proctor.config.wording import first_problem
from proctor.types import Value

Category = Literal["public", "appointment", "companions", "online", "help"]
TaskType = Literal[
    "Party", "Public Activity", "Personal appointment", "Find partner", "Online meeting", "Ask for others"
]
CATEGORIES: Mapping[TaskType, Category] = {
    "Party": "public",
    "Public Activity": "public",
    "Personal appointment": "appointment",
    "Find partner": "companions",
    "Online meeting": "online",
    "Ask for others": "help",
}
"""The paper's category by the files' task_type."""
ANY = "N/A"
SHIPPED = Path(__file__).with_name("samples")
"""The folder of our own town, which is used where no other is named."""


def _stamp(text: str) -> str:
    if text != ANY:
        read_stamp(text)
    return text


def _in_order(row: tuple[str, str, str, str]) -> tuple[str, str, str, str]:
    if read_time(row[0]) >= read_time(row[1]):
        raise ValueError(f"{row[0]}-{row[1]}: a row must end after it starts")
    return row


RoutineRow = Annotated[tuple[str, str, str, str], AfterValidator(_in_order)]
Word = Annotated[str, Field(pattern=r"\S")]


class _Published(Value):
    """A record of the published files; fields that we do not use are ignored."""

    model_config = ConfigDict(extra="ignore")


class Persona(_Published):
    """A character of the town."""

    name: str = Field(min_length=1)
    age: int
    innate: str
    learned: str
    currently: str
    lifestyle: str
    daily_plan_req: str = ""
    living_area: str
    routine: tuple[RoutineRow, ...] = ()
    """Usual rows of a day: start, end, activity, address. Proctor's own field, not in the published files."""


class SubGoal(_Published):
    """A sub-goal: who does what, where and when."""

    keyword: Word
    alter_kwd: tuple[Word, ...] = ()
    start_time: Annotated[str, AfterValidator(_stamp)] = ANY
    duration_in_minutes: int = Field(ge=1)
    location: str = ANY
    required_character: tuple[str, ...] = ()

    @property
    def keywords(self) -> tuple[str, ...]:
        """All keywords; any of them names the activity."""
        return (self.keyword, *self.alter_kwd)

    @property
    def in_words(self) -> str:
        """Keyword, location and start time, as far as they are fixed."""
        return ", ".join(part for part in (self.keyword, self.location, self.start_time) if part != ANY)


class Target(_Published):
    """Target characters, number of people needed (including the performer), and sub-goals in order."""

    target: tuple[str, ...] = ()
    target_num: int = Field(ge=1)
    goal: tuple[SubGoal, ...] = Field(min_length=1)


class Template(_Published):
    """A task with placeholders (`#performer`, `#target_0`, `#location_0`, ...) for cast, place and time."""

    goal: str
    FPG: str
    Description: str
    task_type: TaskType
    task: Target
    performer: str
    required_spatial_mem: dict[str, JsonValue] = Field(default_factory=dict)
    shared_spatial_mem: dict[str, JsonValue] = Field(default_factory=dict)

    @property
    def category(self) -> Category:
        """The paper's category."""
        return CATEGORIES[self.task_type]


class SocialTask(Template):
    """A social goal of one character, and the cast of the town."""

    env_name: str = Field(min_length=1)
    all_chars: tuple[str, ...] = Field(min_length=2)

    @property
    def others(self) -> tuple[str, ...]:
        """The cast without the performer, in the file's order."""
        return tuple(name for name in self.all_chars if name != self.performer)


class Town(NamedTuple):
    """A map, its characters and their start positions."""

    world: TownMap
    places: Places
    personas: Mapping[str, Persona]
    """In the order of the file, which is the order for sampling casts."""
    positions: Mapping[str, int]
    """Start tile by name."""
    known_places: Mapping[str, tuple[str, ...]]
    """Sectors that a character knows, by its name."""
    history: Mapping[str, tuple[str, ...]]
    """Facts that a character knows about acquaintances, by its name; empty without the file."""


@cache
def shipped() -> "Data":
    """The data that comes with Proctor, read once in a process."""
    return Data(SHIPPED)


class Data:
    """A folder in the published format; each part is read at its first use and then kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def town(self) -> Town:
        """Map and characters. Raises ValueError with file, field and fix."""
        built = world.load(self.folder / "matrix")
        people = _people(self.folder / "characteristics.json", built)
        positions = _positions(self.folder / "initial_positions.json", people, built)
        known = {name: _known(self.folder / "personas" / name / "spatial_memory.json") for name in people}
        homes = {name: home_of(persona) for name, persona in people.items()}
        return Town(built, Places(built, homes), people, positions, known, _history(self.folder))

    @cached_property
    def tasks(self) -> tuple[SocialTask, ...]:
        """The tasks as in the files. Raises ValueError with file, task, field and fix."""
        path = only(self.folder, "tasks*.json")
        tasks = read_json(path, TypeAdapter(Annotated[tuple[SocialTask, ...], Field(min_length=1)]))
        for task in tasks:
            self._check(path, task)
        if len({task.env_name for task in tasks}) < len(tasks):
            raise ValueError(f"{path}: env_name: one appears twice; give each task its own")
        return tasks

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        """The templates. Raises ValueError with file, template, field and fix."""
        path = only(self.folder, "templates*.json")
        templates = read_json(path, TypeAdapter(Annotated[tuple[Template, ...], Field(min_length=1)]))
        for index, template in enumerate(templates):
            self._check_goal(path, str(index), template)
        return templates

    def _check_goal(self, path: Path, item: str, task: Template) -> None:
        """Raises ValueError if a goal names a character or place that is not in the town."""
        named: dict[str, Sequence[str]] = {"performer": [task.performer], "task.target": task.task.target}
        for index, goal in enumerate(task.task.goal):
            field = f"task.goal.{index}"
            named[f"{field}.required_character"] = goal.required_character
            if goal.location not in (ANY, *self.town.world.sectors) and self.town.places.find(goal.location) is None:
                problem = f"{goal.location!r} is not on the map; name a sector or sector:arena"
                raise bad(path, item, f"{field}.location", problem)
        for field, names in named.items():
            for name in names:
                if name not in self.town.personas:
                    raise bad(path, item, field, f"{name!r} is not in characteristics.json; name somebody who is")

    def _check(self, path: Path, task: SocialTask) -> None:
        self._check_goal(path, task.env_name, task)
        for name in task.all_chars:
            if name not in self.town.personas:
                raise bad(path, task.env_name, "all_chars", f"{name!r} is not in characteristics.json; remove it")
        missing = {task.performer, *task.task.target} - set(task.all_chars)
        if missing:
            raise bad(path, task.env_name, "all_chars", f"lacks {sorted(missing)[0]!r}; add performer and targets")
        if task.category == "appointment" and not task.task.target:
            raise bad(path, task.env_name, "task.target", "is empty; an appointment is with somebody")
        if len(set(task.all_chars)) < len(task.all_chars):
            raise bad(path, task.env_name, "all_chars", "a name appears twice; name each once")


def home_of(persona: Persona) -> str:
    """The address of a character's home, without the world's name."""
    return persona.living_area.partition(":")[2]


def _people(path: Path, built: TownMap) -> dict[str, Persona]:
    people: dict[str, Persona] = {}
    fields = read_json(path, TypeAdapter(dict[str, JsonValue]))
    fields.pop("shared", None)
    for name, record in fields.items():
        try:
            people[name] = persona = Persona.model_validate(record)
        except ValidationError as error:
            raise ValueError(f"{path}: {name}: {first_problem(error)}; correct this field") from error
        if persona.name != name:
            raise bad(path, name, "name", f"is {persona.name!r}; give it the same name as its key")
        if home_of(persona) not in built:
            raise bad(path, name, "living_area", "is not on the map; give sector:arena")
        for index, (_, _, _, place) in enumerate(persona.routine):
            if place not in built:
                problem = f"{place!r} is not on the map; give a sector or sector:arena"
                raise bad(path, name, f"routine.{index}.3", problem)
    return people


def _positions(path: Path, people: Mapping[str, Persona], built: TownMap) -> dict[str, int]:
    class Position(_Published):
        x: int
        y: int

    found = read_json(path, TypeAdapter(dict[str, Position]))
    tiles: dict[str, int] = {}
    for name in people:
        if name not in found:
            raise bad(path, name, "x", "is missing; give the tile of this character at midnight")
        tiles[name] = found[name].y * built.width + found[name].x
        if not 0 <= found[name].x < built.width or tiles[name] not in built.reachable:
            raise bad(path, name, "x, y", "no way leads away from it; give a tile of the home")
    return tiles


def _known(path: Path) -> tuple[str, ...]:
    """The sectors of a spatial memory, which must hold one world."""
    memory = parsed(path)
    sectors = next(iter(memory.values())) if isinstance(memory, dict) and len(memory) == 1 else None
    if not isinstance(sectors, dict):
        raise ValueError(f"{path}: must hold one world with its sectors")
    return tuple(sectors)


def _history(folder: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted(folder.glob("agent_history_init*.csv")):
        rows = csv.DictReader(read_text(path).splitlines())
        if not {"Name", "Whisper"} <= {*(rows.fieldnames or ())}:
            raise ValueError(f"{path}: line 1: must be Name,Whisper")
        for row in rows:
            facts = (row["Whisper"] or "").split(";")
            found[row["Name"].strip()] = tuple(fact.strip() for fact in facts if fact.strip())
    return found
