"""Task definitions, as in plans and task files: configured environments with names."""

import contextlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Self, get_args

from pydantic import ConfigDict, Field, JsonValue, ValidationInfo, field_validator, model_validator

from proctor import registry
from proctor.config.model_fields import Location
from proctor.config.problems import FieldError, FieldProblem, refuse_duplicates, split_field, validated
from proctor.config.wording import NAME, nearest
from proctor.config.yaml import Document, FieldErrors, FileError, parse_value, read_text
from proctor.environment import Environment, SampleSelection
from proctor.registry import is_own
from proctor.types import Value


class TaskDefinition(Value):
    """A configured environment served under a name."""

    name: str = Field(pattern=NAME)
    environment: str
    """Name of an installed environment, see `proctor envs`; or one of your own: `./trivia.py`, its one class,
    `./trivia.py:Trivia`, or `module:Trivia`. `name` may be left out then: it is the class's in snake case."""
    data: Path | None = None
    """The environment's data in its published format; without it the samples shipped with Proctor are used."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """The environment's other fields."""
    capacity: int | None = Field(default=None, ge=1)
    """Sessions a worker holds at once; the environment's own default if absent."""
    samples: SampleSelection | None = Field(default=None, exclude_if=lambda selection: selection is None)
    """Which of the samples a run plays; servers serve all of them."""
    fallback: bool = Field(default=False, exclude_if=lambda wanted: not wanted)
    """Where this machine lacks the environment's engine: a new run uses another one, else leaves the task out."""

    def relative_to(self, folder: Path) -> "TaskDefinition":
        """A copy with `data` and all path parameters resolved against a folder, normally that of the file.

        Raises FieldErrors where the environment is unknown.
        """
        paths = self._path_parameters()
        parameters = {
            name: str(folder / value) if name in paths and isinstance(value, str) else value
            for name, value in self.parameters.items()
        }

        def keyed(model: dict[str, JsonValue], _: Location) -> JsonValue:
            files = {field: model.get(field) for field in ("api_key_file", "replicas_file")}
            return {**model, **{field: str(folder / file) for field, file in files.items() if isinstance(file, str)}}

        parameters = {name: _each_model(value, keyed) for name, value in parameters.items()}
        data = None if self.data is None else folder / self.data
        return self.model_copy(update={"data": data, "parameters": parameters})

    def without_files(self) -> "TaskDefinition":
        """A copy that names no file: for definitions of others, whose files this user need not have read."""
        paths = self._path_parameters()
        parameters = {name: value for name, value in self.parameters.items() if name not in paths}
        return self.model_copy(update={"data": None, "parameters": parameters})

    def at_endpoints(self, entries: Sequence[Mapping[str, JsonValue]]) -> "TaskDefinition":
        """A copy in which models that name an entry of a file's `endpoints` have that one's fields, beside their own.

        Raises FieldError where an entry is unknown.
        """
        naming = {name: value for name, value in self.parameters.items() if _names_endpoint(value)}
        try:
            fields = registry.load(self.environment).model_fields if naming else {}
        except (registry.UnknownEnvironment, ImportError):
            return self  # it is said where the environment is needed
        known = {str(entry.get("name")): entry for entry in entries}
        named: dict[str, JsonValue] = {}
        for name, value in naming.items():
            kinds = _kinds(fields[name].annotation) if name in fields else []
            given = set[str]().union(*(kind.of_endpoint for kind in kinds))
            if given:
                there = partial(_at_endpoint, known=known, given=given)
                named[name] = _each_model(value, there, (self.name, "parameters", name))
        return self.model_copy(update={"parameters": {**self.parameters, **named}}) if named else self

    def shape(self) -> dict[str, JsonValue]:
        """The fields that affect a trial, as plain data: all but paths, capacity and operational fields."""
        environment = self._class()
        fields, left_out = environment.model_fields, self._path_parameters() | environment.operational
        parameters = {
            name: _shape(value, fields[name].annotation if name in fields else None)
            for name, value in self.parameters.items()
            if name not in left_out
        }
        return {"name": self.name, "environment": self.environment_label, "parameters": parameters}

    @property
    def environment_label(self) -> str:
        """The environment as records name it: a file of the user's without its folder."""
        place, colon, name = self.environment.rpartition(":")
        return f"{Path(place).name}:{name}" if colon else self.environment

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
        """The environment, ready to play. Raises FieldErrors."""
        environment = self._class()
        fields: dict[str, object] = dict(self.parameters)
        if self.data is not None:
            fields["data"] = self.data
        with self._raising():
            built, problems = validated(fields, environment)
        if built is None:
            raise FieldErrors([problem._replace(location=self._path(*problem.location)) for problem in problems])
        return built

    def check_files(self, *names: str) -> None:
        """Raises FieldErrors where a file that is named is not there; with `names`, those of these fields."""
        for name, value in self._files().items():
            if (not names or name in names) and not value.exists():
                raise FieldErrors([FieldProblem(self._path(name), f"there is no file {value}; correct the path")])

    def opened(self) -> Environment:
        """The environment, after its samples were listed once. Raises FieldErrors where its files are broken."""
        environment = self.build()
        self.check_files()
        with self._raising(OSError, ValueError):
            samples = listed_samples(environment)
        if not samples:
            text = f"{self.data or self.environment} holds no samples; name data that hold some"
            raise FieldErrors([FieldProblem(self._blamed(""), text)])
        return environment

    @contextlib.contextmanager
    def _raising(self, *expected: type[Exception]) -> Iterator[None]:
        """Turn what the environment's code raises into FieldErrors: what is expected, and all of a user's file."""
        try:
            yield
        except Exception as error:
            if not (isinstance(error, expected) or is_own(self.environment)):
                raise
            told = str(error)
            if is_own(self.environment) and type(error) is not ValueError:
                from proctor.own_files.loading import raised  # see `registry.load`

                told = raised(error, self.environment)
            field, text = split_field(told, self._class().model_fields)
            raise FieldErrors([FieldProblem(self._path(*field) if field else self._blamed(text), text)]) from error

    def _files(self) -> dict[str, Path]:
        """field -> the file or folder that it names, for those that are read."""
        fields = {**self.parameters, "data": self.data}
        read = self._path_parameters() - self._class().operational
        return {name: Path(str(fields[name])) for name in sorted(read) if fields.get(name) is not None}

    def _blamed(self, message: str) -> Location:
        """The field whose file a message names; else `data`."""
        named = [name for name, file in self._files().items() if str(file) in message]
        return self._path(named[0]) if named else self._path("data") if self.data is not None else ("tasks", self.name)

    def _class(self) -> type[Environment]:
        try:
            return registry.load(self.environment)
        except registry.UnknownEnvironment as error:
            close = nearest(self.environment, registry.names())
            meant = f"; did you mean {close}?" if close else ""
            raise FieldErrors([FieldProblem(("tasks", self.name, "environment"), f"{error}{meant}")]) from error
        except ImportError as error:
            raise FieldErrors([FieldProblem(("tasks", self.name, "environment"), str(error))]) from error

    def _path(self, *field: int | str) -> Location:
        """Where a field of the environment stands in a file."""
        own = field[:1] == ("data",) and "data" not in self.parameters
        return ("tasks", self.name, *(() if own else ("parameters",)), *field)


def listed_samples(environment: Environment) -> tuple[str, ...]:
    """The ids of an environment's samples. Raises ValueError where they are no texts, or one comes twice."""
    samples = tuple(environment.samples())
    for sample, times in Counter(samples).items():
        if not isinstance(sample, str):
            raise ValueError(f"samples: {sample!r} is no text; every id must be a str")
        if times > 1:
            raise ValueError(f"samples: {sample!r} is listed {times} times; every id must be there once")
    return samples


def _shape(value: JsonValue, annotation: object) -> JsonValue:
    """A parameter; where it configures a `Value`, or several, without the operational fields of that."""
    kinds = _kinds(annotation)
    if not kinds:
        return value
    return _each_model(value, lambda own, _: {name: own[name] for name in own if name not in kinds[0].operational})


def _kinds(annotation: object) -> list[type[Value]]:
    """The values that a field may be, or hold."""
    return [kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type) and issubclass(kind, Value)]


def _names_endpoint(value: JsonValue) -> bool:
    if isinstance(value, list):
        return any(map(_names_endpoint, value))
    return isinstance(value, dict) and isinstance(value.get("endpoint"), str)


def _each_model(
    value: JsonValue, change: Callable[[dict[str, JsonValue], Location], JsonValue], place: Location = ()
) -> JsonValue:
    """The value with a change of the model that it configures, or of each in a list of them."""
    if isinstance(value, list):
        return [_each_model(each, change, (*place, number)) for number, each in enumerate(value)]
    return change(value, place) if isinstance(value, dict) else value


def _at_endpoint(
    own: dict[str, JsonValue], place: Location, known: Mapping[str, Mapping[str, JsonValue]], given: Collection[str]
) -> JsonValue:
    """A model's fields with those of the endpoint that it names; its own ones take precedence. Raises FieldError."""
    if not _names_endpoint(own):
        return own
    name, place = str(own["endpoint"]), (*place, "endpoint")
    if name not in known:
        close = nearest(name, known)
        meant = f"; did you mean {close}?" if close else ""
        raise FieldError(place, f"unknown name {name!r}; known are: {', '.join(sorted(known)) or 'none'}{meant}")
    entry = {field: value for field, value in known[name].items() if field in given}
    if "replicas_file" in entry:
        entry["replicas_of"] = name
    return {**entry, **{field: value for field, value in own.items() if field != "endpoint"}}


def _is_path(annotation: object) -> bool:
    return annotation is Path or Path in get_args(annotation)


class TaskFile(Value):
    """A YAML file with the tasks of a worker or an agent server; other fields are ignored, so a plan is one too."""

    model_config = ConfigDict(extra="ignore")

    endpoints: tuple[dict[str, JsonValue], ...] = ()
    """Those that models of tasks name."""
    tasks: tuple[TaskDefinition, ...] = Field(min_length=1)

    @field_validator("tasks")
    @classmethod
    def _name_endpoints(cls, tasks: tuple[TaskDefinition, ...], known: ValidationInfo) -> tuple[TaskDefinition, ...]:
        return tuple(task.at_endpoints(known.data.get("endpoints", ())) for task in tasks)

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        refuse_duplicates("tasks", [task.name for task in self.tasks])
        return self


def task_file_text(tasks: Sequence[TaskDefinition]) -> str:
    """A task file, in ASCII, that `load_tasks` reads as these tasks."""
    return json.dumps({"tasks": [task.model_dump(mode="json") for task in tasks]}, indent=1)


def named_task(environment: str, data: Path | None = None) -> TaskDefinition:
    """The task of an environment that the user names on the command line, by its name or file. Raises FileError."""
    name = environment
    if is_own(environment):
        from proctor.own_files import loading  # see `registry.load`

        try:
            environment = loading.admit_world(environment, Path.cwd())
        except loading.OwnFileError as error:
            raise FileError(str(error)) from error
        name = loading.task_name(environment)
    return TaskDefinition(name=name, environment=environment, data=data)


def load_tasks(path: Path) -> tuple[TaskDefinition, ...]:
    """The tasks of a task file, with paths resolved against its folder. Raises FileError."""
    document = Document(read_text(path), str(path))
    document.admit(path.resolve().parent)
    tasks = document.read(TaskFile).tasks
    with document.located():
        return tuple(task.relative_to(path.parent) for task in tasks)
