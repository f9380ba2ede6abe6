"""`proctor envs` and `proctor check`."""

import asyncio
import json
import sys
from pathlib import Path

import click

from eval_client.cli.usage import report_file_errors
from proctor import registry
from proctor.config.task import named_task


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line instead of text.")
def envs(as_json: bool) -> None:
    """List the installed environments, Proctor's own and others."""
    for name in [*registry.names(), *registry.names(registry.FOREIGN_ENVIRONMENTS)]:
        row = _describe(name)
        if as_json:
            click.echo(json.dumps(row))
        else:
            click.echo(f"{name:<16} {row['about']}")


def _describe(name: str) -> dict[str, object]:
    try:
        environment = registry.load(name)
    except ImportError as error:
        return {"name": name, "about": f"not usable here: {error}", "fields": []}
    about = (environment.__doc__ or "").strip().splitlines()
    return {"name": name, "about": about[0] if about else "", "fields": sorted(environment.model_fields)}


@click.command()
@click.argument("name", metavar="ENVIRONMENT")
@click.option("--data", type=click.Path(path_type=Path), help="The environment's data. Default: its own samples.")
@click.option("-T", "parameters", multiple=True, metavar="FIELD=VALUE", help="A field of the environment, as YAML.")
@click.option("--samples", default=3, show_default=True, type=click.IntRange(min=1), help="How many samples to play.")
def check(name: str, data: Path | None, parameters: tuple[str, ...], samples: int) -> None:
    """Check that ENVIRONMENT meets the contract of environments.

    Checks that need a policy which the environment lacks are skipped, with a message. Exit code 1 where a check fails.
    """
    with report_file_errors():
        definition = named_task(name, data).with_parameters(parameters)
        environment = definition.opened() if registry.is_own(name) else definition.build()
    from proctor.conformance.check import check as run_check

    async def passes() -> bool:
        passed = True
        async for result in run_check(environment, samples=samples):
            state = "FAIL" if result.state == "broken" else result.state
            click.echo(f"{state:<8} {result.name}{': ' if result.detail else ''}{result.detail}")
            passed = passed and result.ok
        return passed

    sys.exit(0 if asyncio.run(passes()) else 1)
