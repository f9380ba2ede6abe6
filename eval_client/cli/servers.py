"""`proctor worker`, `proctor controller` and `proctor agents`, with what all commands that start servers share."""

import contextlib
import functools
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import click
from pydantic import ValidationError

from eval_client.cli.usage import FILE, UsageProblem, report_file_errors
from proctor.config.task import load_tasks, named_task
from proctor.config.tokens import AccessTokens
from proctor.config.wording import every_problem

log = logging.getLogger(__name__)


def http_url(_context: click.Context, _option: click.Parameter, url: str) -> str:
    if url and not re.fullmatch(r"https?://[^/\s@]+(/\S*)?", url):
        raise click.BadParameter("must begin with http:// or https:// and a host, without user and password")
    return url


host_option = click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; any but a loopback address needs PROCTOR_TOKEN.",
)
port_option = click.option(
    "--port", default=0, type=click.IntRange(0, 65535), show_default="a free one", help="Port to listen on."
)
advertise_option = click.option(
    "--advertise", default="", metavar="URL", help="Base URL at which others reach this server."
)
stdin_option = click.option(
    "--stop-with-stdin",
    is_flag=True,
    help="Stop when standard input closes; print only the base URL to standard output.",
)
grace_option = click.option(
    "--grace",
    default=30.0,
    type=click.FloatRange(min=0),
    show_default=True,
    help="Seconds that live sessions may continue after SIGTERM.",
)


def address_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options on where a server listens, how it is reached and what ends it.

    The command gets them as `address`, by the fields of `ServeConfig`.
    """

    @functools.wraps(command)
    def with_address(host: str, port: int, advertise: str, stop_with_stdin: bool, **options: Any) -> None:
        tls = tls_fields({name: options.pop(name) for name in list(options) if name.startswith("tls_")})
        address = {"host": host, "port": port, "advertise": advertise, "stop_with_stdin": stop_with_stdin, "tls": tls}
        command(address=address, **options)

    wrapped: Callable[..., None] = with_address
    for option in (stdin_option, tls_options, advertise_option, port_option, host_option):
        wrapped = option(wrapped)
    return wrapped


def tls_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of `ServerTls`; each can also be set by a variable."""
    texts = {
        "client-ca": "PEM file of authorities; only clients with a certificate signed by one of them are accepted.",
        "ca": "PEM file of authorities to trust besides the usual ones in requests to other servers.",
        "key": "PEM file of the certificate's private key, without a passphrase.",
        "cert": "PEM file of the certificate for serving https and for requests to other servers.",
    }
    for name, text in texts.items():
        variable = f"PROCTOR_TLS_{name.replace('-', '_').upper()}"
        command = click.option(f"--tls-{name}", type=FILE, envvar=variable, show_envvar=True, help=text)(command)
    return command


def tls_fields(files: Mapping[str, Path | None]) -> dict[str, Path | None]:
    """The options as the fields of `ServerTls`."""
    return {name.removeprefix("tls_"): path for name, path in files.items()}


def tokens() -> dict[str, AccessTokens]:
    """field of a task server's configuration -> its tokens. Raises ValueError."""
    names = {"token": "PROCTOR_TOKEN", "worker_token": "PROCTOR_WORKER_TOKEN", "metrics_token": "PROCTOR_METRICS_TOKEN"}
    return {field: AccessTokens.of(name) for field, name in names.items()}


@contextlib.contextmanager
def configured() -> Iterator[None]:
    """Turn errors in options and files into UsageProblem, without their values, since one may be a token."""
    try:
        with report_file_errors():
            yield
    except ValidationError as error:
        raise UsageProblem("\n".join(every_problem(error))) from None
    except ValueError as error:
        raise UsageProblem(str(error)) from error


def announce(what: str, url_alone: bool) -> Callable[[str], None]:
    """A function that prints and logs the URL of a server.

    With the URL alone on standard output, what worlds and agents print from now on goes where the log goes.
    """
    out: IO[str] = sys.stdout
    if url_alone:
        sys.stdout.flush()
        out = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)  # nobody reads the pipe any more: a full one would stop a world
        sys.stdout = sys.stderr

    def tell(url: str) -> None:
        click.echo(url if url_alone else f"{what} listens at {url}", file=out)
        log.info("listens at %s", url)

    return tell


@click.command()
@click.option("--tasks", type=FILE, help="Task file or plan.")
@click.option(
    "-e",
    "--environment",
    "environments",
    multiple=True,
    metavar="NAME",
    help="Instead of --tasks: an environment to serve, or a file of your own such as ./trivia.py; repeatable.",
)
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
def worker(
    tasks: Path | None, environments: tuple[str, ...], controller: str, name: str, grace: float, address: dict[str, Any]
) -> None:
    """Serve the tasks of a task file and run their sessions.

    Clients must send PROCTOR_TOKEN. The worker sends PROCTOR_WORKER_TOKEN to its controller where that is set; then
    PROCTOR_TOKEN may be unset, and the controller supplies the clients' token. PROCTOR_METRICS_TOKEN gives access to
    /metrics only.
    """
    from task_server.serve import WorkerConfig, serve_worker

    if (tasks is None) == (not environments):
        raise UsageProblem("name the tasks to serve, by --tasks FILE or by -e ENVIRONMENT")
    tell = announce("worker", address["stop_with_stdin"])
    with configured():
        served = load_tasks(tasks) if tasks is not None else tuple(map(named_task, environments))
        for task in served:
            task.check_files("data")  # what another field names the world may write
        config = WorkerConfig(tasks=served, controller=controller, name=name, grace_s=grace, **address, **tokens())
        serve_worker(config, tell)


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
    help="An agent to serve; KIND is reference, naive, random, recorded:PATH, or a function, ./agent.py:answer. "
    "Default: reference, naive and random.",
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
            ).relative_to(Path.cwd())
        serve(loaded, announce("agent server", stop_with_stdin), stop_with_stdin=stop_with_stdin)


def _agent(text: str) -> dict[str, str]:
    """`NAME=KIND`, or `KIND` alone, as the fields of an agent's configuration."""
    name, equals, kind = text.partition("=")
    if not equals:
        name, kind = text, text
    if kind.rpartition(":")[0].endswith(".py"):
        return {"name": name, "kind": "function", "function": kind}
    kind, colon, path = kind.partition(":")
    return {"name": name, "kind": kind, **({"path": path} if colon else {})}
