"""The plan of `proctor run`: from a file or made from options, narrowed, with fallbacks of engines.

One that is made is kept in the run's folder.
"""

import functools
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click

from eval_client.cli.doctor.finding import Finding, Status
from eval_client.cli.doctor.readiness import quick_problems
from eval_client.cli.doctor.tasks import engine_problem
from eval_client.cli.plans.plan_file import made_plan, plan_text
from eval_client.cli.usage import UsageProblem
from eval_client.core.selection import Filters
from eval_client.plan.filters import narrowed, with_left_out
from eval_client.plan.load import load_plan, placed, read_plan
from eval_client.plan.plan import Plan
from proctor import event_loop, registry
from proctor.config.task import TaskDefinition
from proctor.config.yaml import parse
from proctor.environment import EnvironmentFault

FILE = "plan.yaml"
PATTERN = "May be given several times; *, ? and [...] are wildcards."
OPTIONS = {
    "tasks": ("--task", "NAME", "Play only these tasks of the plan."),
    "agents": ("--agent", "NAME", "Play only these agents of the plan."),
    "samples": ("--sample", "ID", "Play only these samples: ID or TASK/ID."),
    "exclude": ("--exclude", "ID", "Leave these samples out: ID or TASK/ID."),
}
"""field of `Filters` -> its option, with what that takes and its help"""
OF_PLANS: dict[str, tuple[Any, str]] = {
    "epochs": (click.IntRange(1, 1000), "How often each agent plays each sample."),
    "seed": (int, "The plan's seed, from which those of trials are derived."),
    "temperature": (click.FloatRange(min=0), "Sampling temperature of every model."),
    "max_tokens": (click.IntRange(min=1), "The most tokens of an answer of every model."),
    "concurrency": (
        click.IntRange(1, 10_000),
        "Trials in flight at once, at each URL, over all models of -m.  [default: 16]",
    ),
}
"""field of `PlanOptions` that is set in a plan -> its type and help"""


class ChosenPlan(NamedTuple):
    """The plan of a new run: from a file, or made from options."""

    plan: Plan
    """Narrowed to what was chosen."""
    path: Path | None
    """The file that it was read from; None for a plan that was made."""
    filters: Filters
    """What was chosen of it, with what that leaves out."""
    overrides: tuple[str, ...]
    """What `--set` and other options set in it."""
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


class PlanOptions(NamedTuple):
    """The options that make a plan, or set fields of one."""

    models: tuple[str, ...]
    environments: tuple[str, ...]
    base_urls: tuple[str, ...]
    epochs: int | None
    seed: int | None
    temperature: float | None
    max_tokens: int | None
    concurrency: int | None

    def overrides(self, plan: Plan) -> tuple[str, ...]:
        """What they set in a plan; agents are named by their places, since names have dots. Raises UsageProblem."""
        of_models = {"temperature": self.temperature, "max_tokens": self.max_tokens}
        models = [place for place, agent in enumerate(plan.agents) if agent.is_model]
        if not models and {*of_models.values(), self.concurrency} != {None}:
            raise UsageProblem(
                "--temperature, --max-tokens, --concurrency: are for models; name one, or leave them out"
            )
        fields: dict[str, object] = {"epochs": self.epochs, "seed": self.seed}
        fields["endpoints.models.concurrency"] = self.concurrency
        fields |= {f"agents.{place}.sampling.{name}": value for place in models for name, value in of_models.items()}
        return tuple(f"{field}={value}" for field, value in fields.items() if value is not None)


def plan_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that make a plan or set fields of one, which the command gets as `asked`."""

    @functools.wraps(command)
    def with_asked(**options: Any) -> None:
        command(asked=PlanOptions(**{field: options.pop(field) for field in PlanOptions._fields}), **options)

    wrapped: Callable[..., None] = with_asked
    for field, (kind, text) in reversed(OF_PLANS.items()):
        wrapped = click.option(f"--{field.replace('_', '-')}", field, type=kind, help=text)(wrapped)
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
    return models(environments(url(wrapped)))


def chosen_plan(path: Path | None, asked: PlanOptions, overrides: tuple[str, ...], filters: Filters) -> ChosenPlan:
    """The plan in the file, else the one that the options make. Raises UsageProblem, FileError."""
    if path is not None:
        if asked.models or asked.environments or asked.base_urls:
            raise UsageProblem("-m, -e and --base-url make a plan; leave them out, or leave PLAN out")
        if asked.concurrency is not None:
            fix = f"--set endpoints.NAME.concurrency={asked.concurrency}, or `concurrency` of an agent"
            raise UsageProblem(f"--concurrency: is for -m, since a plan has several; set the one you mean: {fix}")
        whole = read_plan(path, overrides)
        overrides = (*overrides, *asked.overrides(whole))
        plan = load_plan(path, overrides, lambda plan: narrowed(plan, filters))
        return ChosenPlan(plan, path.resolve(), with_left_out(filters, whole), overrides)
    if not (asked.models and asked.environments):
        raise UsageProblem(
            "name a plan (`proctor init` writes one), or at least one model and one environment: "
            "proctor run -m gpt-4.1-mini -e db --limit 20; without a key: proctor run -m naive -e alfworld"
        )
    made_by = _command(asked.models, asked.environments)
    text = plan_text(
        asked.models, asked.environments, base_urls=asked.base_urls, epochs=asked.epochs or 1, made_by=made_by
    )
    overrides = (*overrides, *asked._replace(epochs=None).overrides(parse(text, made_by, Plan, folder=Path.cwd())))
    plan = made_plan(text, overrides)
    return ChosenPlan(narrowed(plan, filters), None, with_left_out(filters, plan), overrides, text)


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


def filter_options(command: Callable[..., None]) -> Callable[..., None]:
    """`--task`, `--agent`, `--sample` and `--exclude`, which the command gets as `filters`."""

    @functools.wraps(command)
    def with_filters(*arguments: object, **options: Any) -> None:
        command(*arguments, filters=Filters(**{field: options.pop(field) for field in OPTIONS}), **options)

    wrapped: Callable[..., None] = with_filters
    for field, (flag, takes, text) in reversed(OPTIONS.items()):
        wrapped = click.option(flag, field, multiple=True, metavar=takes, help=f"{text} {PATTERN}")(wrapped)
    return wrapped


def with_fallbacks(chosen: ChosenPlan, path: Path) -> ChosenPlan:
    """The plan read from `path` with its fallbacks, whose other engines its overrides name.

    Prints what was changed, why, and the fix. Raises UsageProblem where no task is left, FileError.
    """
    engines, left_out, lines = [], {}, []
    for task, problem in event_loop.run(_problems(chosen.plan)):
        engine, reason = _other_engine(chosen.plan, task)
        if engine is None:
            left_out[task.name] = f"task {task.name} is left out: {problem.what.removeprefix(f'task {task.name}: ')}"
        else:
            engines.append(f"tasks.{task.name}.parameters.engine={engine}")
        lines.append(f"{'left out' if engine is None else 'fallback'}: {problem.what}{reason}; fix: {problem.fix}")
    if not lines:
        return chosen
    kept = tuple(task.name for task in chosen.plan.tasks if task.name not in left_out)
    if not kept:
        raise UsageProblem("\n  ".join(["this machine can play no task of the plan:", *lines]))
    for line in lines:
        click.echo(line, err=True)
    filters = chosen.filters
    if left_out:
        filters = filters.model_copy(update={"tasks": kept, "left_out": (*filters.left_out, *left_out.values())})
    overrides = (*chosen.overrides, *engines)
    plan = load_plan(path, overrides, lambda plan: narrowed(plan, filters))
    return chosen._replace(plan=plan, filters=filters, overrides=overrides)


async def _problems(plan: Plan) -> list[tuple[TaskDefinition, Finding]]:
    wanted = [task for task in plan.definitions() if task.fallback and plan.controller == "local"]
    found = [(task, await engine_problem(task)) for task in wanted]
    return [(task, problem) for task, problem in found if problem is not None]


def _other_engine(plan: Plan, task: TaskDefinition) -> tuple[str | None, str]:
    """The engine to play a task by instead of its own, and a reason. None where its agents can play it by no other."""
    try:
        engine = registry.load(task.environment).detect_parameters().get("engine")
        if engine is None:
            return None, ""
        other = task.model_copy(update={"parameters": {**task.parameters, "engine": engine}}).build()
    except (EnvironmentFault, ValueError):
        return None, ""
    models = [agent for agent, policy in plan.playing(task.name).items() if policy is None]
    if models and other.trusted_agents_only():
        return None, f"; engine {engine} is too thin an isolation for {', '.join(models)}"
    return str(engine), f"; engine {engine} is used: {other.not_comparable_because() or 'a stand-in'}"


def print_problems(plan: Plan, output: Path, store: str | None, *, quiet: bool) -> None:
    """Print a line on standard error for each problem; with `quiet`, for those alone that leave trials unscored."""
    for each in event_loop.run(quick_problems(plan, output, store)):
        if each.status is Status.FAIL or not quiet:
            kind = "problem" if each.status is Status.FAIL else "warning"
            click.echo(f"{kind}: {each.what}; {each.why}; fix: {each.fix}", err=True)
