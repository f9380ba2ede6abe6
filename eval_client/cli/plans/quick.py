"""`proctor run -m MODEL -e ENVIRONMENT`: a run without a plan makes one, and keeps it in the run's folder."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from eval_client.cli.common import Command
from eval_client.cli.plans.made import made_plan, plan_text
from eval_client.cli.usage import UsageProblem
from eval_client.core.selection import Filters
from eval_client.filters import narrowed, with_left_out
from eval_client.plan.load import load_plan, placed, read_plan
from eval_client.plan.plan import Plan

FILE = "plan.yaml"


class ChosenPlan(NamedTuple):
    """The plan of a new run: from a file, or made from options."""

    plan: Plan
    """Narrowed to what was chosen."""
    path: Path | None
    """The file that it was read from; None for a plan that was made."""
    filters: Filters
    """What was chosen of it, with what that leaves out."""
    text: str = ""
    """The YAML text of a plan that was made."""

    def keep(self, folder: Path) -> Path:
        """The plan's file. One that was made is written into the run's folder, unless one is there.

        Raises UsageProblem.
        """
        if self.path is not None:
            return self.path
        if placed(self.plan, folder) != self.plan:
            raise UsageProblem("--set: a path must be absolute in a run without a plan, whose plan lies in its folder")
        path = folder / FILE
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(self.text, encoding="utf-8")
        return path


def model_options(command: Command) -> Command:
    """The options that make a plan."""
    models = click.option(
        "-m",
        "--model",
        "models",
        multiple=True,
        metavar="MODEL",
        help="Instead of PLAN: a model, as its endpoint calls it; `naive`, `random` and `reference` are built in. "
        "Several are compared.",
    )
    environments = click.option(
        "-e",
        "--environment",
        "environments",
        multiple=True,
        metavar="NAME",
        help="Instead of PLAN: an environment to play (`proctor envs` lists them); may be given several times.",
    )
    url = click.option(
        "--base-url",
        "base_urls",
        multiple=True,
        metavar="URL",
        help="Endpoint of the models of -m, up to and including /v1; several times: servers of the same model. "
        "Default: OPENAI_BASE_URL, else OpenAI. "
        "The key comes from OPENAI_API_KEY.",
    )
    return models(environments(url(command)))


def chosen_plan(
    path: Path | None,
    models: Sequence[str],
    environments: Sequence[str],
    base_urls: Sequence[str],
    epochs: int | None,
    overrides: Sequence[str],
    filters: Filters,
) -> ChosenPlan:
    """The plan in the file, else the one that the options make. Raises UsageProblem, FileError."""
    if path is not None:
        if models or environments or base_urls:
            raise UsageProblem("-m, -e and --base-url make a plan; leave them out, or leave PLAN out")
        whole = read_plan(path, overrides)
        plan = load_plan(path, overrides, lambda plan: narrowed(plan, filters))
        return ChosenPlan(plan, path.resolve(), with_left_out(filters, whole))
    if not (models and environments):
        raise UsageProblem(
            "name a plan (`proctor init` writes one), or at least one model and one environment: "
            "proctor run -m gpt-4.1-mini -e db --limit 20; without a key: proctor run -m naive -e alfworld"
        )
    text = plan_text(
        models, environments, base_urls=base_urls, epochs=epochs or 1, made_by=_command(models, environments)
    )
    plan = made_plan(text, overrides)
    return ChosenPlan(narrowed(plan, filters), None, with_left_out(filters, plan), text)


def _command(models: Sequence[str], environments: Sequence[str]) -> str:
    named = [("-m", model) for model in models] + [("-e", name) for name in environments]
    return shlex.join(["proctor", "run", *(part for pair in named for part in pair)])


def print_next_steps(path: Path, folder: Path, overrides: Sequence[str], limit: int | None) -> None:
    """Say on standard error where the plan is that was made, and how to go on with it."""
    options = [part for override in overrides for part in ("--set", override)]
    options += [] if limit is None else ["--limit", str(limit)]
    click.echo(f"plan: {path} was made from -m and -e; edit a copy of it for more", err=True)
    once_more = shlex.join(["proctor", "run", str(path), *options])
    click.echo(f"play it once more: {once_more}; go on after a stop: proctor resume {folder}", err=True)
