"""Pure: what was run, as tables, without addresses, paths and prompts."""

from collections.abc import Mapping

from pydantic import JsonValue

from eval_client.plan.entries import AgentEntry
from eval_client.plan.plan import Plan
from eval_client.report.alike import shaping_parameters
from eval_client.report.html.scrub import model_name, publishable
from eval_client.store.records import Manifest
from proctor.tables.table import Entry, ResultTable, TableColumn, TableRow

SAMPLING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "max_completion_tokens",
    "seed",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "reasoning_effort",
)
"""Sampling parameters whose values are shown; of others only the names."""
PARAMETERS = ("protocol", "profile", "split", "engine", "level", "architecture", "distractors", "steps")
"""Parameters of environments whose values are shown; the digest covers all."""


def run_facts(manifest: Manifest, plan: Plan, created_at: str, state: str) -> list[tuple[str, str]]:
    """What holds for the whole run, as names and texts."""
    limits = plan.limits.trial.model_dump(exclude_none=True)
    return [
        ("State", state),
        ("Begun", f"{created_at[:10]} (UTC)"),
        *([("Resumed", _times(len(manifest.resumed_at)))] if manifest.resumed_at else []),
        ("Proctor", manifest.version),
        ("Epochs", f"{plan.epochs:,}"),
        ("Seed", str(plan.seed)),
        ("Limits of a trial", ", ".join(f"{value:,} {name}" for name, value in limits.items()) or "the tasks' own"),
        *_samples(manifest),
        *([("Left out", "; ".join(manifest.filters.left_out))] if manifest.filters.left_out else []),
    ]


def _samples(manifest: Manifest) -> list[tuple[str, str]]:
    """Which samples were played, unless all were."""
    chosen = [f"{name}: {task.selection}" for name, task in manifest.tasks.items() if task.selection]
    if not chosen and manifest.limit is not None:  # a run of an earlier version, which took the head of the file
        return [("Samples", f"the first {manifest.limit:,} of each task")]
    return [("Samples", "; ".join(chosen))] if chosen else []


def agents_table(plan: Plan) -> ResultTable:
    """The agents, by what shapes their answers."""
    columns = tuple(
        TableColumn(title, left=True) for title in ("agent", "model", "sampling", "system role", "reasoning")
    )
    rows = []
    for agent in plan.agents:
        sampling = _sampling(agent.sampling) if agent.is_model else "-"
        rows.append(TableRow((agent.name, _model(agent), sampling, agent.system_role, agent.reasoning)))
    return ResultTable("Agents", columns, tuple(rows))


def tasks_table(manifest: Manifest) -> ResultTable:
    """The tasks, by what shapes their trials; the digest is over data, prompts and parameters."""
    titles = ("task", "environment", "protocol", "parameters")
    columns = (
        *(TableColumn(title, left=True) for title in titles),
        TableColumn("samples"),
        TableColumn("digest", left=True),
    )
    rows = []
    for name, task in manifest.tasks.items():
        parameters = shaping_parameters(manifest, name) or {}
        cells: tuple[Entry, ...] = (name, task.environment, task.protocol, _parameters(parameters), task.samples)
        rows.append(TableRow((*cells, publishable(task.digest)[:16])))
    return ResultTable(
        "Tasks", columns, tuple(rows), ("Digest: of data, prompts and parameters; equal where they are.",)
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _model(agent: AgentEntry) -> str:
    if agent.is_command:
        return f"command: {publishable(agent.harness)}"
    return f"built-in: {agent.builtin}" if agent.builtin is not None else model_name(agent.model or agent.name)


def _sampling(sampling: Mapping[str, JsonValue]) -> str:
    told = [f"{name} {_scalar(sampling[name])}" for name in SAMPLING if name in sampling]
    others = sorted(publishable(name) for name in sampling if name not in SAMPLING)
    return ", ".join([*told, *others]) or "the endpoint's defaults"


def _parameters(given: Mapping[str, JsonValue]) -> str:
    return ", ".join(f"{name} {_scalar(given[name])}" for name in PARAMETERS if name in given)


def _scalar(value: JsonValue) -> str:
    return publishable(str(value)) if isinstance(value, str | int | float) else "set"
