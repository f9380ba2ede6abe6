"""`proctor run`, `proctor resume` and `proctor retry`."""

import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from eval_client.cli.common import (
    fail_on_error_option,
    limit_option,
    output_option,
    quiet_option,
    report_usage_errors,
    run_argument,
    set_option,
    shards_option,
    store_option,
)
from eval_client.cli.plans.before_start import print_problems
from eval_client.cli.plans.chosen import filter_options
from eval_client.cli.plans.fallback import with_fallbacks
from eval_client.cli.plans.quick import ChosenPlan, chosen_plan, model_options, print_next_steps
from eval_client.cli.play import error_console, metrics_option, play, show_result
from eval_client.cli.usage import FILE, UsageProblem
from eval_client.core.again import Again, FinishedRow, chosen_again
from eval_client.core.error_limit import ErrorLimit
from eval_client.core.progress import RunResult
from eval_client.core.selection import Filters
from eval_client.filters import narrowed
from eval_client.plan.load import kept_overrides, load_plan, recorded_plan, with_overrides, with_tags
from eval_client.preflight import PreflightError, check_plan
from eval_client.run_request import RunRequest
from eval_client.steps import say_step
from eval_client.store.run_folders import checked_name, find_run, new_name, open_store
from eval_client.store.store import Store


@click.command()
@click.argument("plan", required=False, type=FILE)
@model_options
@output_option
@store_option
@click.option("--name", help="Name of the run and its folder. Default: made from the plan's name and the time.")
@click.option(
    "--continue",
    "either",
    is_flag=True,
    help="If the run NAME exists, join its clients or, if it has none, resume it; if it is over, show its report. "
    "For clients that an orchestrator starts and restarts.",
)
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A word to find the run by: proctor ls --tag TAG.")
@filter_options
@limit_option
@click.option("--epochs", type=click.IntRange(1, 1000), help="How often each agent plays each sample.")
@set_option
@shards_option
@fail_on_error_option
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print trials, calls, tokens and money, estimated, and the largest number of calls; run nothing.",
)
@metrics_option
@quiet_option
def run(
    plan: Path | None,
    models: tuple[str, ...],
    environments: tuple[str, ...],
    base_urls: tuple[str, ...],
    output: Path,
    store: str | None,
    name: str | None,
    either: bool,
    tags: tuple[str, ...],
    filters: Filters,
    limit: int | None,
    epochs: int | None,
    overrides: tuple[str, ...],
    shards: int,
    fail_on_error: ErrorLimit | None,
    dry_run: bool,
    metrics: socket.socket | None,
    quiet: bool,
) -> None:
    """Play PLAN: every agent on every task assigned to it, recorded turn by turn.

    Without PLAN, models and environments are named here; the plan that this makes is kept in the run's folder:

        proctor run -m gpt-4.1-mini -e db -e kg --limit 20
    """
    if either and name is None:
        raise UsageProblem("--continue: needs the name of the run: --name NAME")
    say_step(f"reading {plan or 'data'}, checking this machine")
    with report_usage_errors():
        if plan is not None and epochs is not None:
            overrides = (*overrides, f"epochs={epochs}")
        chosen = chosen_plan(plan, models, environments, base_urls, epochs, overrides, filters)
        if chosen.path is not None and not either:  # clients that an orchestrator starts must all play the same
            chosen, overrides = with_fallbacks(chosen, chosen.path, overrides)
        chosen = chosen._replace(plan=with_tags(chosen.plan, tags))
        print_problems(chosen.plan, output, store, quiet=quiet)
        if dry_run:
            _print_preview(chosen, limit)
            return
        _check_samples(chosen, limit)
        request = _new_run(chosen, output, store, name, overrides, limit, quiet=quiet)
        request = replace(request, either=either, shards=shards, fail_on_error=fail_on_error)
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
    "--plan",
    "plan_path",
    type=FILE,
    help="The plan's file, if it has moved; it must agree with the run in everything that shapes a trial.",
)
@set_option
@shards_option
@fail_on_error_option
@metrics_option
@quiet_option
def resume(
    run: str,
    output: Path,
    store: str | None,
    plan_path: Path | None,
    overrides: tuple[str, ...],
    shards: int,
    fail_on_error: ErrorLimit | None,
    metrics: socket.socket | None,
    quiet: bool,
) -> None:
    """Resume RUN (a folder, a name, or `latest`, the default) where it stopped; no model call is paid for twice.

    Trials with a score are kept; unscored and unfinished trials are played. The plan's file, if it still exists, must
    agree with the run in everything that shapes a trial; concurrency, prices and limits of the run may change. Earlier
    `--set` options still apply.
    """
    with report_usage_errors():
        resumed = _resumed(run, output, store, plan_path, overrides)
        request = replace(resumed, shards=shards, fail_on_error=fail_on_error)
    play(request, quiet=quiet, metrics=metrics)


@click.command()
@run_argument
@click.option("--trial", "trials", multiple=True, metavar="ID", help="A trial: its number, or AGENT@TASK/SAMPLE.")
@click.option("--cause", "causes", multiple=True, metavar="TEXT", help="Trials without a score whose cause has TEXT.")
@click.option(
    "--sample", "samples", multiple=True, metavar="ID", help="Trials of these samples: ID or TASK/ID, or patterns."
)
@output_option
@store_option
@set_option
@click.option("--dry-run", is_flag=True, help="Print which trials would be played again; play none.")
@metrics_option
@quiet_option
def retry(
    run: str,
    trials: tuple[str, ...],
    causes: tuple[str, ...],
    samples: tuple[str, ...],
    output: Path,
    store: str | None,
    overrides: tuple[str, ...],
    dry_run: bool,
    metrics: socket.socket | None,
    quiet: bool,
) -> None:
    """Play chosen trials of RUN again (a folder, a name, or `latest`, the default), and no others.

    A trial with a score is played anew, and its model calls are paid once more; the earlier result stays as an attempt,
    and the report says how many there are. A trial without a score goes on from its last turn, as in a resume. Options
    of several kinds narrow the choice together; each may be given several times.
    """
    if not (trials or causes or samples):
        raise UsageProblem(
            "name what to play again by --trial, --cause or --sample; `proctor resume` plays all trials without a score"
        )
    with report_usage_errors():
        request = _resumed(run, output, store, None, overrides)
        asked = Again(trials=trials, causes=causes, samples=samples)
        chosen = chosen_again(lambda: _finished_rows(request.store), asked)
    if dry_run:
        for row in chosen:
            click.echo(f"{row.id}: {row.agent}@{row.task}/{row.sample}: {row.cause or row.reason or 'not over yet'}")
    scored = sum(row.reason is not None and row.cause is None for row in chosen)
    kept = "which stays as an attempt"
    click.echo(f"{len(chosen)} trials are played again; {scored} of them have a score, {kept}", err=True)
    if not dry_run:
        again = frozenset(row.id for row in chosen)
        play(replace(request, again=again), quiet=quiet, metrics=metrics)


def _print_preview(chosen: ChosenPlan, limit: int | None) -> None:
    from eval_client.report.preview import preview

    click.echo(preview(chosen.plan, limit, chosen.filters))


def _check_samples(chosen: ChosenPlan, limit: int | None) -> None:
    """Raises SelectionError for patterns that choose no sample, before a server starts."""
    if chosen.filters.samples or chosen.filters.exclude:
        from eval_client.report.preview import planned_tasks

        planned_tasks(chosen.plan, limit, chosen.filters)


def _new_run(
    chosen: ChosenPlan,
    output: Path,
    store: str | None,
    name: str | None,
    overrides: tuple[str, ...],
    limit: int | None,
    *,
    quiet: bool,
) -> RunRequest:
    """The request for a new run; a plan that was made from options is written to the run's folder."""
    folder = output / checked_name(name or new_name(chosen.plan.name))
    path = chosen.keep(folder)
    if chosen.path is None and not quiet:
        print_next_steps(path, folder, overrides, limit)
    return RunRequest(
        chosen.plan,
        str(path.resolve()),
        open_store(store, folder),
        folder,
        resume=False,
        overrides=overrides,
        limit=limit,
        filters=chosen.filters,
    )


def _finished_rows(store: Store) -> Iterator[FinishedRow]:
    return (FinishedRow.model_validate(row) for row in store.trial_rows(*FinishedRow.model_fields))


def _resumed(
    run: str, output: Path, store: str | None, plan_path: Path | None, overrides: tuple[str, ...]
) -> RunRequest:
    """The request to resume a run. Raises UsageProblem, FileError, StoreError, SelectionError."""
    found, folder = find_run(run, store, output)
    manifest = found.manifest()
    path = plan_path or Path(manifest.plan_path)
    overrides = (*kept_overrides(manifest.overrides), *overrides)
    if plan_path is not None or path.is_file():
        plan = load_plan(path, overrides, lambda plan: narrowed(plan, manifest.filters))
    else:
        plan = with_overrides(recorded_plan(manifest.plan), overrides)
    request = RunRequest(plan, str(path), found, folder, resume=True, overrides=overrides)
    _checked_plan(request)
    return request


def _checked_plan(request: RunRequest) -> None:
    try:
        check_plan(request.store.manifest(), request.plan)
    except PreflightError as refused:
        raise UsageProblem(str(refused)) from refused
