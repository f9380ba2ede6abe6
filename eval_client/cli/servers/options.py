"""The options of the commands that start servers, and what these commands share."""

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
from pydantic import SecretStr, ValidationError

from eval_client.cli.usage import FILE, UsageProblem, report_file_errors
from proctor.config.secrets import secret
from proctor.config.wording import every_problem


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


def tokens() -> dict[str, SecretStr | None]:
    """field of a task server's configuration -> its token. Raises ValueError."""
    names = {"token": "PROCTOR_TOKEN", "worker_token": "PROCTOR_WORKER_TOKEN", "metrics_token": "PROCTOR_METRICS_TOKEN"}
    return {field: secret(name) for field, name in names.items()}


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
    """A function that prints the URL of a server."""
    return lambda url: click.echo(url if url_alone else f"{what} listens at {url}")
