"""`proctor init`: writes a commented plan."""

from pathlib import Path

import click

from eval_client.cli.common import report_usage_errors
from eval_client.cli.plans.made import made_plan, plan_text, url_in_effect
from eval_client.cli.usage import FILE, UsageProblem
from proctor import registry

SUGGESTED = "db,kg,alfworld"


@click.command()
@click.argument("path", metavar="[FILE]", default="plan.yaml", type=FILE)
@click.option("-m", "--model", "models", multiple=True, metavar="MODEL", help="A model; several are compared.")
@click.option("-e", "--environment", "environments", multiple=True, metavar="NAME", help="An environment to play.")
@click.option(
    "--base-url",
    "base_urls",
    multiple=True,
    metavar="URL",
    help="The models' endpoint, up to and including /v1; several times: servers of the same model.",
)
def init(path: Path, models: tuple[str, ...], environments: tuple[str, ...], base_urls: tuple[str, ...]) -> None:
    """Write a commented plan to FILE, plan.yaml by default; a file that exists is never overwritten.

    Asks three questions: for the model, its endpoint and the environments. What an option answers is not asked, and no
    question is asked where model and environments are given.
    """
    if path.exists():
        raise UsageProblem(f"{path}: exists already and is kept; name another file: proctor init OTHER.yaml")
    asks = not (models and environments)
    try:
        models = models or (click.prompt("Model, as its endpoint calls it", default="gpt-4.1-mini"),)
        if asks and not base_urls:
            base_urls = (click.prompt("Its endpoint, up to and including /v1", default=url_in_effect(None)),)
        environments = environments or _asked_environments()
    except click.Abort as error:
        raise UsageProblem(
            "no answer, so no plan was written; options answer too: proctor init -m MODEL -e ENV"
        ) from error
    text = plan_text(models, environments, base_urls=base_urls, made_by="proctor init")
    with report_usage_errors():
        plan = made_plan(text)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageProblem(f"{path}: can't be written: {error.strerror}") from error
    click.echo(f"{path}: {len(plan.agents)} agents, {len(plan.tasks)} tasks")
    click.echo(f"what it would play: proctor run {path} --dry-run; begin small: proctor run {path} --limit 5")


def _asked_environments() -> tuple[str, ...]:
    known = ", ".join(registry.names())
    given: str = click.prompt(f"Environments, with commas between them ({known})", default=SUGGESTED)
    return tuple(name.strip() for name in given.split(",") if name.strip())
