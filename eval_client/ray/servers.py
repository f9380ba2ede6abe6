"""Starts the servers and further clients of a run on a cluster."""

import secrets

from eval_client.endpoints.endpoints import LOCAL_TOKEN_ENV
from eval_client.plan.plan import Plan
from eval_client.ray import variables
from eval_client.ray.connect import nodes
from eval_client.ray.host import AGENTS, CONTROLLER, ClientHost, Hosted
from eval_client.ray.hosts import Say, await_server, await_workers, start
from eval_client.ray.placement import CPU, WORKER_CPUS, WorkerHost, worker_hosts
from eval_client.servers.local import ALONE
from eval_client.store.store import Store
from proctor.config.task import task_file_text

TOKEN, WORKER_TOKEN = "PROCTOR_TOKEN", "PROCTOR_WORKER_TOKEN"


def followed(plan: Plan) -> tuple[str, ...]:
    """The hosts that clients send requests to: the controller, and the agent server if the plan needs one."""
    return (CONTROLLER, AGENTS) if _builtin(plan) else (CONTROLLER,)


def bring_up(plan: Plan, token: str, workers: int | None, say: Say) -> None:
    """Start the run's servers, and wait until every task has a worker. Raises ClusterError, ValueError."""
    patience_s = plan.limits.patience_s
    hosts = worker_hosts(plan.definitions(), nodes(), workers)
    worker_token = secrets.token_hex(16)
    servers = {hosted.name: start(hosted, {}) for hosted in _servers(plan, token, worker_token)}
    actors = [start(_worker(host, worker_token), host.asks) for host in hosts]
    for name, actor in servers.items():
        await_server(name, actor, patience_s, say)
    await_workers(hosts, actors, patience_s, say)


def add_clients(plan: Plan, store: Store, token: str, clients: int) -> None:
    """Start so many further clients of a run that a client is playing. Raises ValueError."""
    url = store.engine.url.render_as_string(hide_password=False)
    given = {
        **variables.values(variables.of_clients(plan)),
        "PROCTOR_STORE": url,
        "PROCTOR_STORE_FILE": "",
        LOCAL_TOKEN_ENV: token,
    }
    for number in range(2, clients + 2):
        arguments = ("join", store.run, "--quiet", "--with-stdin")
        hosted = Hosted(f"client-{number}", arguments, {**ALONE, **given}, follows=followed(plan))
        start(hosted, {CPU: WORKER_CPUS}, ClientHost)


def _servers(plan: Plan, token: str, worker_token: str) -> list[Hosted]:
    given = {**ALONE, TOKEN: token}
    servers = [Hosted(CONTROLLER, ("controller",), {**given, WORKER_TOKEN: worker_token})]
    if builtin := _builtin(plan):
        tasks = task_file_text(plan.definitions())
        servers.append(Hosted(AGENTS, ("agents", *(f"--agent={agent}" for agent in builtin)), given, tasks))
    return servers


def _worker(host: WorkerHost, token: str) -> Hosted:
    """The process of a worker. It gets no clients' token: the controller supplies the token that it accepts."""
    given = {**ALONE, **variables.values(variables.of_tasks(host.tasks)), TOKEN: "", WORKER_TOKEN: token}
    arguments = ("worker", f"--name={host.name}")
    return Hosted(host.name, arguments, given, task_file_text(host.tasks), follows=(CONTROLLER,))


def _builtin(plan: Plan) -> list[str]:
    """`NAME=KIND` of the built-in agents without an endpoint of their own."""
    own = [agent for agent in plan.agents if agent.endpoint is None and agent.builtin is not None]
    return [f"{agent.model or agent.name}={agent.builtin}" for agent in own]
