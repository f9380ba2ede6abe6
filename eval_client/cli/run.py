"""`proctor run` and `proctor resume`."""

import os
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from eval_client.cli.common import (
    fail_on_error_option,
    in_process_option,
    limit_option,
    output_option,
    part_option,
    plan_at_hand_options,
    quiet_option,
    report_usage_errors,
    run_argument,
    set_option,
    store_option,
)
from eval_client.cli.main import say_step
from eval_client.cli.plans.chosen_plan import (
    ChosenPlan,
    PlanOptions,
    chosen_plan,
    filter_options,
    plan_options,
    print_next_steps,
    print_problems,
    with_fallbacks,
)
from eval_client.cli.play import error_console, metrics_option, play, show_result
from eval_client.cli.usage import FILE, UsageProblem
from eval_client.core.progress import ErrorLimit, RunResult
from eval_client.core.selection import Again, Filters, FinishedRow, chosen_again
from eval_client.own_runs import plan_at_hand
from eval_client.plan.load import with_tags
from eval_client.run.preflight import PartAsked, PreflightError, check_plan
from eval_client.run.request import RunRequest
from eval_client.store.records import part_name
from eval_client.store.runs import checked_name, find_run, new_name, open_store
from eval_client.store.store import Store
from proctor.tables.table import counted


@click.command()
@click.argument("plan", required=False, type=FILE)
@plan_options
@output_option
@store_option
@click.option("--name", help="Name of the run and its folder. Default: made from the plan's name and the time.")
@click.option(
    "--continue",
    "either",
    is_flag=True,
    help="If the run NAME exists, resume it once no other client plays it; if it is over, show its report. "
    "For clients that an orchestrator starts and restarts.",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word to find the run by: proctor ls --tag TAG.")
@filter_options
@limit_option
@set_option
@part_option
@fail_on_error_option
@in_process_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print trials, calls, tokens and money, estimated, and the largest number of calls; run nothing.",
)
@metrics_option
@quiet_option
@click.option("--with-stdin", is_flag=True, hidden=True, help="Kill this process when standard input closes.")
def run(
    plan: Path | None,
    asked: PlanOptions,
    output: Path,
    store: str | None,
    name: str | None,
    either: bool,
    tags: tuple[str, ...],
    filters: Filters,
    limit: int | None,
    overrides: tuple[str, ...],
    part: tuple[int, int] | None,
    fail_on_error: ErrorLimit | None,
    in_process: bool,
    dry_run: bool,
    metrics: socket.socket | None,
    quiet: bool,
    with_stdin: bool,
) -> None:
    """Play PLAN: every agent on every task assigned to it, recorded turn by turn.

    Without PLAN, models and environments are named here; the plan that this makes is kept in the run's folder:

        proctor run -m gpt-4.1-mini -e db -e kg --limit 20

    With --part K/N, several machines play PLAN: each a fixed part of the samples, as a run of its own, NAME.KofN. Each
    is resumed by itself; `proctor report NAME` reads all as one run.
    """
    if with_stdin:
        from proctor.http.server import when_stdin_ends  # uvicorn is loaded only here

        when_stdin_ends(lambda _: os.kill(os.getpid(), signal.SIGKILL))
    for option, given in (("--continue", either), ("--part", part is not None)):
        if given and name is None:
            raise UsageProblem(f"{option}: needs the name of the run: --name NAME")
    say_step(f"reading {plan or 'data'}, checking this machine")
    with report_usage_errors():
        chosen = chosen_plan(plan, asked, overrides, filters)
        if chosen.path is not None and not (either or part):  # what several machines play must be the same
            chosen = with_fallbacks(chosen, chosen.path)
        chosen = chosen._replace(plan=with_tags(chosen.plan, tags))
        print_problems(chosen.plan, output, store, quiet=quiet)
        if dry_run:
            _print_preview(chosen, limit)
            return
        _check_samples(chosen, limit)
        whole = None if part is None else PartAsked(checked_name(str(name)), *part)
        request = _new_run(chosen, output, store, name, limit, whole, quiet=quiet)
        request = replace(request, either=either, fail_on_error=fail_on_error, in_process=in_process)
        over = either and request.store.is_over()
        if over:
            _checked_plan(request)
    if over:
        sys.exit(show_result(request, RunResult(None, {}), error_console()))
    play(request, quiet=quiet, metrics=metrics)


@click.command()
@run_argument
@output_option
@store_option
@click.option(
    "--retry",
    "selections",
    multiple=True,
    metavar="SELECTION",
    help="Play these trials again and no others: a trial's number or AGENT@TASK/SAMPLE, sample=PATTERN, or cause=TEXT.",
)
@click.option("--dry-run", is_flag=True, help="With --retry: print which trials would be played again; play none.")
@plan_at_hand_options
@set_option
@fail_on_error_option
@in_process_option
@metrics_option
@quiet_option
def resume(
    run: str,
    output: Path,
    store: str | None,
    selections: tuple[str, ...],
    dry_run: bool,
    plan_path: Path | None,
    trust_stored_plan: bool,
    overrides: tuple[str, ...],
    fail_on_error: ErrorLimit | None,
    in_process: bool,
    metrics: socket.socket | None,
    quiet: bool,
) -> None:
    """Resume RUN (a folder, a name, or `latest`, the default) where it stopped; no model call is paid for twice.

    Trials with a score are kept; unscored and unfinished trials are played. The plan's file, if it still exists, must
    agree with the run in everything that shapes a trial; concurrency, prices and limits of the run may change. Earlier
    `--set` options still apply. A run that was not started by you on this machine needs its plan: --plan FILE.

    With --retry, chosen trials alone are played again. One with a score is played anew, and its model calls are paid
    once more; the earlier result stays as an attempt, and the report says how many there are. One without a score goes
    on from its last turn. Selections of several kinds narrow the choice together; those of one kind widen it.
    """
    if dry_run and not selections:
        raise UsageProblem("--dry-run: name what to play again by --retry")
    with report_usage_errors():
        resumed = _resumed(run, output, store, plan_path, overrides, trust_stored_plan)
        resumed = replace(resumed, fail_on_error=fail_on_error, in_process=in_process)
        chosen = chosen_again(lambda: _finished_rows(resumed.store), Again.of(selections)) if selections else []
    for row in chosen if dry_run else ():
        click.echo(f"{row.id}: {row.agent}@{row.task}/{row.sample}: {row.cause or row.reason or 'not over yet'}")
    scored = sum(row.reason is not None and row.cause is None for row in chosen)
    told = f"to play again: {counted(len(chosen), 'trial')}, {scored} with a score, which stays as an attempt"
    if dry_run:
        click.echo(told, err=True)
    elif selections:
        again = replace(resumed, again=frozenset(row.id for row in chosen))
        play(again, quiet=quiet, metrics=metrics, begins=told)
    else:
        play(resumed, quiet=quiet, metrics=metrics)


def _print_preview(chosen: ChosenPlan, limit: int | None) -> None:
    from eval_client.plan.preview import preview

    click.echo(preview(chosen.plan, limit, chosen.filters))


def _check_samples(chosen: ChosenPlan, limit: int | None) -> None:
    """Raises SelectionError for patterns that choose no sample, before a server starts."""
    if chosen.filters.samples or chosen.filters.exclude:
        from eval_client.plan.preview import planned_tasks

        planned_tasks(chosen.plan, limit, chosen.filters)


def _new_run(
    chosen: ChosenPlan,
    output: Path,
    store: str | None,
    name: str | None,
    limit: int | None,
    part: PartAsked | None,
    *,
    quiet: bool,
) -> RunRequest:
    """The request for a new run; a plan that was made from options is written to the run's folder."""
    named = part_name(*part) if part is not None else name or new_name(chosen.plan.name)
    folder = output / checked_name(named)
    path = chosen.keep(folder)
    if chosen.path is None and not quiet:
        print_next_steps(path, folder, chosen.overrides, limit)
    return RunRequest(
        chosen.plan,
        str(path.resolve()),
        open_store(store, folder),
        folder,
        resume=False,
        overrides=chosen.overrides,
        limit=limit,
        filters=chosen.filters,
        part=part,
    )


def _finished_rows(store: Store) -> Iterator[FinishedRow]:
    return (FinishedRow.model_validate(row) for row in store.trial_rows(*FinishedRow.model_fields))


def _resumed(
    run: str, output: Path, store: str | None, plan_path: Path | None, overrides: tuple[str, ...], trust: bool
) -> RunRequest:
    """The request to resume a run. Raises UsageProblem, FileError, StoreError, SelectionError."""
    found, folder = find_run(run, store, output)
    at_hand = plan_at_hand(found.run, folder, found.manifest(), plan_path, overrides, trust_stored=trust)
    for note in at_hand.notes:
        click.echo(note, err=True)
    request = RunRequest(at_hand.plan, at_hand.path, found, folder, resume=True, overrides=at_hand.overrides)
    _checked_plan(request)
    return request


def _checked_plan(request: RunRequest) -> None:
    try:
        check_plan(request.store.manifest(), request.plan)
    except PreflightError as refused:
        raise UsageProblem(str(refused)) from refused
