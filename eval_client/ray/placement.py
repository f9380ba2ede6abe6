"""Pure: the worker hosts to start on a cluster, and the resources that each needs."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.config.task import TaskDefinition

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


def unplaced(hosts: Sequence[WorkerHost], up: set[str]) -> list[str]:
    """The tasks without a worker among those that are up, sorted."""
    held = {task.name for host in hosts if host.name in up for task in host.tasks}
    return sorted({task.name for host in hosts for task in host.tasks} - held)


def described(asks: Resources) -> str:
    """Resources as text, for example `1 CPU, 1 proctor_os`."""
    return ", ".join(f"{amount:g} {name}" for name, amount in asks.items())
