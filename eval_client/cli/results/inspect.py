"""`proctor status`, `report` and `agentbench`: the progress and results of runs."""

import json
from pathlib import Path

import click

from eval_client.cli.common import json_option, output_option, report_usage_errors, run_argument, store_option
from eval_client.cli.manage.listed import run_state, trials_scored
from eval_client.cli.results.html_report import trial_ids, write_html
from eval_client.cli.usage import FILE, UsageProblem
from eval_client.core.spend import OUT_OF
from eval_client.monitor import shared, stall_reporter
from eval_client.monitor.shared import lines_of
from eval_client.plan.plan import Plan
from eval_client.report.alike import task_shapes, unlike_tasks
from eval_client.report.bench_runs import played_tasks
from eval_client.report.report import PrimaryMetric, primary_metrics
from eval_client.report.report import report as make_report
from eval_client.report.tables.agentbench import agent_rows, agentbench_tables
from eval_client.report.tables.run_report import pairs_table, report_tables
from eval_client.run.context import spent_so_far
from eval_client.store.connection import StoreError
from eval_client.store.lock import is_worked_on
from eval_client.store.run_folders import find_run
from eval_client.store.shards import heartbeats
from eval_client.store.store import Store
from proctor.environment import MEAN_SCORE
from proctor.tables.command import TableFormat, format_option, print_tables
from proctor.tables.money import money_text

runs_argument = click.argument("runs", metavar="[RUN]...", nargs=-1)


@click.command()
@run_argument
@output_option
@store_option
@json_option
def status(run: str, output: Path, store: str | None, as_json: bool) -> None:
    """Show the progress of RUN (a folder, a name, or `latest`, the default)."""
    with report_usage_errors():
        found, folder = find_run(run, store, output)
        manifest = found.manifest()
        parent, pairs, state = manifest.parent, found.pair_totals(), run_state(found)
        # a client that was killed counts until the others have declared it lost
        clients = len(heartbeats(found.engine, found.run)) if is_worked_on(found) else 0
        spent = spent_so_far(Plan.model_validate(manifest.plan), found, pairs)
        why = next((spent.told(limit) for limit, name in OUT_OF.items() if name == state), None)
        primary = primary_metrics(found, pairs)
    troubles = lines_of(folder / stall_reporter.FILE) if state == "running" else []
    endpoints = lines_of(folder / shared.FILE) if state == "running" else []
    if as_json:
        facts = {"run": found.run, "folder": str(folder), "state": state, "clients": clients, "troubles": troubles}
        facts |= {"endpoints": endpoints, "stopped": why, "parent": parent}
        facts |= {"spent": {"tokens": spent.tokens.total, "money": spent.money if spent.prices else None}}
        rows = [{**pair.model_dump(), **_primary_fields(primary.get((pair.agent, pair.task)))} for pair in pairs]
        click.echo(json.dumps({**facts, "pairs": rows}))
        return
    several = f" ({clients} clients)" if clients > 1 else ""
    rescored = f", re-scored from {parent}" if parent else ""
    click.echo(f"{found.run}: {state}{several}, {trials_scored(pairs)}{rescored}")
    paid = [f"spent: {spent.tokens.total:,} tokens{f', money {money_text(spent.money)}' if spent.money else ''}"]
    for line in (*endpoints, *troubles, *([f"stopped: {why}"] if why else []), *(paid if spent.tokens.total else [])):
        click.echo(f"  {line}")
    for pair in pairs:
        mean = "-" if pair.mean is None else f"{pair.mean:.3f}"
        unscored = f", {pair.unscored} unscored" if pair.unscored else ""
        metric = primary.get((pair.agent, pair.task))
        other = f"; {metric.name} {metric.value:.3f}" if metric is not None and metric.name != MEAN_SCORE else ""
        click.echo(
            f"  {pair.agent} x {pair.task}: {pair.scored}/{pair.planned} scored{unscored}, mean score {mean}{other}"
        )
    if state != "finished" and parent is None:
        click.echo(f"resume with: proctor resume {folder}")


@click.command()
@runs_argument
@output_option
@store_option
@format_option
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@click.option("--html", type=FILE, metavar="FILE", help="Write one run's report to a file.")
@click.option("--title", metavar="TEXT", help="Title of the HTML report.")
@click.option("--samples", is_flag=True, help="Add each sample's id and scores to the HTML report.")
@click.option("--trials", callback=trial_ids, default="", metavar="ID,...", help="Add whole trials to the HTML report.")
def report(
    runs: tuple[str, ...],
    output: Path,
    store: str | None,
    form: TableFormat,
    as_json: bool,
    html: Path | None,
    title: str | None,
    samples: bool,
    trials: tuple[int, ...],
) -> None:
    """Show scores with standard errors, coverage, validity, faults and costs of each RUN.

    RUN is a folder, a name, or `latest`, the default. Several runs are shown in one report; what they share must be
    alike. JSON is one object for one run, and a list of them for several; CSV has a row for each pair. The HTML report
    is one file without script or network; by default it holds no sample's id, no prompt and no answer.
    """
    if html is None and (title or samples or trials):
        raise UsageProblem("--title, --samples and --trials are for the HTML report; add --html FILE")
    if html is not None and (as_json or form != "text"):
        raise UsageProblem("--html, --format and --json exclude each other; leave all but one out")
    with report_usage_errors():
        found = _found(runs, store, output)
        if html is not None:
            write_html(found, html, title=title, samples=samples, trials=trials)
            return
        _check_alike(found)
        reports = [make_report(each) for each in found]
    if as_json or form == "json":
        each = [made.model_dump_json() for made in reports]
        click.echo(each[0] if len(each) == 1 else f"[{','.join(each)}]")
    elif form == "csv":
        print_tables([pairs_table(reports)], form)
    else:
        print_tables(report_tables(reports, full=True), form)


@click.command()
@runs_argument
@output_option
@store_option
@format_option
@click.option("--task", "tasks", multiple=True, metavar="NAME", help="Choose among tasks of one environment.")
def agentbench(
    runs: tuple[str, ...], output: Path, store: str | None, form: TableFormat, tasks: tuple[str, ...]
) -> None:
    """Print each RUN in the form of AgentBench's tables 3 (scores) and 4 (validity), all RUNs together.

    RUN is a folder, a name, or `latest`, the default. The overall score needs all eight tasks, in one run or in
    several; a dagger marks what can't be compared with the paper.
    """
    with report_usage_errors():
        rows = agent_rows(played_tasks(_found(runs, store, output), tasks))
    print_tables(agentbench_tables(rows), form)


def _found(runs: tuple[str, ...], store: str | None, output: Path) -> list[Store]:
    """The stores of the named runs, each once; of the latest run if none is named. Raises StoreError."""
    found: dict[str, Store] = {}
    for run in runs or ("latest",):
        each, _ = find_run(run, store, output)
        other = found.setdefault(each.run, each)
        if other.engine.url != each.engine.url:
            raise StoreError(f"{run}: another run named {each.run} is given too; rename the folder of one")
    return list(found.values())


def _check_alike(stores: list[Store]) -> None:
    """Raises StoreError where runs share a task whose trials were not shaped alike."""
    facts = [fact for each in stores for fact in task_shapes(each.run, each.manifest())]
    if unlike := unlike_tasks(facts, "task"):
        raise StoreError("these runs can't stand in one report:\n" + "\n".join(f"  {line}" for line in unlike))


def _primary_fields(metric: PrimaryMetric | None) -> dict[str, object]:
    return {"primary": metric and metric.name, "value": metric and metric.value}
