"""The worker hosts to start on a cluster, the resources that each needs, and the variables and files that go there.

They are those that a plan names.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from eval_client.plan.plan import Plan
from proctor.config.secrets import secret_text, setting
from proctor.config.task import TaskDefinition
from proctor.connection.fields import VARIABLES
from proctor.llm.dialects import DialectName, dialect_of
from proctor.own_files.loading import folder_of
from proctor.own_files.source import INSTALLED, world_source
from proctor.registry import is_own

Resources = Mapping[str, float]
"""Ray's name of a resource -> amount: `CPU`, and the custom resources of a node."""

CPU = "CPU"
WORKER_CPUS = 1.0
"""A worker is one process on one core."""


@dataclass(frozen=True)
class WorkerHost:
    """A worker to place: its name, unique in the run, its tasks, and the resources it needs."""

    name: str
    tasks: tuple[TaskDefinition, ...]
    asks: Resources


def resource_of(environment: str) -> str:
    """The custom resource of nodes that are meant for workers of this environment."""
    return "proctor_" + re.sub(r"[^a-z0-9_]", "_", environment.lower())


def worker_hosts(
    tasks: Sequence[TaskDefinition], nodes: Sequence[Resources], workers: int | None
) -> tuple[WorkerHost, ...]:
    """The workers to start on nodes with these total resources; their names count from `worker-1`.

    The tasks of an environment whose resource any node declares get their own workers, each of which needs one unit of
    it. All other tasks share workers that may run on any node. Each group of tasks gets `workers` workers; by default
    one for every node with the resources needed, but at least one, since a cluster that scales may have no such node
    yet.
    """
    hosts: list[WorkerHost] = []
    for asks, held in _kinds(tasks, nodes):
        fitting = sum(all(node.get(name, 0.0) >= amount for name, amount in asks.items()) for node in nodes)
        for _ in range(workers or max(1, fitting)):
            hosts.append(WorkerHost(f"worker-{len(hosts) + 1}", held, asks))
    return tuple(hosts)


def _kinds(
    tasks: Sequence[TaskDefinition], nodes: Sequence[Resources]
) -> list[tuple[Resources, tuple[TaskDefinition, ...]]]:
    declared = {name for node in nodes for name, amount in node.items() if amount > 0}
    kinds: dict[str, list[TaskDefinition]] = defaultdict(list)
    for task in tasks:
        name = resource_of(task.environment)
        kinds[name if name in declared else ""].append(task)
    return [({CPU: WORKER_CPUS} | ({name: 1.0} if name else {}), tuple(held)) for name, held in kinds.items()]


def shipped(tasks: Sequence[TaskDefinition], host: str) -> tuple[tuple[TaskDefinition, ...], dict[str, bytes]]:
    """A host's tasks as its task file names them, and the files of the user's own worlds by their places beside it.

    Those are the files that a world is identified by; what is installed stays. Raises FieldErrors, OwnFileError.
    """
    sent, files = list[TaskDefinition](), dict[str, bytes]()
    for task in tasks:
        place, _, name = task.environment.rpartition(":")
        folder = folder_of(Path(place))
        if not is_own(task.environment) or INSTALLED.intersection(folder.parts):
            sent.append(task)
            continue
        there = f"{host}-files/{task.name}"
        files |= {f"{there}/{each}": (folder / each).read_bytes() for each in world_source(task.opened()).files}
        moved = f"./{there}/{Path(place).relative_to(folder).as_posix()}:{name}"
        sent.append(task.model_copy(update={"environment": moved}))
    return tuple(sent), files


def unplaced(hosts: Sequence[WorkerHost], up: set[str]) -> list[str]:
    """The tasks without a worker among those that are up, sorted."""
    held = {task.name for host in hosts if host.name in up for task in host.tasks}
    return sorted({task.name for host in hosts for task in host.tasks} - held)


def described(asks: Resources) -> str:
    """Resources as text, for example `1 CPU, 1 proctor_os`."""
    return ", ".join(f"{amount:g} {name}" for name, amount in asks.items())


def task_variables(tasks: Sequence[TaskDefinition]) -> frozenset[str]:
    """The variables for workers: those that parameters name, and those of the dialects of models in them."""
    named = {name for task in tasks for name in _named(task.parameters)}
    models = [each for task in tasks for each in _objects(task.parameters) if "model" in each]
    return frozenset(named.union(*map(_of_dialect, models)))


def client_variables(plan: Plan) -> frozenset[str]:
    """The variables for clients: those that the plan's endpoints and agents name, and those of their dialects."""
    entries = plan.model_dump(mode="json", include={"endpoints", "agents"})
    return frozenset({*_named(entries)}.union(*map(_of_dialect, [{}, *entries["endpoints"]])))


def _of_dialect(model: Mapping[str, JsonValue]) -> set[str]:
    """The variables of a model or endpoint that names no key or base URL."""
    name: DialectName = "messages" if model.get("dialect") == "messages" else "chat"
    return {dialect_of(name).KEY_ENV, dialect_of(name).BASE_URL_ENV}


def variable_values(names: Collection[str]) -> dict[str, str]:
    """name -> value of those that are set, in the environment, in `.env` or by NAME_FILE. Raises ValueError."""
    found = {name: setting(name) if name.endswith("_BASE_URL") else secret_text(name) for name in sorted(names)}
    return {name: value for name, value in found.items() if value}


def _named(value: JsonValue | Mapping[str, JsonValue]) -> Iterator[str]:
    """The values of all fields whose name ends in `_env`, and what `${NAME}` names in headers, query and proxy."""
    for each in _objects(value):
        for name, text in each.items():
            if isinstance(text, str):
                yield from [text] if name.endswith("_env") else VARIABLES.findall(text)


def _objects(value: JsonValue | Mapping[str, JsonValue]) -> Iterator[Mapping[str, JsonValue]]:
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _objects(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _objects(inner)
