"""`proctor ls`."""

import datetime
import json
from functools import partial
from pathlib import Path

import click

from eval_client.cli.common import json_option, output_option, report_usage_errors, store_option
from eval_client.cli.manage.listed import RunFilter, all_runs, listed, owner_option, tags_option
from eval_client.cli.manage.moments import moment
from proctor.observability.redaction import redacted

BEGIN = "begin with `proctor demo`, which needs no key, or with a plan of your own: `proctor run PLAN`"


@click.command()
@output_option
@store_option
@tags_option
@owner_option
@click.option(
    "--since",
    callback=partial(moment, end=False),
    metavar="TIME",
    help="Only runs begun since: 2026-11-20, or 30d ago.",
)
@click.option("--until", callback=partial(moment, end=True), metavar="TIME", help="Only runs begun until then.")
@json_option
def ls(
    output: Path,
    store: str | None,
    tags: tuple[str, ...],
    owner: str | None,
    since: datetime.datetime | None,
    until: datetime.datetime | None,
    as_json: bool,
) -> None:
    """List the runs, the oldest first, with the time (UTC) and the person that began them, and their tags."""
    chosen = RunFilter(tags, owner, since, until)
    with report_usage_errors():
        found = [listed(each) for each, _ in all_runs(store, output)]
    shown = [run for run in found if chosen.chooses(run)]
    if as_json:
        click.echo(json.dumps([run._asdict() for run in shown]))
        return
    for run in shown:
        click.echo(redacted(run.line()).replace("\n", r"\n"))
    if not found:
        click.echo(f"no runs {'in this store' if store else f'in {output}'} yet; {BEGIN}", err=True)
    elif not shown:
        click.echo(f"none of {len(found)} runs is chosen by these options", err=True)
