"""`proctor up` and `proctor down`: a run's servers on the machines of a cluster."""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import click

from environments.chat.settings import secret
from eval_client.begin import Refused, check_plan, check_usable
from eval_client.cli.common import (
    UsageProblem,
    checked_name,
    find_run,
    new_name,
    open_store,
    output_option,
    run_folders,
    store_option,
    told,
)
from eval_client.cli.play import play
from eval_client.cli.run import quiet_option, set_option
from eval_client.cluster.connect import ClusterError, join, namespace_of
from eval_client.connection import connect, runs
from eval_client.execute import Order
from eval_client.plan import Plan, load_plan

ray_option = click.option(
    "--ray",
    "address",
    required=True,
    metavar="ADDRESS",
    help="The Ray cluster: HOST:PORT of its head node, or `auto` on a machine that is one of its nodes.",
)
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Show what Ray and the hosts have to say.")


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@ray_option
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    help="Worker hosts for the tasks; one for every node that has what they ask for if absent.",
)
@click.option("--keep", is_flag=True, help="Leave controller and workers up afterwards; `proctor down` removes them.")
@output_option
@store_option
@click.option("--name", help="Name of the run; where there is one of that name already, it is gone on with.")
@click.option("--limit", type=click.IntRange(min=1), help="Play only the first N samples of each task.")
@set_option
@quiet_option
@verbose_option
def up(
    plan: Path,
    address: str,
    workers: int | None,
    keep: bool,
    output: Path,
    store: str | None,
    name: str | None,
    limit: int | None,
    overrides: tuple[str, ...],
    quiet: bool,
    verbose: bool,
) -> None:
    """Play PLAN with its controller and workers placed on the nodes of a Ray cluster.

    They are started again elsewhere when their node dies. Turns go over HTTP straight to the workers, never through
    Ray. What an earlier `proctor up` of the same run has left is replaced.
    """

    def say(line: str) -> None:
        if not quiet:
            click.echo(line, err=True)

    with _told():
        order = _order(plan, output, store, name, limit, overrides)
        check_usable(order.plan)
        token = _token(order.plan)
        join(address, namespace_of(order.folder.name), verbose=verbose)
        with _servers(order, token, workers, say, keep) as controller:
            play(replace(order, plan=order.plan.model_copy(update={"controller": controller})), quiet=quiet)


@click.command()
@click.argument("run", metavar="RUN")
@ray_option
@verbose_option
def down(run: str, address: str, verbose: bool) -> None:
    """Remove from a Ray cluster what `proctor up` has left there for RUN: with --keep, or killed before its end."""
    with _told():
        name = Path(run).name
        join(address, namespace_of(name), verbose=verbose)
        from eval_client.cluster.hosts import take_down

        click.echo(f"{take_down(namespace_of(name))} hosts of {name} removed")


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Turn mistakes the user can mend into one message."""
    try:
        with told():
            yield
    except (ClusterError, Refused) as error:
        raise UsageProblem(str(error)) from error


def _order(
    path: Path, output: Path, store: str | None, name: str | None, limit: int | None, overrides: tuple[str, ...]
) -> Order:
    """A new run of the plan, or what a run of that name still owes."""
    loaded = _own_controller(path, load_plan(path, overrides))
    folder = output / checked_name(name or new_name(loaded.name))
    if not _exists(folder, store):
        opened = open_store(store, folder)
        return Order(loaded, str(path.resolve()), opened, folder, resume=False, overrides=overrides, limit=limit)
    found, folder = find_run(folder.name, store, output)
    manifest = found.manifest()
    overrides = (*manifest.overrides, *overrides)
    loaded = _own_controller(path, load_plan(path, overrides))
    check_plan(manifest, loaded)
    return Order(loaded, str(path.resolve()), found, folder, resume=True, overrides=overrides)


def _exists(folder: Path, store: str | None) -> bool:
    if store is None:
        return folder in run_folders(folder.parent)
    return folder.name in {run for run, _, _ in runs(connect(store))}


def _own_controller(path: Path, plan: Plan) -> Plan:
    if plan.controller != "local":
        raise UsageProblem(f"{path}: controller: leave it out; `proctor up` brings one up, `proctor run` uses yours")
    return plan


def _token(plan: Plan) -> str:
    """The token of the run's servers: the one that is set here, or a new one, then left in the environment for us."""
    given = secret(plan.token_env)
    if given is None:
        os.environ[plan.token_env] = secrets.token_hex(16)
    return given.get_secret_value() if given is not None else os.environ[plan.token_env]


@contextlib.contextmanager
def _servers(order: Order, token: str, workers: int | None, say: Callable[[str], None], keep: bool) -> Iterator[str]:
    """Controller and workers on the cluster while inside; the address that leads to the controller."""
    from eval_client.cluster.hosts import controller_address, take_down
    from eval_client.cluster.servers import bring_up

    namespace = namespace_of(order.folder.name)
    if replaced := take_down(namespace):
        say(f"{replaced} hosts of an earlier `proctor up` removed")
    try:
        bring_up(order.plan, token, workers, say)
        with controller_address(namespace) as url:
            yield url
    finally:
        if not keep:
            take_down(namespace)
