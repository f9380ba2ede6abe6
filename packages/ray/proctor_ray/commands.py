"""`proctor up` and `proctor down`: a run's servers on the nodes of a Ray cluster."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from eval_client.cli.common import (
    limit_option,
    output_option,
    quiet_option,
    report_usage_errors,
    set_option,
    store_option,
)
from eval_client.cli.play import metrics_option, play
from eval_client.cli.usage import FILE, UsageProblem
from eval_client.own_runs import plan_at_hand
from eval_client.plan.load import load_plan
from eval_client.plan.plan import Plan
from eval_client.run.preflight import PartAsked, PreflightError, check_plan, check_usable
from eval_client.run.request import RunRequest
from eval_client.store.connection import connect, runs
from eval_client.store.records import part_name
from eval_client.store.runs import checked_name, find_run, new_name, open_store, run_folders
from proctor_ray.connect import ClusterError, join, namespace_of

ray_option = click.option(
    "--ray",
    "address",
    required=True,
    metavar="ADDRESS",
    help="The Ray cluster: HOST:PORT of its head node, or `auto` on a machine that is one of its nodes.",
)
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show the logs of Ray and of the hosts.")


@click.command()
@click.argument("plan", type=FILE)
@ray_option
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Worker hosts for each group of tasks that share workers. Default: one for every node with the resources that "
    "they ask for.",
)
@click.option(
    "--parts",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Play the plan in N parts, runs of their own: the first one here, the others on nodes; more than 1 needs a "
    "database server (--store) and --name.",
)
@click.option(
    "--keep", is_flag=True, help="Keep controller and workers running afterwards; `proctor down` removes them."
)
@output_option
@store_option
@click.option("--name", help="Name of the run; an existing run of that name is resumed.")
@limit_option
@set_option
@metrics_option
@quiet_option
@verbose_option
def up(
    plan: Path,
    address: str,
    workers: int | None,
    parts: int,
    keep: bool,
    output: Path,
    store: str | None,
    name: str | None,
    limit: int | None,
    overrides: tuple[str, ...],
    metrics: socket.socket | None,
    quiet: bool,
    verbose: bool,
) -> None:
    """Play PLAN with its controller and workers placed on the nodes of a Ray cluster.

    Ray restarts them on other nodes when their node dies. Turns go over HTTP directly to the workers, never through
    Ray. Servers and clients left by an earlier `proctor up` of the same run are replaced.
    """

    def say(line: str) -> None:
        if not quiet:
            click.echo(line, err=True)

    with _report_errors():
        if parts > 1 and (name is None or store is None):
            raise UsageProblem("--parts: needs --name NAME, and --store URL of a database server that all nodes reach")
        part = PartAsked(str(name), 1, parts) if parts > 1 else None
        request = replace(
            _request(plan, output, store, part_name(*part) if part else name, limit, overrides), part=part
        )
        check_usable(request.plan)
        namespace = namespace_of(request.folder.name if part is None else part.plan)
        join(address, namespace, verbose=verbose)
        from proctor_ray.servers import on_cluster

        with on_cluster(request, namespace, workers, keep, say) as placed:
            play(placed, quiet=quiet, metrics=metrics)


@click.command()
@click.argument("run", metavar="RUN")
@ray_option
@verbose_option
def down(run: str, address: str, verbose: bool) -> None:
    """Remove from a Ray cluster the servers and clients that `proctor up` left for RUN: with --keep, or when killed."""
    with _report_errors():
        name = Path(run).name
        join(address, namespace_of(name), verbose=verbose)
        from proctor_ray.hosts import take_down

        click.echo(f"{take_down(namespace_of(name))} hosts of {name} removed")


@contextlib.contextmanager
def _report_errors() -> Iterator[None]:
    """`report_usage_errors`, for errors of the cluster and of the preflight too."""
    try:
        with report_usage_errors():
            yield
    except (ClusterError, PreflightError) as error:
        raise UsageProblem(str(error)) from error


def _request(
    path: Path, output: Path, store: str | None, name: str | None, limit: int | None, overrides: tuple[str, ...]
) -> RunRequest:
    """The request for a new run of the plan, or for a resume of the run of that name."""
    loaded = _own_controller(path, load_plan(path, overrides))
    folder = output / checked_name(name or new_name(loaded.name))
    if not _exists(folder, store):
        opened = open_store(store, folder)
        return RunRequest(loaded, str(path.resolve()), opened, folder, resume=False, overrides=overrides, limit=limit)
    found, folder = find_run(folder.name, store, output)
    manifest = found.manifest()
    at_hand = plan_at_hand(found.run, folder, manifest, path, overrides)
    loaded = _own_controller(path, at_hand.plan)
    check_plan(manifest, loaded)
    return RunRequest(loaded, str(path.resolve()), found, folder, resume=True, overrides=at_hand.overrides)


def _exists(folder: Path, store: str | None) -> bool:
    if store is None:
        return folder in run_folders(folder.parent)
    return folder.name in {run for run, _, _ in runs(connect(store))}


def _own_controller(path: Path, plan: Plan) -> Plan:
    if plan.controller != "local":
        raise UsageProblem(
            f"{path}: controller: leave it out; `proctor up` starts a controller, `proctor run` uses yours"
        )
    return plan
