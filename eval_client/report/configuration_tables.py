"""Pure: what was run, as tables without addresses, paths and prompts, and how its figures are made."""

from collections.abc import Mapping

from pydantic import JsonValue

from eval_client.plan.entries import AgentEntry
from eval_client.plan.plan import Plan
from eval_client.report.comparability import shaping_parameters
from eval_client.report.scrub import model_name, publishable
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
METHODS = (
    "Scores. The figure of a pair is the environment's primary metric over its scored trials; a trial that ended "
    "in a fault (a server lost, an endpoint refused) has no score and enters no mean. ±: the standard error, with "
    "clusters of samples that share a world as units: Miller 2024, arXiv 2411.00640, section 2.2, with the factor "
    "for few clusters.",
    "Coverage and bounds. Coverage is the share of the planned trials that are scored. The bounds are the mean "
    "score with all missing scores 0, and with all 1.",
    "Comparisons. Differences are over the samples that both agents have scored. The test is the exact McNemar "
    "test where each sample was passed or failed once and is a cluster of its own, with the interval of Bonett "
    "and Price 2012; otherwise sign flips of whole clusters, with Student's t interval. The p-values are adjusted "
    "by Holm's method over all tests of this page. Detectable: the difference that would have been found with the "
    "given power.",
    "How trials ended. Shares are of the scored trials, in AgentBench's classes (Liu et al. 2023, arXiv "
    "2308.03688, section 4.3). Faults are counted beside them.",
    "AgentBench. The overall score is the mean over its eight tasks of the score in percent divided by the "
    "average score of the paper's models (arXiv 2308.03688, table 2). It is given for all eight tasks only.",
    "Costs. Money is tokens times the prices of the plan; without a price there is none. Costs of the tasks' own "
    "models are apart.",
)
COMPARISON_METHODS = METHODS[:3]
"""Those behind a comparison."""


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
    if agent.is_model:
        around = f"{publishable(str(agent.function).rpartition('/')[2])} around " if agent.is_scaffold else ""
        return around + model_name(agent.model or agent.name)
    return f"built-in: {agent.builtin}"


def _sampling(sampling: Mapping[str, JsonValue]) -> str:
    told = [f"{name} {_scalar(sampling[name])}" for name in SAMPLING if name in sampling]
    others = sorted(publishable(name) for name in sampling if name not in SAMPLING)
    left = [name for name in ("temperature", "top_p", "max_tokens") if name not in sampling]
    return ", ".join([*told, *others, *([f"left to the endpoint: {', '.join(left)}"] if left else [])])


def _parameters(given: Mapping[str, JsonValue]) -> str:
    return ", ".join(f"{name} {_scalar(given[name])}" for name in PARAMETERS if name in given)


def _scalar(value: JsonValue) -> str:
    return publishable(str(value)) if isinstance(value, str | int | float) else "set"
