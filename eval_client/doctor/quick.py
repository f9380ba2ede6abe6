"""The doctor's quick checks, for the moment before a run starts: no request to a model, nothing is started."""

import asyncio
import functools
import shutil
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from eval_client.doctor import machine, tasks
from eval_client.doctor.docker_host import Sandboxes, has_image
from eval_client.doctor.finding import Finding, fail, ok, skip, warn
from eval_client.doctor.run_checks import in_thread
from eval_client.endpoints.endpoints import chat_config
from eval_client.endpoints.replica_watch import rooms
from eval_client.plan.plan import Plan
from proctor.config.secrets import secret, secret_text
from proctor.config.task import TaskDefinition
from proctor.environment import EnvironmentFault
from proctor.event_loop import allow_descriptors
from proctor.http.server import is_loopback
from proctor.llm.config import ChatConfig

REACH_S = 2.0
"""Longest wait for one server."""
LISTENERS = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LISTENING = "0A"


async def quick_problems(plan: Plan, output: Path, store: str | None) -> list[Finding]:
    """The problems of a plan that show at once; `output` is the folder of the runs, `store` the URL of a server."""
    engines = await asyncio.gather(*(engine_problem(each) for each in _played_by_own_workers(plan)))
    found = [*engines, *_of_models(plan), *key_findings(plan), *await _servers(plan)]
    trials = most_trials(plan)
    found += machine.folder_findings(await in_thread(machine.folder_facts, output), in_sqlite=store is None)
    found += [
        machine.memory_finding(machine.available_memory()),
        machine.descriptor_finding(allow_descriptors(), trials),
    ]
    return [each for each in found if each is not None and each.is_problem]


def most_trials(plan: Plan) -> int:
    """Trials at once over all agents."""
    return sum(min(plan.concurrency_of(agent), sum(rooms(plan.endpoint_of(agent)))) for agent in plan.agents)


async def engine_problem(definition: TaskDefinition) -> Finding | None:
    """Why this machine can't start a task's engine; None if it can."""
    name = definition.name
    if tasks.lacks_mariadb(definition):
        return fail("mariadb-missing", f"task {name}: no program mariadbd on this machine")
    wanted = tasks.sandboxes(definition)
    return None if wanted is None else await _docker_problem(name, wanted)


async def _docker_problem(task: str, wanted: Sandboxes) -> Finding | None:
    if find_spec("docker") is None:
        return fail("extra-missing", f"task {task}: no package docker", "pip install 'proctor[os]'")
    from proctor.sandbox.docker_exec import reach

    try:
        async with asyncio.timeout(REACH_S):
            await reach()
        present = await in_thread(has_image, wanted.image, REACH_S)
    except TimeoutError:
        return fail("docker-down", f"task {task}: the Docker engine does not answer within {REACH_S:g} s")
    except EnvironmentFault as error:
        return fail("docker-down", f"task {task}: {error}")
    except Exception as error:  # the SDK raises errors of other libraries too
        return fail("docker-down", f"task {task}: Docker: {error}")
    return None if present else fail("docker-image-missing", f"task {task}: Docker has no image {wanted.image}")


def _played_by_own_workers(plan: Plan) -> Sequence[TaskDefinition]:
    return plan.definitions() if plan.controller == "local" else ()


def _of_models(plan: Plan) -> list[Finding]:
    found: list[Finding] = []
    for definition in _played_by_own_workers(plan):
        models = sorted(agent for agent, policy in plan.playing(definition.name).items() if policy is None)
        if models:
            built = definition.build()
            weak, caution = built.trusted_agents_only(), built.caution_for_models()
            found += tasks.model_findings(definition.name, models, weak=weak, caution=caution)
    return found


async def _servers(plan: Plan) -> list[Finding]:
    """The servers of this machine that nothing listens for. Others may be slow to reach, so they are not tried."""
    agents: dict[str, list[str]] = {}
    for agent in plan.agents:
        if agent.builtin is None or agent.endpoint is not None:
            try:
                agents.setdefault(chat_config(plan, agent, None).endpoint(), []).append(agent.name)
            except ValueError as error:
                return [
                    fail(
                        "agent-url",
                        f"agent {agent.name}: {error}",
                        f"correct the variable {str(error).partition(':')[0]}",
                    )
                ]
    ports = functools.cache(_listened_ports)
    found = [
        fail("agent-unreachable", f"{'agents' if len(names) > 1 else 'agent'} {', '.join(names)}: {trouble}")
        for url, names in agents.items()
        if (trouble := await _not_listening(url, ports)) is not None
    ]
    if plan.controller != "local" and (trouble := await _not_listening(plan.controller, ports)) is not None:
        found.append(fail("controller-unreachable", trouble))
    return found


async def _not_listening(url: str, listened_ports: Callable[[], set[int]]) -> str | None:
    """Why no connection to a server on this machine can be made; None for other machines' servers.

    A server at a port that is listened at is not disturbed by a connection.
    """
    parts = urlsplit(url)
    if parts.hostname is None or not is_loopback(parts.hostname):
        return None
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if port in listened_ports():
        return None
    try:
        async with asyncio.timeout(REACH_S):
            _, writer = await asyncio.open_connection(parts.hostname, port)
    except (OSError, TimeoutError):
        return f"nothing listens at {parts.scheme}://{parts.netloc} yet"
    writer.transport.abort()
    return None


def _listened_ports() -> set[int]:
    """The TCP ports of this machine that something listens at; empty where the system has no table of them.

    To read the table takes milliseconds.
    """
    rows = [line.split() for table in LISTENERS if table.exists() for line in table.read_text().splitlines()[1:]]
    return {int(row[1].rpartition(":")[2], 16) for row in rows if row[3] == LISTENING}


def key_findings(plan: Plan) -> list[Finding]:
    """A finding for each variable with a key or a token that the plan's servers may ask for."""
    local = plan.controller == "local"
    variables: dict[str, bool] = {} if local else {plan.token_env: True}
    found = list[Finding]()
    for agent in plan.agents:
        if not agent.is_command and (agent.builtin is None or agent.endpoint is not None):
            config = chat_config(plan, agent, None)
            optional = config.base_url is not None and is_loopback(urlsplit(config.base_url).hostname)
            if config.api_key_file is None and not config.api_key_command:
                variables[config.api_key_env] = variables.get(config.api_key_env, True) and optional
            found += [] if (lacks := _lacks(config)) is None else [fail("key-broken", f"agent {agent.name}: {lacks}")]
    found = [each for number, each in enumerate(found) if each not in found[:number]]
    return [*(key_finding(variable, optional=optional) for variable, optional in variables.items()), *found]


def _lacks(config: ChatConfig) -> str | None:
    """What an endpoint's key file, key command, headers, query or proxy name, and is not there."""
    if config.api_key_file is not None and not config.api_key_file.is_file():
        return f"there is no file {config.api_key_file}; correct `api_key_file`"
    if config.api_key_command and shutil.which(config.api_key_command[0]) is None:
        return f"there is no program {config.api_key_command[0]!r} on this machine; correct `api_key_command`"
    unset = [name for name in config.named_variables() if not secret_text(name)]
    return f"the variable {unset[0]} is unset; export {unset[0]}=..., or a line in .env" if unset else None


def key_finding(variable: str, *, optional: bool) -> Finding:
    """Whether a variable holds a key that can be sent; `optional` where its servers may not need one."""
    try:
        value = secret(variable)
    except ValueError as error:
        return fail("key-broken", str(error))
    if value is not None:
        return ok("key", f"{variable} is set")
    if optional:
        return skip("key", f"{variable} is unset; its servers may not need it")
    return warn("key-unset", f"{variable} is unset", f"export {variable}=..., or a line in .env")
