"""Plays a run with its servers, and the clients of the other parts of its plan, on a Ray cluster."""

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from eval_client.endpoints.chat_configs import LOCAL_TOKEN_ENV
from eval_client.plan.plan import Plan
from eval_client.run.request import RunRequest, Served
from eval_client.run.servers import ALONE
from eval_client.store.connection import retry_until_available
from eval_client.store.records import part_name
from eval_client.store.store import Store
from proctor import event_loop
from proctor.config.task import task_file_text
from proctor.config.tokens import AccessTokens
from proctor_ray.connect import nodes
from proctor_ray.host import AGENTS, CONTROLLER, ORDERLY, Hosted, PartHost
from proctor_ray.hosts import Say, addresses, await_server, await_workers, start, take_down
from proctor_ray.placement import (
    CPU,
    WORKER_CPUS,
    WorkerHost,
    client_variables,
    shipped,
    task_variables,
    variable_values,
    worker_hosts,
)

TOKEN, WORKER_TOKEN = "PROCTOR_TOKEN", "PROCTOR_WORKER_TOKEN"
LOOK_S = 0.5


@contextlib.contextmanager
def on_cluster(request: RunRequest, namespace: str, workers: int | None, keep: bool, say: Say) -> Iterator[RunRequest]:
    """Start the run's servers on the cluster, and yield the request with their addresses; stop them afterwards.

    The other parts of the plan, if it is played in parts, start on the cluster too, and are waited for where this one
    came to its end. `keep` leaves everything running. Raises ClusterError, ValueError.
    """
    token = _token(request.plan)
    if replaced := take_down(namespace):
        say(f"{replaced} hosts of an earlier `proctor up` removed")
    with contextlib.ExitStack() as stack:
        if not keep:
            stack.callback(take_down, namespace)
        _bring_up(request.plan, token, workers, say)
        urls = stack.enter_context(addresses(namespace, _followed(request.plan)))
        parts = _add_parts(request, token)
        try:
            yield replace(request, served=Served(urls[CONTROLLER], urls.get(AGENTS)))
        except SystemExit as ended:
            if ended.code in ORDERLY and parts:
                say(f"waiting for the parts {', '.join(parts)}")
                _await_parts(request.store, parts)
            raise


def _followed(plan: Plan) -> tuple[str, ...]:
    """The hosts that clients send requests to: the controller, and the agent server if the plan needs one."""
    return (CONTROLLER, AGENTS) if _builtin(plan) else (CONTROLLER,)


def _bring_up(plan: Plan, token: str, workers: int | None, say: Say) -> None:
    """Start the run's servers, and wait until every task has a worker. Raises ClusterError, ValueError."""
    patience_s = plan.limits.patience_s
    hosts = worker_hosts(plan.definitions(), nodes(), workers)
    worker_token = secrets.token_hex(16)
    servers = {hosted.name: start(hosted, {}) for hosted in _servers(plan, token, worker_token)}
    actors = [start(_worker(host, worker_token), host.asks) for host in hosts]
    for name, actor in servers.items():
        await_server(name, actor, patience_s, say)
    await_workers(hosts, actors, patience_s, say)


def _add_parts(request: RunRequest, token: str) -> list[str]:
    """Start a client for each part of the plan but the first; the names of their runs. Raises ValueError."""
    plan, store, part = request.plan, request.store, request.part
    if part is None:
        return []
    given = {
        **variable_values(client_variables(plan)),
        "PROCTOR_STORE": store.engine.url.render_as_string(hide_password=False),
        "PROCTOR_STORE_FILE": "",
        plan.token_env: token,
    }
    limit = () if request.limit is None else (f"--limit={request.limit}",)
    always = ("run", "--quiet", "--with-stdin", "--continue", f"--name={part.plan}", *limit)
    for number in range(2, part.of + 1):
        arguments, text = (*always, f"--part={number}/{part.of}"), plan.model_dump_json()
        hosted = Hosted(f"part-{number}", arguments, {**ALONE, **given}, text, follows=(CONTROLLER,))
        start(hosted, {CPU: WORKER_CPUS}, PartHost)
    return [part_name(part.plan, number, part.of) for number in range(2, part.of + 1)]


def _servers(plan: Plan, token: str, worker_token: str) -> list[Hosted]:
    given = {**ALONE, TOKEN: token}
    servers = [Hosted(CONTROLLER, ("controller",), {**given, WORKER_TOKEN: worker_token})]
    if builtin := _builtin(plan):
        tasks, files = shipped(plan.definitions(), AGENTS)
        arguments = ("agents", *(f"--agent={agent}" for agent in builtin))
        servers.append(Hosted(AGENTS, arguments, given, task_file_text(tasks), files))
    return servers


def _worker(host: WorkerHost, token: str) -> Hosted:
    """The process of a worker. It gets no clients' token: the controller supplies the token that it accepts."""
    given = {**ALONE, **variable_values(task_variables(host.tasks)), TOKEN: "", WORKER_TOKEN: token}
    arguments, (tasks, files) = ("worker", f"--name={host.name}"), shipped(host.tasks, host.name)
    return Hosted(host.name, arguments, given, task_file_text(tasks), files, follows=(CONTROLLER,))


def _builtin(plan: Plan) -> list[str]:
    """`NAME=KIND` of the built-in agents without an endpoint of their own."""
    own = [agent for agent in plan.agents if agent.endpoint is None and agent.policy is not None]
    return [f"{agent.model or agent.name}={agent.policy}" for agent in own]


def _await_parts(store: Store, parts: Sequence[str]) -> None:
    """Return once the runs of these parts are over."""
    for part in parts:
        while not event_loop.run(retry_until_available(Store(store.engine, part).is_over)):
            time.sleep(LOOK_S)


def _token(plan: Plan) -> str:
    """The token of the run's servers: the one set here, or a new one. Also sets it in this process's environment."""
    token = AccessTokens.of(plan.token_env).current or secrets.token_hex(16)
    os.environ[LOCAL_TOKEN_ENV] = token
    return token
