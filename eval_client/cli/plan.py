"""`proctor plan`: checks a plan, prints it, or prints the JSON Schema of plans."""

import json
from pathlib import Path

import click

from eval_client.cli.common import report_usage_errors, set_option
from eval_client.cli.usage import FILE
from eval_client.plan.load import load_plan
from eval_client.plan.plan import Plan
from proctor.config.described import describe


@click.group()
def plan() -> None:
    """Check a plan, print it resolved, or print the JSON Schema of plans."""


@plan.command()
def schema() -> None:
    """Print the JSON Schema of plans, for editors."""
    found = Plan.model_json_schema()
    describe({**found["$defs"], Plan.__name__: found}, Plan)
    click.echo(json.dumps(found, indent=2))


@plan.command("print")
@click.argument("path", metavar="PLAN", type=FILE)
@set_option
def print_(path: Path, overrides: tuple[str, ...]) -> None:
    """Print PLAN with all defaults and overrides, as JSON (which is also YAML)."""
    with report_usage_errors():
        click.echo(load_plan(path, overrides).model_dump_json(indent=2, exclude_none=True))


@plan.command()
@click.argument("path", metavar="PLAN", type=FILE)
@set_option
def check(path: Path, overrides: tuple[str, ...]) -> None:
    """Check that PLAN can be run: its fields, its environments, their data."""
    with report_usage_errors():
        loaded = load_plan(path, overrides)
    click.echo(f"{path}: {len(loaded.agents)} agents, {len(loaded.tasks)} tasks, {len(loaded.pairs())} pairs")
