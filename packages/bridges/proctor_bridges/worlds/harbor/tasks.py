"""Folders of tasks: their ids, their task.toml by its documented meaning, and why some can't be played."""

import hashlib
import io
import os
import re
import tarfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from proctor.sandbox.base import SandboxLimits

_UNITS = {"G": 1024.0, "M": 1.0, "K": 1 / 1024}
_TEMPLATE = re.compile(r"\$\{([^}:]+)(?::-(.*))?\}", re.DOTALL)
_CANARY = re.compile(r"(?:(?:<!--.*canary.*-->|#.*canary.*)?\s*\n)*", re.IGNORECASE)
_SHOWN = 5


def _megabytes(size: object) -> object:
    """`2G`, `512M` or `1024K`, as files before schema 1.1 have it, as megabytes."""
    found = re.fullmatch(r"\s*([0-9.]+)\s*([GMK])\s*", size, re.IGNORECASE) if isinstance(size, str) else None
    return size if found is None else int(float(found[1]) * _UNITS[found[2].upper()])


Seconds = Annotated[float, Field(gt=0, le=7 * 86_400)]
Megabytes = Annotated[int | None, BeforeValidator(_megabytes)]
NetworkMode = Literal["no-network", "public", "allowlist"]
Granted = Literal["none", "bridge", "relay"]


class TomlTable(BaseModel):
    """A table of a task.toml. Fields that it does not declare are kept, to be listed."""

    model_config = ConfigDict(frozen=True, extra="allow")

    unused: ClassVar[frozenset[str]] = frozenset()
    """Fields that the format has and this world has no use for."""

    def unknown(self, prefix: str = "") -> Iterator[str]:
        """The fields that the format does not have."""
        yield from (f"{prefix}{name}" for name in self.model_extra or () if name not in self.unused)
        for name in type(self).model_fields:
            if isinstance(table := getattr(self, name), TomlTable):
                yield from table.unknown(f"{prefix}{name}.")


class PhaseTable(TomlTable):
    """`[agent]`, `[verifier]` or `[solution]`."""

    unused = frozenset({"allowed_hosts"})
    timeout_sec: Seconds | None = None
    user: str | int | None = None
    env: dict[str, str] = Field(default_factory=dict)
    network_mode: NetworkMode | None = None
    environment_mode: str | None = None
    environment: Any = None
    collect: Any = None


class EnvironmentTable(TomlTable):
    """`[environment]`. Resources that are None are the world's defaults."""

    unused = frozenset({"allowed_hosts", "gpu_types", "skills_dir"})
    build_timeout_sec: Seconds = 600.0
    docker_image: str | None = None
    os: str = "linux"
    cpus: float | None = None
    memory_mb: Megabytes = Field(default=None, validation_alias=AliasChoices("memory_mb", "memory"))
    storage_mb: Megabytes = Field(default=None, validation_alias=AliasChoices("storage_mb", "storage"))
    gpus: int | None = None
    tpu: Any = None
    mcp_servers: Any = None
    env: dict[str, str] = Field(default_factory=dict)
    healthcheck: Any = None
    workdir: str | None = None
    network_mode: NetworkMode | None = None
    allow_internet: bool | None = None


class TaskToml(TomlTable):
    """A task.toml of schema 1.0 to 1.4."""

    unused = frozenset(
        {"schema_version", "version", "task", "source", "artifacts"}
        | {"multi_step_reward_mode", "multi_step_reward_strategy"}
    )
    metadata: dict[str, Any] = Field(default_factory=dict)
    agent: PhaseTable = PhaseTable()
    verifier: PhaseTable = PhaseTable()
    solution: PhaseTable = PhaseTable()
    environment: EnvironmentTable = EnvironmentTable()
    steps: Any = None

    @property
    def network(self) -> NetworkMode:
        """The network of the container: public where the file says nothing."""
        asked = self.environment
        return asked.network_mode or ("no-network" if asked.allow_internet is False else "public")

    @property
    def verifier_s(self) -> float:
        """The verifier's time limit."""
        return self.verifier.timeout_sec or 600.0


@dataclass(frozen=True)
class HarborTask:
    """A task that can be played."""

    folder: Path
    file: TaskToml
    limits: SandboxLimits
    """Of its container, whose `max_age_s` leaves time for agent and verifier."""
    network: Literal["none", "bridge"]
    variables: Mapping[str, str]
    """Environment variables of its container; `judging` and `solving` are for verifier and solution alone."""
    judging: Mapping[str, str]
    solving: Mapping[str, str]

    @property
    def instruction(self) -> str:
        """What the agent is asked for, without the lines at its beginning that mark benchmark data."""
        return _CANARY.sub("", (self.folder / "instruction.md").read_text(encoding="utf-8"), count=1).strip()

    @cached_property
    def image(self) -> str:
        """The image that it names, or one named by the digest of what it is built from."""
        return self.file.environment.docker_image or f"proctor-harbor:{files_digest(self.folder / 'environment')}"


@dataclass(frozen=True)
class TaskSet:
    """The tasks of a folder."""

    tasks: Mapping[str, HarborTask]
    """By the names of their folders."""
    left_out: Mapping[str, str]
    """Task -> why it can't be played."""
    unknown: Sequence[str]
    """The fields of their files that the format does not have."""


def load(data: Path, limits: SandboxLimits, granted: Granted, given: Mapping[str, str]) -> TaskSet:
    """The tasks of a folder with one for each, or of one task's own. Raises ValueError where none can be played."""
    files = [data.resolve() / "task.toml"] if (data / "task.toml").is_file() else sorted(data.glob("*/task.toml"))
    if not files:
        raise ValueError(f"data: no task.toml is in {data} or in a folder of it; name a folder of Harbor's tasks")
    tasks, left_out, unknown = dict[str, HarborTask](), dict[str, str](), dict[str, None]()
    for file in files:
        try:
            tasks[file.parent.name] = task = _load(file, limits, granted, given)
            unknown |= dict.fromkeys(task.file.unknown())
        except ValidationError as error:
            left_out[file.parent.name] = (
                f"task.toml: {'.'.join(map(str, error.errors()[0]['loc']))}: {error.errors()[0]['msg']}"
            )
        except (OSError, ValueError) as error:
            left_out[file.parent.name] = str(error)
    if not tasks:
        raise ValueError(f"data: no task of {data} can be played: {listed(left_out)}")
    return TaskSet(tasks, left_out, list(unknown))


def listed(left_out: Mapping[str, str]) -> str:
    """Tasks that are left out, those with the same reason together."""
    found = dict[str, list[str]]()
    for task, why in left_out.items():
        found.setdefault(why, []).append(task)
    more = {why: f" and {len(tasks) - _SHOWN} more" if len(tasks) > _SHOWN else "" for why, tasks in found.items()}
    return "; ".join(f"{', '.join(tasks[:_SHOWN])}{more[why]}: {why}" for why, tasks in found.items())


def _load(path: Path, limits: SandboxLimits, granted: Granted, given: Mapping[str, str]) -> HarborTask:
    """A task. Raises ValueError with the reason where it can't be played."""
    file = TaskToml.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    for why in _obstacles(path.parent, file, granted):
        raise ValueError(why)
    network: Literal["none", "bridge"] = "none" if file.network == "no-network" else "bridge"
    tables = (file.environment.env, file.verifier.env, file.solution.env)
    return HarborTask(path.parent, file, _limits(file, limits), network, *(_resolved(each, given) for each in tables))


def _resolved(variables: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """Variables of a task: `${NAME}` is the plan's value of that name, or the default of `${NAME:-default}`.

    Never one of this machine's own variables, which may hold keys. Raises ValueError where the plan has to give one.
    """
    found = dict[str, str]()
    for name, value in variables.items():
        template = _TEMPLATE.fullmatch(value)
        if template is not None and template[1] not in given and template[2] is None:
            raise ValueError(f"its variable {name} has no value: give {template[1]} in the parameter `variables`")
        found[name] = value if template is None else given.get(template[1], template[2])
    return found


def _limits(file: TaskToml, default: SandboxLimits) -> SandboxLimits:
    asked, hours = file.environment, int((file.agent.timeout_sec or 0) + 3 * file.verifier_s) // 3600
    own = {"memory_mb": asked.memory_mb, "cpus": asked.cpus, "disk_mb": asked.storage_mb, "file_mb": asked.storage_mb}
    found = {name: value for name, value in own.items() if value is not None}
    age_s = max(default.max_age_s, 3600 * (2 + hours))
    return SandboxLimits.model_validate({**default.model_dump(), **found, "max_age_s": age_s})


def _obstacles(folder: Path, file: TaskToml, granted: Granted) -> Iterator[str]:
    """Why a task can't be played, as far as its files tell."""
    asked, judge = file.environment, file.verifier
    build = (folder / "environment" / "Dockerfile").is_file()
    needed = [*("instruction.md", "tests/test.sh"), *([] if asked.docker_image else ["environment/Dockerfile"])]
    public = "its network is public, as where task.toml says nothing; to grant that, set network: bridge"
    phases = {file.agent.network_mode, judge.network_mode} - {None, file.network}
    found: Mapping[str, object] = {
        public: file.network == "public" and granted != "bridge",
        "it needs a network to some hosts only, or in one phase only": file.network == "allowlist" or phases,
        "it needs a GPU or TPU": asked.gpus or asked.tpu,
        "it needs several containers": any((folder / "environment").glob("docker-compose.y*ml")),
        "it needs MCP servers": asked.mcp_servers,
        "it has files beside its docker_image": asked.docker_image
        and any((folder / "environment").glob("*"))
        and not build,
        "it needs another system than Linux": asked.os.lower() != "linux",
        "it needs a healthcheck": asked.healthcheck,
        "it needs another user than root": {file.agent.user, judge.user} - {None, "root", "0", 0},
        "it has several steps": file.steps or (folder / "steps").is_dir(),
        "it goes on from an earlier trajectory": (folder / "trajectory.json").exists(),
        "its verifier needs a container of its own": (
            judge.environment_mode == "separate" or judge.environment or judge.collect
        ),
        **{f"it has no {name}": not (folder / name).is_file() for name in needed},
    }
    return (why for why, is_so in found.items() if is_so)


def files_digest(folder: Path) -> str:
    """32 hex digits over the names, contents and rights to run of all files below a folder."""
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(path for path in folder.rglob("*") if path.is_symlink() or path.is_file()):
        content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
        runs = "link" if path.is_symlink() else bool(path.stat().st_mode & 0o100)
        found.update(os.fsencode(f"{path.relative_to(folder)}\0{runs}\0{hashlib.blake2b(content).hexdigest()}"))
    return found.hexdigest()


def packed(folder: Path, script: str) -> bytes:
    """A folder as a tar archive of that name, of root; its `script` may be run."""

    def of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        member.mode |= 0o755 if member.isdir() or member.name == f"{folder.name}/{script}" else 0o444
        return member

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as target:
        target.add(folder, folder.name, filter=of_root)
    return archive.getvalue()
