"""`proctor run` and `proctor resume`."""

import asyncio
import contextlib
import functools
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import click
from rich.console import Console

from environments import loop as event_loop
from eval_client.cli.common import (
    UsageProblem,
    find_run,
    new_name,
    open_store,
    output_option,
    store_option,
    told,
)
from eval_client.execute import Order, Refused, Scene, check_plan, execute
from eval_client.journal import Fenced
from eval_client.local import LocalServerError
from eval_client.plan import Plan, load_plan, with_overrides
from eval_client.preview import preview
from eval_client.render import report_console, show
from eval_client.report import report
from eval_client.runner import Ended
from eval_client.screen import screen
from task_server.errors import TaskServerError

set_option = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Override a field of the plan, for example limits.run.money=5 or agents.gpt.concurrency=4.",
)
quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only the report and errors.")
INTERRUPTED = 130


@click.command()
@click.argument("plan", type=click.Path(dir_okay=False, path_type=Path))
@output_option
@store_option
@click.option("--name", help="Name of the run and its folder; made from the plan's name and the time if absent.")
@click.option("--limit", type=click.IntRange(min=1), help="Play only the first N samples of each task.")
@set_option
@click.option("--dry-run", is_flag=True, help="Say what would run and how many calls it makes at most; run nothing.")
@quiet_option
def run(
    plan: Path,
    output: Path,
    store: str | None,
    name: str | None,
    limit: int | None,
    overrides: tuple[str, ...],
    dry_run: bool,
    quiet: bool,
) -> None:
    """Play PLAN: agents by tasks, recorded turn by turn."""
    with told():
        loaded = load_plan(plan, overrides)
        if dry_run:
            click.echo(preview(loaded, limit))
            return
        folder = output / (name or new_name(loaded.name))
        order = Order(loaded, str(plan.resolve()), open_store(store, folder), folder, resume=False, limit=limit)
    play(order, quiet=quiet)


@click.command()
@click.argument("run", metavar="RUN", default="latest")
@output_option
@store_option
@click.option(
    "--plan",
    "plan_path",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The plan, where it has moved; it must agree with the run in everything that shapes a trial.",
)
@set_option
@quiet_option
def resume(
    run: str, output: Path, store: str | None, plan_path: Path | None, overrides: tuple[str, ...], quiet: bool
) -> None:
    """Go on with RUN (a folder, a name, or `latest`) where it stopped, paying for nothing twice.

    Trials with a score are left alone; unscored and unfinished ones are played. The plan's file, where it still stands,
    must agree with the run in everything that shapes a trial; concurrency, prices and limits of the run may change.
    """
    with told():
        found, folder = find_run(run, store, output)
        manifest = found.manifest()
        path = plan_path or Path(manifest.plan_path)
        if plan_path is not None or path.is_file():
            plan = load_plan(path, overrides)
        else:
            plan = with_overrides(Plan.model_validate(manifest.plan), overrides)
        try:
            check_plan(manifest, plan)
        except Refused as refused:
            raise UsageProblem(str(refused)) from refused
    play(Order(plan, str(path), found, folder, resume=True), quiet=quiet)


def play(order: Order, *, quiet: bool) -> None:
    """Execute, report, and exit with the code that tells how it ended."""
    errors = Console(stderr=True)
    try:
        with told():
            ended = event_loop.run(execute(order, functools.partial(_watched, errors=errors, quiet=quiet)))
    except (Refused, LocalServerError, TaskServerError, Fenced) as error:
        raise UsageProblem(str(error)) from error
    console = report_console()
    result = report(order.store)
    show(result, console, full=False)
    sys.exit(_exit_code(order, ended, errors, all(pair.scored == pair.planned for pair in result.pairs)))


def _exit_code(order: Order, ended: Ended, errors: Console, all_scored: bool) -> int:
    for agent, why in ended.refused.items():
        errors.print(f"agent {agent}: its endpoint refuses every request: {why}", style="red", markup=False)
    if ended.stopped is not None:
        errors.print(f"stopped: {ended.stopped}", markup=False)
    if not all_scored:
        errors.print(f"resume with: proctor resume {order.folder}", markup=False, soft_wrap=True)
    else:
        errors.print(f"run: {order.folder}", markup=False, soft_wrap=True)
    if ended.refused:
        return 2
    if ended.stopped == STOPPED_BY_USER:
        return INTERRUPTED
    return 0 if all_scored else 1


STOPPED_BY_USER = "interrupted"


@contextlib.contextmanager
def _watched(scene: Scene, *, errors: Console, quiet: bool) -> Iterator[None]:
    """The screen, and Ctrl-C: once drains, twice stops at once."""
    loop = asyncio.get_running_loop()
    presses = 0

    def pressed() -> None:
        nonlocal presses
        presses += 1
        if presses == 1:
            errors.print("\ndraining: trials under way are played to their end; Ctrl-C again stops at once")
            scene.runner.drain(STOPPED_BY_USER)
        else:
            scene.runner.abandon(STOPPED_BY_USER)

    signals = (signal.SIGINT, signal.SIGTERM)
    for number in signals:
        loop.add_signal_handler(number, pressed)
    try:
        with screen(scene, errors, quiet):
            yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
