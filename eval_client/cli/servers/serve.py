"""`proctor serve`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from eval_client.cli.servers.options import address_options, announce, configured, grace_option, http_url, tokens
from eval_client.cli.usage import FILE, UsageProblem
from proctor.config.secrets import secret
from proctor.config.task import load_tasks
from task_server.gateway.wires import WIRES


def _wire_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each wire."""
    for name, (_, text) in reversed(WIRES.items()):
        command = click.option(f"--{name}", is_flag=True, help=text)(command)
    return command


@click.command()
@_wire_options
@click.option("--tasks", type=FILE, help="Task file or plan: play its tasks here.")
@click.option("--controller", default="", metavar="URL", callback=http_url, help="Controller or worker with the tasks.")
@grace_option
@address_options
def serve(tasks: Path | None, controller: str, grace: float, address: dict[str, Any], **options: Any) -> None:
    """Let clients of other programs play tasks, each by its own protocol.

    Give one protocol or more, and either --tasks or --controller. Clients must send PROCTOR_TOKEN, as a bearer token or
    as the beginning of the path: /t/TOKEN/... The controller is sent PROCTOR_CONTROLLER_TOKEN, or PROCTOR_TOKEN where
    that is not set.
    """
    from task_server.gateway.serve import GatewayConfig, serve_gateway

    wires = tuple(name for name in WIRES if options.pop(name.replace("-", "_")))
    if not wires:
        raise UsageProblem(f"name a protocol to serve: {', '.join('--' + name for name in WIRES)}")
    if (tasks is None) == (not controller):
        raise UsageProblem("give --tasks FILE to play tasks here, or --controller URL of a server that has them")
    with configured():
        config = GatewayConfig(
            wires=wires,
            tasks=load_tasks(tasks) if tasks is not None else (),
            controller=controller,
            controller_token=secret("PROCTOR_CONTROLLER_TOKEN"),
            token=tokens()["token"],
            grace_s=grace,
            **address,
        )
        serve_gateway(config, announce("gateway", address["stop_with_stdin"]))
