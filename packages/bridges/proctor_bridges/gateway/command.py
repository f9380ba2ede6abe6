"""`proctor serve`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from eval_client.cli.servers import address_options, announce, configured, grace_option, http_url, tokens
from eval_client.cli.usage import FILE, UsageProblem
from proctor.config.task import load_tasks
from proctor.config.tokens import AccessTokens
from proctor_bridges.gateway.wires import wires


def _wire_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each wire."""
    for name, wire in reversed(wires().items()):
        command = click.option(f"--{name}", is_flag=True, help=wire.help)(command)
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
    from proctor_bridges.gateway.serve import GatewayConfig, serve_gateway

    served = tuple(name for name in wires() if options[name.replace("-", "_")])
    if not served:
        raise UsageProblem(f"name a protocol to serve: {', '.join('--' + name for name in wires())}")
    if (tasks is None) == (not controller):
        raise UsageProblem("give --tasks FILE to play tasks here, or --controller URL of a server that has them")
    with configured():
        config = GatewayConfig(
            wires=served,
            tasks=load_tasks(tasks) if tasks is not None else (),
            controller=controller,
            controller_token=AccessTokens.of("PROCTOR_CONTROLLER_TOKEN"),
            token=tokens()["token"],
            grace_s=grace,
            **address,
        )
        serve_gateway(config, announce("gateway", address["stop_with_stdin"]))
