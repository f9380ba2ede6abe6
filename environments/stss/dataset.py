"""Characters and tasks in the published format of STSS (arXiv 2404.05337), as `data` holds them."""

import csv
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter, ValidationError

from environments.stss import world
from environments.stss.places import Places
from environments.stss.world import World
from environments.types import Value

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
"""From the files' task_type to the paper's category."""
ANY = "N/A"
Parsed = TypeVar("Parsed")


class Persona(Value):
    """A character of the town."""

    model_config = ConfigDict(extra="ignore")

    name: str = Field(min_length=1)
    age: int
    innate: str
    learned: str
    currently: str
    lifestyle: str
    daily_plan_req: str = ""
    living_area: str
    routine: tuple[tuple[str, str, str, str], ...] = ()
    """Usual rows of a day: from, to, activity, address; ours, the published files have none."""


class Goal(Value):
    """A sub-goal: who does what, where and when."""

    model_config = ConfigDict(extra="ignore")

    keyword: str
    alter_kwd: tuple[str, ...] = ()
    start_time: str = ANY
    duration_in_minutes: int = Field(ge=1)
    location: str = ANY
    required_character: tuple[str, ...] = ()

    @property
    def keywords(self) -> tuple[str, ...]:
        """All words any of which names the activity."""
        return (self.keyword, *self.alter_kwd)

    @property
    def in_words(self) -> str:
        """What, where and when, as far as that is fixed."""
        return ", ".join(part for part in (self.keyword, self.location, self.start_time) if part != ANY)


class Target(Value):
    """Whom the goal is about, how many people it wants (the performer counted), and its sub-goals in order."""

    model_config = ConfigDict(extra="ignore")

    target: tuple[str, ...] = ()
    target_num: int = Field(ge=1)
    goal: tuple[Goal, ...] = Field(min_length=1)


class Template(Value):
    """A task whose cast, place and time are open: `#performer`, `#target_0`, `#location_0`, ... stand for them."""

    model_config = ConfigDict(extra="ignore")

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


class Task(Template):
    """A social goal of one character, and who lives in the town meanwhile."""

    env_name: str = Field(min_length=1)
    all_chars: tuple[str, ...] = Field(min_length=2)

    @property
    def others(self) -> tuple[str, ...]:
        """The cast without the performer, in the file's order."""
        return tuple(name for name in self.all_chars if name != self.performer)


class Town(NamedTuple):
    """A map, its people and where they begin."""

    world: World
    places: Places
    personas: Mapping[str, Persona]
    """In the order of the file, which is the order casts are sampled in."""
    positions: Mapping[str, int]
    """From a name to a tile."""
    known_places: Mapping[str, tuple[str, ...]]
    """From a name to the sectors this character knows."""
    history: Mapping[str, tuple[str, ...]]
    """From a name to what it knows about acquaintances; empty where the file is missing."""


class Data:
    """A folder in the published format; everything is read when it is first asked for, and then kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def town(self) -> Town:
        """Map and people. Raises ValueError naming file, field and fix."""
        built = world.load(self.folder / "matrix")
        people = _people(self.folder / "characteristics.json")
        for name, persona in people.items():
            if home_of(persona) not in built:
                raise _bad(
                    self.folder / "characteristics.json", name, "living_area", "is not on the map; give sector:arena"
                )
        positions = _positions(self.folder / "initial_positions.json", people, built)
        known = {name: _known(self.folder / "personas" / name / "spatial_memory.json") for name in people}
        return Town(built, Places(built), people, positions, known, _history(self.folder))

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks as the files have them. Raises ValueError naming file, task, field and fix."""
        path = _only(self.folder, "tasks*.json")
        tasks = _read(path, TypeAdapter(tuple[Task, ...]))
        for task in tasks:
            self._check(path, task)
        if len({task.env_name for task in tasks}) < len(tasks):
            raise ValueError(f"{path}: env_name: one stands twice; give each task its own")
        return tasks

    @cached_property
    def templates(self) -> tuple[Template, ...]:
        """The templates. Raises ValueError as `tasks` does."""
        return _read(_only(self.folder, "templates*.json"), TypeAdapter(tuple[Template, ...]))

    def _check(self, path: Path, task: Task) -> None:
        people = self.town.personas
        for name in (*task.all_chars, task.performer, *task.task.target):
            if name not in people:
                raise _bad(path, task.env_name, "all_chars", f"{name!r} is not in characteristics.json")
        missing = {task.performer, *task.task.target} - set(task.all_chars)
        if missing:
            raise _bad(path, task.env_name, "all_chars", f"lacks {sorted(missing)[0]!r}; add performer and targets")
        if task.category == "appointment" and not task.task.target:
            raise _bad(path, task.env_name, "task.target", "is empty; an appointment is with somebody")
        if len(set(task.all_chars)) < len(task.all_chars):
            raise _bad(path, task.env_name, "all_chars", "somebody stands twice; name each once")


def home_of(persona: Persona) -> str:
    """The address of a character's home, without the world's name."""
    return persona.living_area.partition(":")[2]


def _bad(path: Path, item: str, field: str, problem: str) -> ValueError:
    return ValueError(f"{path}: {item}: {field}: {problem}")


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise ValueError(f"{folder}: {len(found)} files {pattern}; there must be one")
    return found[0]


def _json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: can't be read: {error}; `data` must be a folder in the published format") from error
    except ValueError as error:
        raise ValueError(f"{path}: is not JSON: {error}; correct it") from error


def _read(path: Path, adapter: TypeAdapter[Parsed]) -> Parsed:
    try:
        return adapter.validate_python(_json(path))
    except ValidationError as error:
        problem = error.errors(include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise ValueError(f"{path}: {where}: {problem['msg']}; correct this field") from error


def _people(path: Path) -> dict[str, Persona]:
    fields = TypeAdapter(dict[str, dict[str, JsonValue]]).validate_python(_json(path))
    fields.pop("shared", None)
    return dict(_read_value(path, fields))


def _read_value(path: Path, fields: Mapping[str, Mapping[str, JsonValue]]) -> list[tuple[str, Persona]]:
    try:
        return [(name, Persona.model_validate(persona)) for name, persona in fields.items()]
    except ValidationError as error:
        problem = error.errors(include_input=False)[0]
        raise ValueError(
            f"{path}: {problem['loc'][0]}: {problem['msg']}; correct this field of each character"
        ) from error


def _positions(path: Path, people: Mapping[str, Persona], built: World) -> dict[str, int]:
    class Position(Value):
        model_config = ConfigDict(extra="ignore")
        x: int
        y: int

    found = _read(path, TypeAdapter(dict[str, Position]))
    tiles: dict[str, int] = {}
    for name in people:
        if name not in found:
            raise _bad(path, name, "x", "is missing; say where this character is at midnight")
        tiles[name] = found[name].y * built.width + found[name].x
        if tiles[name] not in built.reachable:
            raise _bad(path, name, "x, y", "nobody can get away from there; give a tile of the home")
    return tiles


def _known(path: Path) -> tuple[str, ...]:
    """Sectors of a spatial memory; all are in its one world."""
    memory = _json(path)
    if not isinstance(memory, dict) or len(memory) != 1:
        raise ValueError(f"{path}: must hold one world with its sectors")
    sectors = next(iter(memory.values()))
    if not isinstance(sectors, dict):
        raise ValueError(f"{path}: must hold one world with its sectors")
    return tuple(sectors)


def _history(folder: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for path in sorted(folder.glob("agent_history_init*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                facts: Sequence[str] = (row.get("Whisper") or "").split(";")
                found[(row.get("Name") or "").strip()] = tuple(fact.strip() for fact in facts if fact.strip())
    return found
