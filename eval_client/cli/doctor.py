"""`proctor doctor`."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import click
import sqlalchemy as sa

from eval_client.cli.common import output_option, report_usage_errors, set_option, store_option
from eval_client.cli.usage import FILE
from eval_client.doctor.finding import Finding, Status, fail, ok
from eval_client.doctor.machine_checks import Options, machine_checks
from eval_client.doctor.plan_checks import PlanChecks
from eval_client.doctor.resumed import store_check
from eval_client.doctor.run_checks import findings
from eval_client.plan.load import read_plan
from eval_client.store.connection import StoreError, connect, sqlite_url
from eval_client.store.run_folders import find_run, run_folders
from eval_client.store.store import Store
from proctor import event_loop
from proctor.config.yaml import FileError
from proctor.http.client import http_client

COLOURS = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "red", Status.SKIP: "bright_black"}
CLOSING_S = 60.0
"""How long to wait for environments to shut down that started too late to be reported."""


@click.command()
@click.argument("plan", required=False, type=FILE)
@click.option(
    "--run",
    "run",
    metavar="RUN",
    help="The run whose store is checked; with PLAN, the run to resume. Default with PLAN and without --store: the "
    "latest unfinished run of PLAN.",
)
@set_option
@output_option
@store_option
@click.option(
    "--no-calls", is_flag=True, help="Send no completion to a model; ask endpoints only for their list of models."
)
@click.option(
    "--patience",
    default=8.0,
    show_default=True,
    type=click.FloatRange(min=1),
    help="Seconds to wait for each answer.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def doctor(
    plan: Path | None,
    run: str | None,
    overrides: tuple[str, ...],
    output: Path,
    store: str | None,
    no_calls: bool,
    patience: float,
    as_json: bool,
) -> None:
    """Check this machine, or everything that PLAN needs, for problems, and print a fix for each.

    With PLAN every agent's model gets one small request, which is paid for, and two more if it plays a task by function
    calls; --no-calls skips these requests.
    Exit codes: 0 no check fails, 1 a check fails, 2 usage error.
    """
    options = Options(output, store, patience, not no_calls, run)
    with report_usage_errors():
        found = event_loop.run(_examine(plan, overrides, options, as_json))
    sys.exit(1 if any(each.status is Status.FAIL for each in found) else 0)


async def _examine(path: Path | None, overrides: tuple[str, ...], options: Options, as_json: bool) -> list[Finding]:
    found, closing = [], set[asyncio.Task[None]]()
    async for finding in _found(path, overrides, options, closing):
        found.append(finding)
        if not as_json:
            _print(finding)
    whole = {"findings": [each.model_dump(mode="json") for each in found]}
    click.echo(json.dumps(whole) if as_json else _summary(found))
    if closing:
        _, left = await asyncio.wait(closing, timeout=CLOSING_S)
        for task in left:
            task.cancel()
    return found


async def _found(
    path: Path | None, overrides: tuple[str, ...], options: Options, closing: set[asyncio.Task[None]]
) -> AsyncIterator[Finding]:
    limit_s = options.patience_s + 1.0
    if path is None:
        wanted = machine_checks(options)
        if options.run is not None:
            wanted.append(store_check(find_run(options.run, options.store, options.output)[0]))
        async for finding in findings(wanted, limit_s):
            yield finding
        return
    try:
        plan = read_plan(path, overrides)
    except FileError as error:
        for line in str(error).splitlines():
            yield fail("plan-broken", line)
        return
    yield ok("plan", f"{path}: {len(plan.agents)} agents, {len(plan.tasks)} tasks, {len(plan.pairs())} pairs")
    try:
        client = http_client(tls=plan.tls)
    except FileError as error:
        yield fail("plan-broken", f"{path}: {error}")
        return
    async with client as http:
        checks = PlanChecks(plan, options, http, _resumable(path, options), closing)
        async for finding in findings(checks.all(), limit_s):
            yield finding


def _resumable(path: Path, options: Options) -> Store | None:
    """The run that `--run` names, else the latest unfinished run of this plan in SQLite; None where there is none."""
    if options.run is not None:
        return find_run(options.run, options.store, options.output)[0]
    if options.store is not None:
        return None
    for folder in reversed(run_folders(options.output)):
        store = Store(connect(sqlite_url(folder)), folder.name)
        try:
            manifest = store.manifest()
            if manifest.plan_path == str(path.resolve()) and store.state() != "finished":
                return store
        except (StoreError, sa.exc.SQLAlchemyError):
            continue
    return None


def _print(finding: Finding) -> None:
    mark = click.style(f"{finding.status.value:<4}", fg=COLOURS[finding.status], bold=finding.status is Status.FAIL)
    click.echo(f"{mark}  {finding.id}: {finding.what}")
    if finding.is_problem:
        click.echo(f"      why: {finding.why}")
        click.echo(f"      fix: {finding.fix}")


def _summary(found: list[Finding]) -> str:
    counts = {status: sum(each.status is status for each in found) for status in Status}
    return f"{counts[Status.OK]} ok, {counts[Status.WARN]} warn, {counts[Status.FAIL]} fail, {counts[Status.SKIP]} skip"
