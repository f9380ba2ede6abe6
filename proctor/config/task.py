"""Task definitions, as in plans and task files: configured environments with names."""

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from proctor import registry
from proctor.config.yaml import FileError, load, parse_value
from proctor.environment import Environment
from proctor.types import Value

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


class TaskDefinition(Value):
    """A configured environment served under a name."""

    name: str = Field(pattern=NAME)
    environment: str
    """Name of an installed environment, see `proctor envs`."""
    data: Path | None = None
    """The environment's data in its published format; without it the samples shipped with Proctor are used."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """The environment's other fields."""
    capacity: int | None = Field(default=None, ge=1)
    """Sessions a worker holds at once; the environment's own default if absent."""

    def relative_to(self, folder: Path) -> "TaskDefinition":
        """A copy with `data` and all path parameters resolved against a folder, normally that of the file.

        Raises FileError where the environment is unknown.
        """
        paths = self._path_parameters()
        parameters = {
            name: str(folder / value) if name in paths and isinstance(value, str) else value
            for name, value in self.parameters.items()
        }
        data = None if self.data is None else folder / self.data
        return self.model_copy(update={"data": data, "parameters": parameters})

    def shape(self) -> dict[str, JsonValue]:
        """The fields that affect a trial, as plain data: all but paths, capacity and operational fields."""
        environment = self._class()
        fields, left_out = environment.model_fields, self._path_parameters() | environment.operational
        parameters = {
            name: _shape(value, fields[name].annotation if name in fields else None)
            for name, value in self.parameters.items()
            if name not in left_out
        }
        return {"name": self.name, "environment": self.environment, "parameters": parameters}

    def _path_parameters(self) -> set[str]:
        return {name for name, field in self._class().model_fields.items() if _is_path(field.annotation)}

    def with_parameters(self, texts: Sequence[str]) -> "TaskDefinition":
        """A copy with parameters set by `field=value` texts, values in YAML. Raises FileError."""
        parameters: dict[str, object] = dict(self.parameters)
        for text in texts:
            name, equals, value = text.partition("=")
            if not equals:
                raise FileError(f"parameter {text!r}: write it as field=value")
            parameters[name] = parse_value(value, f"parameter {text!r}")
        return self.model_copy(update={"parameters": parameters})

    def sessions(self) -> int:
        """How many sessions of this task a worker holds at once."""
        return self.capacity or registry.load(self.environment).capacity

    def build(self) -> Environment:
        """The environment, ready to play. Raises FileError naming task, field and fix."""
        environment = self._class()
        fields: dict[str, object] = dict(self.parameters)
        if self.data is not None:
            fields["data"] = self.data
        try:
            return environment(**fields)
        except ValidationError as error:
            raise FileError(
                "\n".join(self._explain(problem["loc"], problem["msg"]) for problem in error.errors())
            ) from error

    def opened(self) -> Environment:
        """The environment, after its samples were listed once. Raises FileError where its data are broken."""
        environment = self.build()
        try:
            environment.samples()
            return environment
        except (OSError, ValueError) as error:
            raise FileError(f"task {self.name!r}: {error}") from error

    def _class(self) -> type[Environment]:
        try:
            return registry.load(self.environment)
        except (registry.UnknownEnvironment, ImportError) as error:
            raise FileError(f"task {self.name!r}: environment: {error}") from error

    def _explain(self, location: tuple[int | str, ...], message: str) -> str:
        known = ", ".join(sorted(registry.load(self.environment).model_fields))
        path = ("data",) if location[:1] == ("data",) and self.data is not None else ("parameters", *location)
        field = ".".join(str(part) for part in path)
        return f"task {self.name!r}: {field}: {message}; fields of {self.environment} are: {known or 'none'}"


def _shape(value: JsonValue, annotation: object) -> JsonValue:
    """A parameter; where it configures a `Value`, without the operational fields of that."""
    kinds = [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type) and issubclass(kind, Value)]
    if not kinds or not isinstance(value, dict):
        return value
    return {name: field for name, field in value.items() if name not in kinds[0].operational}


def _is_path(annotation: object) -> bool:
    return annotation is Path or Path in get_args(annotation)


class TaskFile(Value):
    """A YAML file with the tasks of a worker or an agent server; other fields are ignored, so a plan is one too."""

    model_config = ConfigDict(extra="ignore")

    tasks: tuple[TaskDefinition, ...] = Field(min_length=1)


def load_tasks(path: Path) -> tuple[TaskDefinition, ...]:
    """The tasks of a task file, with paths resolved against its folder. Raises FileError."""
    tasks = load(path, TaskFile).tasks
    duplicates = {task.name for task in tasks if sum(other.name == task.name for other in tasks) > 1}
    if duplicates:
        raise FileError(f"{path}: tasks: the name {sorted(duplicates)[0]!r} is used twice; give each task its own name")
    try:
        return tuple(task.relative_to(path.parent) for task in tasks)
    except FileError as error:
        raise FileError(f"{path}: {error}") from error
