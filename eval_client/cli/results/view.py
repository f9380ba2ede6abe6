"""`proctor view`: shows runs in a browser."""

import sys
import webbrowser
from pathlib import Path

import click

from eval_client.cli.common import output_option, report_usage_errors, store_option
from eval_client.cli.usage import FILE, UsageProblem
from eval_client.store.connection import StoreError
from eval_client.store.runs import find_run
from eval_client.view.app import PORT, PORTS, serve
from eval_client.view.runs import FolderRuns, OneRun, ServerRuns, ViewedRuns
from proctor.http import is_loopback
from proctor.http.server import ConfigError
from proctor.http.tls import ServerTls


@click.command()
@click.argument("run", metavar="[RUN]", required=False)
@output_option
@store_option
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to listen on; any but a loopback address needs PROCTOR_VIEW_TOKEN or PROCTOR_TOKEN.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    show_default=f"the first free one of {PORT} to {PORT + PORTS - 1}",
    help="Port to listen on; 0 for any free one.",
)
@click.option(
    "--controller", metavar="URL", help="Show its workers and the runs that share them too, asked with PROCTOR_TOKEN."
)
@click.option("--no-open", is_flag=True, help="Open no browser; on a terminal one is opened otherwise.")
@click.option("--tls-cert", type=FILE, envvar="PROCTOR_TLS_CERT", show_envvar=True, help="PEM file of a certificate.")
@click.option("--tls-key", type=FILE, envvar="PROCTOR_TLS_KEY", show_envvar=True, help="PEM file of its private key.")
def view(
    run: str | None,
    output: Path,
    store: str | None,
    host: str,
    port: int | None,
    controller: str | None,
    no_open: bool,
    tls_cert: Path | None,
    tls_key: Path | None,
) -> None:
    """Show RUN, or all runs, as web pages, until interrupted. Nothing is written to the runs.

    RUN is a folder, a name, or `latest`. PROCTOR_VIEW_TOKEN opens these pages and nothing else.
    """

    if tls_cert is None and not is_loopback(host):
        click.echo("proctor view: pages and token travel in the clear; give --tls-cert and --tls-key", err=True)

    def announce(address: str) -> None:
        click.echo(address)
        if sys.stdout.isatty() and not no_open:
            webbrowser.open(address)

    with report_usage_errors():
        try:
            tls = ServerTls(cert=tls_cert, key=tls_key)
            serve(_viewed(run, store, output), host, port, tls, announce, controller=controller)
        except (ConfigError, ValueError) as error:
            raise UsageProblem(str(error)) from error


def _viewed(run: str | None, store: str | None, output: Path) -> ViewedRuns:
    """The runs to show. Raises StoreError."""
    if run is None:
        return FolderRuns(output) if store is None else ServerRuns(store)
    if run == "latest" and store is None:
        entries = FolderRuns(output).entries()
        if not entries:
            raise StoreError(f"no runs in {output}; `proctor run PLAN` starts one")
        run = entries[0].run
    found, _ = find_run(run, store, output)
    return OneRun(found.engine.url.render_as_string(hide_password=False), found.run)
