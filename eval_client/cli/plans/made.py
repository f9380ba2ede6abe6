"""A commented plan, made from models and environments that were named on the command line."""

import json
import re
from collections.abc import Sequence

from eval_client.cli.usage import UsageProblem
from eval_client.plan.load import check_data
from eval_client.plan.plan import Plan
from proctor import registry
from proctor.config.yaml import parse, parse_value
from proctor.environment import POLICY_KINDS, EnvironmentFault
from proctor.llm.config import ChatConfig

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
    served = [model for model in models if model not in POLICY_KINDS]
    tasks = [line for name in dict.fromkeys(environments) for line in _task_lines(name, served)]
    names = _agent_names(models)
    lines = [
        f"# Made by `{made_by}`. All fields: docs/reference/plan-fields.md, and `proctor plan schema` for your editor.",
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
    plan = parse(text, "the plan made from the options", Plan, overrides)
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
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", model.rpartition("/")[2]).strip("-._")[:60] or "model"
        taken = sum(other == name or other.startswith(f"{name}-") for other in names)
        names.append(name if name not in names else f"{name}-{taken + 1}")
    return names


def _agent(name: str, model: str) -> str:
    if model in POLICY_KINDS:
        return f"  - {{name: {name}, builtin: {model}}}"
    return f"  - {{name: {_quoted(name)}, endpoint: models, model: {_quoted(model)}}}"


def _task_lines(name: str, models: Sequence[str]) -> list[str]:
    """The task of an environment, with an engine that this machine has. Raises UsageProblem."""
    lines = [f"  - name: {_quoted(name)}", f"    environment: {_quoted(name)}"]
    try:
        cls = registry.load(name)
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
