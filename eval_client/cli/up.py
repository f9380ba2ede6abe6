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
from eval_client.filters import narrowed
from eval_client.plan.load import kept_overrides, load_plan
from eval_client.plan.plan import Plan
from eval_client.preflight import PreflightError, check_plan, check_usable
from eval_client.ray.connect import ClusterError, join, namespace_of
from eval_client.run_request import RunRequest, check_shards
from eval_client.store.connection import connect, runs
from eval_client.store.run_folders import checked_name, find_run, new_name, open_store, run_folders

LOOK_S = 0.5

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
    "--shards",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Clients that play the run: this one, and the others on nodes; more than 1 needs PostgreSQL.",
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
    shards: int,
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
        request = _request(plan, output, store, name, limit, overrides)
        check_usable(request.plan)
        check_shards(replace(request, shards=shards))
        join(address, namespace_of(request.folder.name), verbose=verbose)
        from eval_client.ray.placed import on_cluster

        with on_cluster(request, workers, shards - 1, keep, say) as placed:
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
        from eval_client.ray.hosts import take_down

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
    overrides = (*kept_overrides(manifest.overrides), *overrides)
    loaded = _own_controller(path, load_plan(path, overrides, lambda plan: narrowed(plan, manifest.filters)))
    check_plan(manifest, loaded)
    return RunRequest(loaded, str(path.resolve()), found, folder, resume=True, overrides=overrides)


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
