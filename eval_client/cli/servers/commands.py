"""`proctor worker`, `proctor controller` and `proctor agents`."""

import contextlib
import os
import signal
from pathlib import Path
from typing import Any

import click

from eval_client.cli.servers.options import (
    address_options,
    announce,
    configured,
    grace_option,
    host_option,
    http_url,
    port_option,
    stdin_option,
    tls_fields,
    tls_options,
    tokens,
)
from eval_client.cli.usage import FILE, UsageProblem
from proctor.config.task import load_tasks


@click.command()
@click.option("--tasks", required=True, type=FILE, help="Task file or plan.")
@click.option(
    "--controller",
    default="",
    metavar="URL",
    callback=http_url,
    help="Controller to report to; without one the worker serves clients on its own.",
)
@click.option("--name", default="", help="Name, unique among the controller's workers. Default: host name and port.")
@grace_option
@address_options
def worker(tasks: Path, controller: str, name: str, grace: float, address: dict[str, Any]) -> None:
    """Serve the tasks of a task file and run their sessions.

    Clients must send PROCTOR_TOKEN. The worker sends PROCTOR_WORKER_TOKEN to its controller where that is set; then
    PROCTOR_TOKEN may be unset, and the controller supplies the clients' token. PROCTOR_METRICS_TOKEN gives access to
    /metrics only.
    """
    from task_server.serve import WorkerConfig, serve_worker

    with configured():
        config = WorkerConfig(
            tasks=load_tasks(tasks), controller=controller, name=name, grace_s=grace, **address, **tokens()
        )
        serve_worker(config, announce("worker", address["stop_with_stdin"]))


@click.command()
@click.option(
    "--lease",
    default=10.0,
    type=click.FloatRange(min=0, min_open=True),
    show_default=True,
    help="Seconds without a heartbeat after which a worker counts as lost.",
)
@click.option(
    "--settle",
    default=2.0,
    type=click.FloatRange(min=0),
    show_default=True,
    help="Seconds after the start during which sessions wait, so that all live workers can report.",
)
@click.option(
    "--allow-workers",
    multiple=True,
    metavar="CIDR",
    envvar="PROCTOR_ALLOW_WORKERS",
    show_envvar=True,
    help="Addresses that workers may announce besides the one they connect from, such as 10.1.0.0/16; repeatable.",
)
@address_options
def controller(lease: float, settle: float, allow_workers: tuple[str, ...], address: dict[str, Any]) -> None:
    """Place sessions on the workers that report to this controller.

    Clients must send PROCTOR_TOKEN. Workers must send PROCTOR_WORKER_TOKEN where that is set; it gives no other access.
    PROCTOR_METRICS_TOKEN gives access to /metrics only.
    """
    from task_server.serve import ControllerConfig, serve_controller

    with configured():
        config = ControllerConfig(lease_s=lease, settle_s=settle, allow_workers=allow_workers, **address, **tokens())
        serve_controller(config, announce("controller", address["stop_with_stdin"]))


@click.command()
@click.option("--tasks", type=FILE, help="Task file or plan of the agents' tasks.")
@click.option(
    "--agent",
    "agents",
    multiple=True,
    metavar="NAME=KIND",
    help="An agent to serve; KIND is reference, naive, random, human, or recorded:PATH. Default: reference, naive and "
    "random.",
)
@click.option("--config", type=FILE, help="YAML file with all settings, instead of options.")
@click.option(
    "--token-env",
    default="PROCTOR_TOKEN",
    show_default=True,
    help="Name of the variable with the token that every request must send as its API key.",
)
@host_option
@port_option
@tls_options
@stdin_option
def agents(
    tasks: Path | None,
    agents: tuple[str, ...],
    config: Path | None,
    token_env: str,
    host: str,
    port: int,
    stop_with_stdin: bool,
    **tls: Path | None,
) -> None:
    """Serve agents through the OpenAI Chat Completions protocol, to Proctor or to any other client.

    PROCTOR_METRICS_TOKEN gives access to /metrics only.
    """
    from agent_server.config import AgentServerConfig
    from agent_server.serve import serve
    from proctor.config.yaml import load
    from proctor.http.server import when_stdin_ends

    if config is not None and (tasks is not None or agents):
        raise UsageProblem("--config holds all settings; leave --tasks and --agent out")
    if config is not None and any(tls.values()):
        raise UsageProblem("--config holds all settings; write the files of --tls-... into its `tls`")
    with configured():
        if config is not None:
            loaded = load(config, AgentServerConfig).relative_to(config.parent)
        else:
            chosen = agents or ("reference=reference", "naive=naive", "random=random")
            loaded = AgentServerConfig(
                host=host,
                port=port,
                tasks=load_tasks(tasks) if tasks is not None else (),
                agents=tuple(map(_agent, chosen)),
                token_env=token_env,
                tls=tls_fields(tls),
            )
        if stop_with_stdin:
            when_stdin_ends(lambda: os.kill(os.getpid(), signal.SIGTERM))
        with contextlib.suppress(KeyboardInterrupt):
            serve(loaded, announce("agent server", stop_with_stdin))


def _agent(text: str) -> dict[str, str]:
    """`NAME=KIND`, or `KIND` alone, as the fields of an agent's configuration."""
    name, equals, kind = text.partition("=")
    if not equals:
        name, kind = text, text
    kind, colon, path = kind.partition(":")
    return {"name": name, "kind": kind, **({"path": path} if colon else {})}
