"""Pure: which worker hosts a cluster is asked for, and what each of them asks of its node."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from proctor.config.task import TaskDefinition

Resources = Mapping[str, float]
"""Amounts by the names that Ray gives them: `CPU`, and whatever a node was started with."""

CPU = "CPU"
WORKER_CPUS = 1.0
"""A worker is one process on one core."""


@dataclass(frozen=True)
class WorkerHost:
    """A worker to be placed: its name, unique in the run, the tasks it holds, and what it asks of a node."""

    name: str
    tasks: tuple[TaskDefinition, ...]
    asks: Resources


def resource_of(environment: str) -> str:
    """The resource that a node declares to say: workers of this environment belong here."""
    return "proctor_" + re.sub(r"[^a-z0-9_]", "_", environment.lower())


def worker_hosts(
    tasks: Sequence[TaskDefinition], nodes: Sequence[Resources], workers: int | None
) -> tuple[WorkerHost, ...]:
    """The workers to start over nodes with these total resources; their names count from `worker-1`.

    Tasks of an environment that any node declares a resource for get workers of their own, each asking for one unit of
    it; all others share workers that may stand anywhere. There are `workers` of each kind, or else one for every node
    that has what they ask for, at least one: a cluster that grows by itself may have no such node yet.
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
    """The tasks that none of the workers that are up holds, sorted."""
    held = {task.name for host in hosts if host.name in up for task in host.tasks}
    return sorted({task.name for host in hosts for task in host.tasks} - held)


def described(asks: Resources) -> str:
    """`1 CPU, 1 proctor_os`"""
    return ", ".join(f"{amount:g} {name}" for name, amount in asks.items())
