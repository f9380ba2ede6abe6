"""Which servers a run has on a cluster, and how each is started."""

import json
from collections.abc import Sequence

from environments.chat.settings import FILE
from environments.definition import TaskDefinition
from eval_client.cluster import variables
from eval_client.cluster.connect import nodes
from eval_client.cluster.host import CONTROLLER, Hosted
from eval_client.cluster.hosts import Say, await_controller, await_workers, start
from eval_client.cluster.placement import WorkerHost, worker_hosts
from eval_client.plan import Plan

TOKEN = "PROCTOR_TOKEN"


def bring_up(plan: Plan, token: str, workers: int | None, say: Say) -> None:
    """Start controller and workers, and wait until every task has one. Raises ClusterError, ValueError."""
    patience_s = plan.limits.patience_s
    hosts = worker_hosts(plan.definitions(), nodes(), workers)
    controller = start(Hosted(CONTROLLER, ("controller",), _variables({TOKEN: token})), {})
    actors = [start(_worker(host, token), host.asks) for host in hosts]
    await_controller(controller, patience_s, say)
    await_workers(hosts, actors, patience_s, say)


def _worker(host: WorkerHost, token: str) -> Hosted:
    given = {**variables.values(variables.of_tasks(host.tasks)), TOKEN: token}
    return Hosted(
        host.name, ("worker", f"--name={host.name}"), _variables(given), tasks=_task_file(host.tasks), controlled=True
    )


def _variables(given: dict[str, str]) -> dict[str, str]:
    """These, and none of a node's own files in their place."""
    return {**{name + FILE: "" for name in given}, **given}


def _task_file(tasks: Sequence[TaskDefinition]) -> str:
    return json.dumps({"tasks": [task.model_dump(mode="json") for task in tasks]}, indent=1)
