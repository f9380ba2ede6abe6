"""`proctor doctor`."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import click

from eval_client.cli.common import output_option, report_usage_errors, set_option, store_option
from eval_client.cli.doctor.finding import Check, Finding, Status, fail, findings, ok
from eval_client.cli.doctor.plan_checks import Options, PlanChecks, machine_checks, whole_store
from eval_client.cli.usage import FILE
from eval_client.plan.load import read_plan
from eval_client.store.runs import find_run
from proctor import event_loop
from proctor.config.yaml import FileError
from proctor.http.client import http_client
from proctor.observability.output import console

COLOURS = {Status.OK: "green", Status.WARN: "yellow", Status.FAIL: "bold red", Status.SKIP: "bright_black"}


@click.command()
@click.argument("plan", required=False, type=FILE)
@click.option("--run", metavar="RUN", help="Check the whole store of this run too.")
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
    found = list[Finding]()
    async for finding in _joined(_found(path, overrides, options)):
        said = any((each.why, each.fix) == (finding.why, finding.fix) for each in found)
        found.append(finding)
        if not as_json:
            _print(finding, said=said)
    whole = {"findings": [each.model_dump(mode="json") for each in found]}
    click.echo(json.dumps(whole) if as_json else _summary(found))
    return found


async def _found(path: Path | None, overrides: tuple[str, ...], options: Options) -> AsyncIterator[Finding]:
    limit_s, of_run = options.patience_s + 1.0, dict[str, Check]()
    if options.run is not None:
        of_run["store of the run"] = whole_store(find_run(options.run, options.store, options.output)[0])
    if path is None:
        async for finding in findings(machine_checks(options) | of_run, limit_s):
            yield finding
        return
    try:
        plan = read_plan(path, overrides)
        client = http_client(tls=plan.tls)
    except FileError as error:
        for line in str(error).splitlines():
            what = line if str(path) in line else f"{path}: {line}"
            yield fail("plan-broken", what, "the plan can't be run", "correct the line that is named")
        return
    yield ok("plan", f"{path}: {plan.sizes()}")
    async with client as http:
        checks = PlanChecks(plan, options, http)
        async for finding in findings(checks.all() | of_run, limit_s, closing=checks.played):
            yield finding


async def _joined(found: AsyncIterator[Finding]) -> AsyncIterator[Finding]:
    """The findings; a reason why scores can't be compared stands once, at the end, for all its tasks."""
    tasks: dict[str, list[str]] = {}
    async for finding in found:
        if finding.id == "not-comparable":
            name, _, reason = finding.what.removeprefix("task ").partition(": ")
            tasks.setdefault(reason, []).append(name)
            last = finding
        else:
            yield finding
    for reason, names in tasks.items():
        what = f"{'task' if len(names) == 1 else 'tasks'} {', '.join(names)}: {reason}"
        yield last.model_copy(update={"what": what})


def _print(finding: Finding, *, said: bool) -> None:
    """A line; then why and how to fix it, unless that was `said` of another finding."""
    from rich.text import Text

    mark = Text(f"{finding.status.value:<4}", COLOURS[finding.status])
    console(highlight=False).print(Text.assemble(mark, f"  {finding.id}: {finding.what}"), soft_wrap=True)
    if finding.is_problem and not said:
        click.echo(f"      why: {finding.why}")
        click.echo(f"      fix: {finding.fix}")


def _summary(found: list[Finding]) -> str:
    counts = {status: sum(each.status is status for each in found) for status in Status}
    return f"{counts[Status.OK]} ok, {counts[Status.WARN]} warn, {counts[Status.FAIL]} fail, {counts[Status.SKIP]} skip"
