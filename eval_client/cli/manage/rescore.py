"""`proctor rescore`."""

import asyncio
import contextlib
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
from pydantic import JsonValue

from eval_client.cli.common import (
    output_option,
    plan_at_hand_options,
    quiet_option,
    report_usage_errors,
    run_argument,
    set_option,
    store_option,
)
from eval_client.cli.play import INTERRUPTED, error_console
from eval_client.cli.usage import UsageProblem
from eval_client.own_runs import plan_at_hand
from eval_client.plan.load import with_overrides
from eval_client.report.rescore import AnswersNotBought, RescoreRequest, check_overrides
from eval_client.report.rescore import rescore as score_again
from eval_client.run.preflight import PreflightError, check_identity
from eval_client.store.lock import is_worked_on, sole_client
from eval_client.store.runs import checked_name, find_run, new_name, open_store, remove_run
from eval_client.store.store import Store


@click.command()
@run_argument
@output_option
@store_option
@plan_at_hand_options
@set_option
@click.option("--name", help="Name of the new run and its folder. Default: made from the plan's name and the time.")
@click.option("--pay-judges", is_flag=True, help="Buy the answers of judges, hosts and users that RUN does not have.")
@quiet_option
def rescore(
    run: str,
    output: Path,
    store: str | None,
    plan_path: Path | None,
    trust_stored_plan: bool,
    overrides: tuple[str, ...],
    name: str | None,
    pay_judges: bool,
    quiet: bool,
) -> None:
    """Score the answers of RUN (a folder, a name, or `latest`, the default) again; no agent is asked.

    The journalled answers are replayed in this process through the tasks, with the parameters and data that --set
    changes. The result is a run of its own, which names RUN as its parent; RUN is left as it is. Kept answers of judges
    are used. If others are needed, they are counted, and nothing is written unless --pay-judges allows to buy them.

    A trial is left unscored, with its cause, where a turn shows something else than it did to the agent, or where the
    session goes on after its last answer. Exit codes: 0 all scored, 1 unscored trials, 2 not possible.

    Example: `proctor rescore latest --set tasks.db.parameters.profile=strict`
    """
    errors = error_console()
    with report_usage_errors():
        source, at = find_run(run, store, output)
        manifest = source.manifest()
        if is_worked_on(source):
            raise UsageProblem(f"run {source.run!r} is being played; wait for its end, or: proctor stop {source.run}")
        at_hand = plan_at_hand(source.run, at, manifest, plan_path, (), trust_stored=trust_stored_plan)
        before = at_hand.plan
        plan = with_overrides(before, overrides)
        folder = output / checked_name(name or new_name(f"{plan.name[:30]}-rescored"))
        with sole_client(source), _new_store(store, folder) as target:
            try:
                check_identity(manifest, before)
                check_overrides(before, plan)
                request = RescoreRequest(source, target, plan, (*at_hand.overrides, *overrides), pay_judges)
                asyncio.run(score_again(request, _say, _ignore if quiet else _say))
            except AnswersNotBought as needed:
                raise UsageProblem(f"{needed}; --pay-judges buys them. Nothing was written") from needed
            except PreflightError as error:
                raise UsageProblem(str(error)) from error
    _print_result(source, target, quiet)
    errors.print(f"run: {folder}, re-scored from {source.run}", soft_wrap=True)
    sys.exit(0 if all(pair.complete for pair in target.pair_totals()) else 1)


def _say(text: str) -> None:
    click.echo(text, err=True)


def _ignore(_progress: str) -> None:
    """With --quiet, progress is not shown."""


@contextlib.contextmanager
def _new_store(store: str | None, folder: Path) -> Iterator[Store]:
    """The store of a new run, which is removed again if what is done inside fails."""
    if store is None and folder.exists():
        raise UsageProblem(f"{folder} exists already; choose another --name")
    target = open_store(store, folder)
    if target.exists():
        raise UsageProblem(f"run {target.run!r} exists already; choose another --name")
    try:
        yield target
    except BaseException as error:
        if target.exists():
            remove_run(target, folder)
        elif store is None:
            target.engine.dispose()
            shutil.rmtree(folder)
        if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
            click.echo("stopped; nothing was written", err=True)
            sys.exit(INTERRUPTED)
        raise


def _print_result(source: Store, target: Store, quiet: bool) -> None:
    """Print the report of the new run, and how many scores of each pair changed."""
    from eval_client.report.report import report
    from eval_client.report.run_tables import report_tables
    from proctor.tables.command import print_tables

    print_tables(report_tables([report(target)], full=False), "text")
    if quiet:
        return
    changed, added = Counter[tuple[JsonValue, JsonValue]](), Counter[tuple[JsonValue, JsonValue]]()
    for old, new in zip(source.trial_rows("score"), target.trial_rows("agent", "task", "score"), strict=True):
        if new["score"] is not None and old["score"] != new["score"]:
            (added if old["score"] is None else changed)[new["agent"], new["task"]] += 1
    for pair in target.pair_totals():
        name = pair.agent, pair.task
        text = f"{changed[name]} scores changed, {added[name]} are new, {pair.unscored} unscored"
        click.echo(f"{pair.agent} x {pair.task}: {text}", err=True)
