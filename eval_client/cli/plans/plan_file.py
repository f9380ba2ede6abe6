"""`proctor init` and `proctor plan`, and the commented plan that it and `proctor run -m MODEL -e ENVIRONMENT` make."""

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from eval_client.cli.common import output_option, report_usage_errors, set_option, store_option
from eval_client.cli.usage import FILE, UsageProblem, report_file_errors
from eval_client.plan.load import admitted, check_data, load_plan, read_plan
from eval_client.plan.plan import Plan
from eval_client.store.runs import find_run
from proctor import registry
from proctor.config.model_fields import describe
from proctor.config.task import named_task
from proctor.config.yaml import parse, parse_value
from proctor.environment import POLICY_KINDS, EnvironmentFault
from proctor.llm.config import ChatConfig
from proctor.observability.redaction import redacted
from proctor.registry import is_own

SUGGESTED = "db,kg,alfworld"
NO_DOCKER = "a model's commands need the full isolation"


def plan_text(
    models: Sequence[str],
    environments: Sequence[str],
    *,
    base_urls: Sequence[str],
    epochs: int = 1,
    made_by: str,
) -> str:
    """The YAML text of a plan: every model plays every environment. `naive` and such are the built-in agents.

    Raises UsageProblem where an environment is unknown, or can't be played by these agents on this machine.
    """
    served = [model for model in models if model not in POLICY_KINDS and not _is_function(model)]
    tasks = [line for name in dict.fromkeys(environments) for line in _task_lines(name, served)]
    names = _agent_names(models)
    lines = [
        f"# Made by `{made_by}`. All fields: docs/reference/plan-fields.md; for editors `proctor plan print --schema`.",
        f"name: {_quoted(names[0])}  # first part of the names of its runs",
        f"epochs: {epochs}  # how often each agent plays each sample",
    ]
    if served:
        urls = [_quoted(url_in_effect(url)) for url in base_urls or (None,)]
        url = urls[0] if len(urls) == 1 else f"[{', '.join(urls)}]"
        lines += [
            "endpoints:",
            "  - name: models",
            f"    base_url: {url}  # any OpenAI-compatible endpoint, up to and including /v1",
            "    api_key_env: OPENAI_API_KEY  # the NAME of the variable that holds the key; keys stay out of plans",
            "    concurrency: 16  # trials in flight at once, at each URL, over all agents",
        ]
    lines.append("agents:")
    lines += [_agent(name, model) for name, model in zip(names, models, strict=True)]
    if not set(models) & set(POLICY_KINDS):
        lines.append("  # - {name: naive, builtin: naive}  # a weak heuristic that a real model must beat")
    lines.append("tasks:  # with the samples that Proctor ships; `data: PATH` takes the published files")
    lines += [
        *tasks,
        "limits:",
        "  attempts: 3  # after so many attempts that got no further, a trial is left without a score",
        "  # trial: {turns: 20}  # more turns end a trial",
        "  # run: {tokens: 2000000}  # a hard stop that leaves a run to be resumed",
    ]
    return "\n".join(lines) + "\n"


def made_plan(text: str, overrides: Sequence[str] = ()) -> Plan:
    """The plan that a made text describes; its tasks' data can be read. Raises FileError."""
    plan = admitted(parse(text, "the plan made from the options", Plan, overrides, Path.cwd()))
    check_data(plan)
    return plan


def url_in_effect(base_url: str | None) -> str:
    """The endpoint of the models; without a URL that of OPENAI_BASE_URL, else OpenAI's. Raises UsageProblem."""
    try:
        return ChatConfig(base_url=base_url, model="any").endpoint()
    except ValueError as error:
        if base_url is None:
            raise UsageProblem(str(error)) from error
        raise UsageProblem(
            "--base-url: must begin with http:// or https://, and hold no user name, password or query, such as "
            "http://127.0.0.1:8000/v1"
        ) from error


def _agent_names(models: Sequence[str]) -> list[str]:
    """A name for each model's agent: the last part of the model's own, with what a name may hold; each once."""
    names: list[str] = []
    for model in models:
        last = model.rpartition(":" if _is_function(model) else "/")[2]
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip("-._")[:60] or "model"
        taken = sum(other == name or other.startswith(f"{name}-") for other in names)
        names.append(name if name not in names else f"{name}-{taken + 1}")
    return names


def _is_function(model: str) -> bool:
    """Whether what -m names is a function in a file: models have colons in their names too."""
    return model.rpartition(":")[0].endswith(".py")


def _agent(name: str, model: str) -> str:
    if model in POLICY_KINDS:
        return f"  - {{name: {name}, builtin: {model}}}"
    if _is_function(model):
        return f"  - {{name: {_quoted(name)}, function: {_quoted(str(Path.cwd() / model))}}}"
    return f"  - {{name: {_quoted(name)}, endpoint: models, model: {_quoted(model)}}}"


def added_agent(model: str, plan: Plan) -> dict[str, object] | None:
    """The entry that -m makes of an agent, with the one sampling that all models of -m have; None without endpoint."""
    entry = _entry(_agent(_agent_names([*(agent.name for agent in plan.agents), model])[-1], model))
    if "endpoint" not in entry:
        return entry
    if "models" not in {endpoint.name for endpoint in plan.endpoints}:
        return None
    first, *others = [dict(agent.sampling) for agent in plan.agents if agent.endpoint == "models"] or [{}]
    return entry | ({"sampling": first} if first and all(each == first for each in others) else {})


def added_task(name: str, plan: Plan) -> dict[str, object] | None:
    """The entry that -e makes of a task which a plan lacks; None where there is no such environment."""
    if not is_own(name) and name not in registry.names():
        return None
    return _entry("\n".join(_task_lines(name, [agent.name for agent in plan.agents if agent.is_model])))


def _entry(text: str) -> dict[str, object]:
    """The only entry of a list in a plan's text."""
    entries: Any = parse_value(text, text)
    return dict(entries[0])


def _task_lines(name: str, models: Sequence[str]) -> list[str]:
    """The task of an environment, with an engine that this machine has. Raises UsageProblem."""
    with report_file_errors():
        task = named_task(name)
    lines = [f"  - name: {_quoted(task.name)}", f"    environment: {_quoted(task.environment)}"]
    try:
        cls = registry.load(task.environment)
        engine = cls.detect_parameters().get("engine")
        fields = cls.model_fields
        default = fields["engine"].default if "engine" in fields else None
        if engine is None or engine == default:
            return lines
        other = cls.model_validate({"engine": engine})
    except (ImportError, EnvironmentFault, registry.UnknownEnvironment) as error:
        raise UsageProblem(f"-e {name}: {error}") from error
    if other.trusted_agents_only() and models:
        raise UsageProblem(
            f"-e {name}: this machine lacks {default}, and {NO_DOCKER}: set {default} up (`proctor doctor` says how), "
            f"or leave -e {name} out"
        )
    reason = f"this machine lacks {default}; {other.not_comparable_because() or 'a stand-in'}"
    return [*lines, f"    parameters: {{engine: {_quoted(str(engine))}}}  # {reason}"]


def _quoted(text: str) -> str:
    """A text as YAML: in quotes unless it is plain in every reading."""
    plain = re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", text) and parse_value(text, text) == text
    return text if plain else json.dumps(text, ensure_ascii=not text.isprintable())


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
@click.option("--world", metavar="NAME", help="Instead of a plan: write a world of your own, NAME.py and NAME.jsonl.")
@click.option("--agent", metavar="NAME", help="Instead of a plan: write an agent of your own, NAME.py.")
def init(
    path: Path,
    models: tuple[str, ...],
    environments: tuple[str, ...],
    base_urls: tuple[str, ...],
    world: str | None,
    agent: str | None,
) -> None:
    """Write a commented plan to FILE, plan.yaml by default; a file that exists is never overwritten.

    Asks three questions: for the model, its endpoint and the environments. What an option answers is not asked, and no
    question is asked where model and environments are given.
    """
    if world is not None:
        _write_own("world", world, (".jsonl", ".py"))
        click.echo(f"{world}.py and {world}.jsonl: a world; check it: proctor check ./{world}.py")
        click.echo(f"play it: proctor play ./{world}.py; what a baseline gets: proctor run -m naive -e ./{world}.py")
    if agent is not None:
        _write_own("agent", agent, (".py",))
        click.echo(f"{agent}.py: an agent; see it play: proctor run -m ./{agent}.py:answer -e ./{world or 'WORLD'}.py")
    if world is not None or agent is not None:
        return
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
    _write_new(path, text)
    click.echo(f"{path}: {plan.sizes()}")
    click.echo(f"what it would play: proctor run {path} --dry-run; begin small: proctor run {path} --limit 5")


def _write_own(kind: str, name: str, files: Sequence[str]) -> None:
    """A world or an agent in the working folder that plays as it is written. Raises UsageProblem."""
    from proctor.own_files.loading import OURS  # 35 ms that plans do without

    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or name in (*sys.stdlib_module_names, *OURS):
        raise UsageProblem(f"--{kind} {name}: take small letters, digits and `_`, and no module's name, such as trivia")
    for file in files:
        text = Path(__file__).with_name(f"{kind}{file.replace('.py', '.txt')}").read_text(encoding="utf-8")
        _write_new(Path(name + file), text.replace("NAME", name).replace("CLASS", name.title().replace("_", "")))


def _write_new(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageProblem(f"{path}: can't be written: {error.strerror}") from error


def _asked_environments() -> tuple[str, ...]:
    known = ", ".join(registry.names())
    given: str = click.prompt(f"Environments, with commas between them ({known})", default=SUGGESTED)
    return tuple(name.strip() for name in given.split(",") if name.strip())


@click.group()
def plan() -> None:
    """Check a plan, print it resolved, or tell two apart; print the JSON Schema of plans."""


@plan.command("print")
@click.argument("path", metavar="[PLAN]", type=FILE, required=False)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of plans, for editors; name no PLAN.")
@set_option
def print_(path: Path | None, schema: bool, overrides: tuple[str, ...]) -> None:
    """Print PLAN with all defaults and overrides, as JSON (which is also YAML)."""
    if schema:
        found = Plan.model_json_schema()
        describe({**found["$defs"], Plan.__name__: found}, Plan)
        click.echo(json.dumps(found, indent=2))
        return
    if path is None:
        raise UsageProblem("name a PLAN to print, or --schema")
    with report_usage_errors():
        click.echo(load_plan(path, overrides).model_dump_json(indent=2, exclude_none=True))


@plan.command()
@click.argument("path", metavar="PLAN", type=FILE)
@set_option
def check(path: Path, overrides: tuple[str, ...]) -> None:
    """Check that PLAN can be run: its fields, its environments, their data."""
    with report_usage_errors():
        loaded = load_plan(path, overrides)
    click.echo(f"{path}: {loaded.sizes()}")


@plan.command()
@click.argument("first", metavar="RUN|PLAN")
@click.argument("second", metavar="RUN|PLAN")
@output_option
@store_option
@click.pass_context
def diff(ctx: click.Context, first: str, second: str, output: Path, store: str | None) -> None:
    """Tell field by field where the plans of two runs, or two plans' files, differ, defaults included.

    Exit codes: 0 they are alike, 1 they differ, 2 one can't be read.
    """
    with report_usage_errors():
        one, other = (_fields(_plan_of(name, store, output)) for name in (first, second))
    differ = [field for field in {**one, **other} if one.get(field) != other.get(field)]
    for field in differ:
        click.echo(redacted(f"{field}: {one.get(field, 'not set')} -> {other.get(field, 'not set')}"))
    ctx.exit(1 if differ else 0)


def _plan_of(name: str, store: str | None, output: Path) -> Plan:
    """The plan in a file, or of a run."""
    path = Path(name)
    return read_plan(path) if path.is_file() else find_run(name, store, output)[0].manifest().read_plan()


def _fields(value: object) -> dict[str, str]:
    """field, by its path, to its value as JSON; what has a name is found by it."""
    if isinstance(value, Plan):
        return _fields(value.model_dump(mode="json", exclude_none=True))
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        value = {str(each.get("name", number)): each for number, each in enumerate(value, 1)}
    if not isinstance(value, dict) or not value:
        return {"": json.dumps(value, ensure_ascii=False)}
    inner = ((key, *field) for key, each in value.items() for field in _fields(each).items())
    return {f"{key}.{path}".rstrip("."): text for key, path, text in inner}
