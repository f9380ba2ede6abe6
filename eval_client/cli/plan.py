"""`proctor plan`: check a plan, print it, or its JSON Schema."""

import json
from pathlib import Path

import click

from eval_client.cli.common import report_usage_errors, set_option
from eval_client.plan import Plan, load_plan


@click.group()
def plan() -> None:
    """Check a plan, print it resolved, or its JSON Schema."""


@plan.command()
def schema() -> None:
    """The JSON Schema of plans, for editors."""
    click.echo(json.dumps(Plan.model_json_schema(), indent=2))


@plan.command("print")
@click.argument("path", metavar="PLAN", type=click.Path(dir_okay=False, path_type=Path))
@set_option
def print_(path: Path, overrides: tuple[str, ...]) -> None:
    """PLAN with all defaults and overrides, as JSON (which is YAML too)."""
    with report_usage_errors():
        click.echo(load_plan(path, overrides).model_dump_json(indent=2, exclude_none=True))


@plan.command()
@click.argument("path", metavar="PLAN", type=click.Path(dir_okay=False, path_type=Path))
def check(path: Path) -> None:
    """Whether PLAN can be run: its fields, its environments, their data."""
    with report_usage_errors():
        loaded = load_plan(path)
    click.echo(f"{path}: {len(loaded.agents)} agents, {len(loaded.tasks)} tasks, {len(loaded.pairs())} pairs")
