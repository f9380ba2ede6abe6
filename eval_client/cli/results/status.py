"""`proctor status`: the progress of a run, or what a controller's workers do."""

import json
from pathlib import Path

import click

from eval_client.cli.common import json_option, output_option, report_usage_errors, run_argument, store_option
from eval_client.cli.manage.ls import run_state, trials_scored
from eval_client.cli.usage import UsageProblem
from eval_client.core.spend import OUT_OF
from eval_client.report.report import primary_metrics
from eval_client.run.context import spent_so_far
from eval_client.store.lock import is_worked_on
from eval_client.store.runs import find_run, run_moment
from proctor.config.tokens import AccessTokens
from proctor.environment import MEAN_SCORE
from proctor.tables.command import TableFormat, print_tables
from proctor.tables.table import money_text
from task_server.wire.errors import TaskServerError


@click.command()
@run_argument
@output_option
@store_option
@json_option
@click.option("--controller", metavar="URL", help="Show the workers there, and which runs hold and want sessions.")
def status(run: str, output: Path, store: str | None, as_json: bool, controller: str | None) -> None:
    """Show the progress of RUN (a folder, a name, or `latest`, the default), or what a controller's workers do."""
    if controller is not None:
        _print_controller(controller, "json" if as_json else "text")
        return
    with report_usage_errors():
        found, folder = find_run(run, store, output)
        manifest = found.manifest()
        parent, pairs, state = manifest.parent, found.pair_totals(), run_state(found)
        clients = int(is_worked_on(found))
        spent = spent_so_far(manifest.read_plan(), found, pairs)
        why = next((spent.told(limit) for limit, name in OUT_OF.items() if name == state), None)
        primary = primary_metrics(found, pairs)
        live = run_moment(found.engine, found.run).shown if state == "running" else None
    troubles, endpoints = ((), ()) if live is None else (live.troubles, live.shared)
    if as_json:
        facts = {"run": found.run, "folder": str(folder), "state": state, "clients": clients, "troubles": troubles}
        facts |= {"endpoints": endpoints, "stopped": why, "parent": parent}
        facts |= {"spent": {"tokens": spent.tokens.total, "money": spent.money if spent.prices else None}}
        metrics = [primary.get((pair.agent, pair.task)) for pair in pairs]
        told = [{"primary": metric and metric.name, "value": metric and metric.value} for metric in metrics]
        rows = [{**pair.model_dump(), **metric} for pair, metric in zip(pairs, told, strict=True)]
        click.echo(json.dumps({**facts, "pairs": rows}))
        return
    rescored = f", re-scored from {parent}" if parent else ""
    click.echo(f"{found.run}: {state}, {trials_scored(pairs)}{rescored}")
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


def _print_controller(url: str, form: TableFormat) -> None:
    """Raises UsageProblem where the controller does not answer."""
    from eval_client.controller_tables import controller_tables  # the client of HTTP is loaded only here

    try:
        tables = controller_tables(url, AccessTokens.of("PROCTOR_TOKEN"))
    except (TaskServerError, ValueError) as error:
        raise UsageProblem(f"--controller {url}: {error}") from error
    print_tables(tables, form)
