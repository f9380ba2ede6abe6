"""Task definitions: an environment configured and named, as plans and task files write them."""

from pathlib import Path

from pydantic import Field, JsonValue, ValidationError

from environments import registry
from environments.base import Environment
from environments.types import Value
from environments.yaml_file import FileError, load

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


class TaskDefinition(Value):
    """A configured environment served under a name."""

    name: str = Field(pattern=NAME)
    environment: str
    """Name of an installed environment, see `proctor envs`."""
    data: Path | None = None
    """The environment's data in its published format; without it the samples shipped with Proctor are used."""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """The environment's further fields."""
    capacity: int | None = Field(default=None, ge=1)
    """Sessions a worker holds at once; the environment's own default if absent."""

    def relative_to(self, folder: Path) -> "TaskDefinition":
        """The same definition with `data` taken relative to a folder, normally the file's own."""
        return self if self.data is None else self.model_copy(update={"data": folder / self.data})

    def sessions(self) -> int:
        """How many sessions of this task a worker holds at once."""
        return self.capacity or registry.load(self.environment).capacity

    def build(self) -> Environment:
        """The environment, ready to play. Raises FileError naming task, field and fix."""
        try:
            environment = registry.load(self.environment)
        except (registry.UnknownEnvironment, ImportError) as error:
            raise FileError(f"task {self.name!r}: environment: {error}") from error
        fields: dict[str, object] = dict(self.parameters)
        if self.data is not None:
            fields["data"] = self.data
        try:
            return environment(**fields)
        except ValidationError as error:
            raise FileError(
                "\n".join(self._explain(problem["loc"], problem["msg"]) for problem in error.errors())
            ) from error

    def _explain(self, location: tuple[int | str, ...], message: str) -> str:
        field = ".".join(str(part) for part in location)
        known = ", ".join(sorted(registry.load(self.environment).model_fields))
        return f"task {self.name!r}: parameters.{field}: {message}; fields of {self.environment} are: {known}"


class TaskFile(Value):
    """A YAML file with the tasks that a worker or an agent server holds; a plan is one too."""

    tasks: tuple[TaskDefinition, ...] = Field(min_length=1)


def load_tasks(path: Path) -> tuple[TaskDefinition, ...]:
    """The tasks of a task file, data paths taken relative to it. Raises FileError."""
    tasks = load(path, TaskFile).tasks
    duplicates = {task.name for task in tasks if sum(other.name == task.name for other in tasks) > 1}
    if duplicates:
        raise FileError(f"{path}: tasks: the name {sorted(duplicates)[0]!r} stands twice; give each task its own name")
    return tuple(task.relative_to(path.parent) for task in tasks)
