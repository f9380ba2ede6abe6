"""Pure: what was run, as tables without addresses, paths and prompts; whether runs may stand in one table."""

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations
from pathlib import PurePath
from typing import Literal, NamedTuple

from pydantic import JsonValue

from eval_client.plan.entries import AgentEntry
from eval_client.plan.plan import Plan
from eval_client.report.scrub import model_name, publishable
from eval_client.store.records import Addition, Manifest
from proctor.tables.table import Entry, ResultTable, TableColumn, TableRow

SAMPLING = (
    *("temperature", "top_p", "top_k", "min_p", "max_tokens", "max_completion_tokens", "seed", "presence_penalty"),
    *("frequency_penalty", "repetition_penalty", "reasoning_effort"),
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
MOST_NAMED = 3
"""Models, profiles and such that the head of a page names."""
SHOWN_VALUE = 60
"""Characters of a value that a difference shows."""
AGENT_FIELDS = ("builtin", "model", "sampling", "reasoning", "system_role")
"""What makes an agent another one; endpoint, price and concurrency may differ."""


def run_facts(manifest: Manifest, plan: Plan, created_at: str, state: str) -> list[tuple[str, str]]:
    """What holds for the whole run, as names and texts."""
    limits, resumed = plan.limits.trial.model_dump(exclude_none=True), len(manifest.resumed_at)
    return [
        ("State", state),
        ("Begun", f"{created_at[:10]} (UTC)"),
        *([("Resumed", "once" if resumed == 1 else f"{resumed:,} times")] if resumed else []),
        *([("Extended", "; ".join(_added(addition) for addition in manifest.additions))] if manifest.additions else []),
        ("Proctor", manifest.version),
        ("Epochs", f"{plan.epochs:,}"),
        ("Seed", str(plan.seed)),
        ("Limits of a trial", ", ".join(f"{value:,} {name}" for name, value in limits.items()) or "the tasks' own"),
        *_samples(manifest),
        *([("Left out", "; ".join(manifest.filters.left_out))] if manifest.filters.left_out else []),
    ]


def run_head(manifest: Manifest, agents: Collection[str] = (), tasks: Collection[str] = ()) -> list[tuple[str, str]]:
    """What was run, in a few words each, for the head of a page; of all agents and tasks unless some are named."""
    plan = manifest.read_plan()
    played = [agent for agent in plan.agents if not agents or agent.name in agents]
    models = [agent for agent in played if agent.is_model]
    given = [manifest.parameters(name) or {} for name in manifest.tasks if not tasks or name in tasks]
    data = [PurePath(str(each["data"])).name if each.get("data") else "shipped" for each in given]
    told = (
        ("model", map(_model, played)),
        ("endpoint", (publishable(plan.endpoint_of(agent).name) for agent in models)),
        ("sampling", (_sampling(agent.sampling) for agent in models)),
        ("profile", (_scalar(each.get("profile") or "the task's own") for each in given)),
        ("data", map(publishable, data)),
        ("tags", manifest.tags),
    )
    return [(name, text) for name, texts in told if (text := _some(texts))]


def _some(texts: Iterable[str]) -> str:
    """The texts, each once: the first of many, and how many more there are."""
    each = list(dict.fromkeys(texts))
    more = f" and {len(each) - MOST_NAMED} more" if len(each) > MOST_NAMED else ""
    return ("; " if any(", " in text for text in each) else ", ").join(each[:MOST_NAMED]) + more


def _added(addition: Addition) -> str:
    """What was added, when, and by which version."""
    return f"{addition.at[:10]} by Proctor {addition.version}: {', '.join(addition.what)}"


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
    titles = ("task", "environment", "protocol", "parameters", "samples", "digest")
    columns = tuple(TableColumn(title, left=title != "samples") for title in titles)
    rows = []
    for name, task in manifest.tasks.items():
        given = manifest.parameters(name) or {}
        parameters = ", ".join(f"{each} {_scalar(given[each])}" for each in PARAMETERS if each in given)
        cells: tuple[Entry, ...] = (name, task.environment, task.protocol, parameters, task.samples)
        rows.append(TableRow((*cells, publishable(task.digest)[:16])))
    return ResultTable(
        "Tasks", columns, tuple(rows), ("Digest: of data, prompts and parameters; equal where they are.",)
    )


def _model(agent: AgentEntry) -> str:
    if agent.is_command:
        return f"command: {publishable(agent.harness)}"
    if agent.is_model:
        scaffold = str(agent.function).rpartition("/")[2] if agent.is_scaffold else agent.command and agent.harness
        around = f"{publishable(scaffold)} around " if scaffold else ""
        return around + model_name(agent.model or agent.name)
    return f"built-in: {agent.builtin}"


def _sampling(sampling: Mapping[str, JsonValue]) -> str:
    told = [f"{name} {_scalar(sampling[name])}" for name in SAMPLING if name in sampling]
    others = sorted(publishable(name) for name in sampling if name not in SAMPLING)
    left = [name for name in ("temperature", "top_p", "max_tokens") if name not in sampling]
    return ", ".join([*told, *others, *([f"left to the endpoint: {', '.join(left)}"] if left else [])])


def _scalar(value: JsonValue) -> str:
    return publishable(str(value)) if isinstance(value, str | int | float) else "set"


class TaskShape(NamedTuple):
    run: str
    task: str
    environment: str
    shape: Mapping[str, object]
    """What shaped its trials; `selection` is how the samples were chosen, empty where all were, and in older runs."""


def task_shapes(run: str, manifest: Manifest) -> list[TaskShape]:
    plan = manifest.read_plan()
    limits, version = plan.limits.trial.model_dump(mode="json"), ".".join(manifest.version.split(".")[:2])
    shared = {"seed": plan.seed, "epochs": plan.epochs, "trial_limits": limits, "version": version}
    found = []
    for name, task in manifest.tasks.items():
        own = {"environment": task.environment, "digest": task.digest, "samples": task.samples}
        found.append(TaskShape(run, name, task.environment, {**own, "selection": task.selection, **shared}))
    return found


def unlike_tasks(tasks: Iterable[TaskShape], same: Literal["task", "environment"]) -> list[str]:
    """The differences between tasks with an equal `same`, a line for each field; empty where they are alike."""
    lines, known = [], dict[str, TaskShape]()
    for each in tasks:
        first = known.setdefault(getattr(each, same), each)
        lines += [
            f"{first.task} of {first.run}, {each.task} of {each.run}: {name}: {_shown(value)} and "
            f"{_shown(each.shape[name])}"
            for name, value in first.shape.items()
            if value != each.shape[name]
        ]
    return lines


def unlike_agents(plans: Mapping[str, Plan]) -> tuple[str, ...]:
    """The differences between agents of one name in several runs (run -> plan), a line for each field."""
    lines = []
    for one, other in combinations(plans, 2):
        agents = {agent.name: agent for agent in plans[other].agents}
        lines += [
            f"agent {agent.name}: {name}: {_shown(_field(agent, name))} in {one}, "
            f"{_shown(_field(agents[agent.name], name))} in {other}"
            for agent in plans[one].agents
            if agent.name in agents
            for name in AGENT_FIELDS
            if _field(agent, name) != _field(agents[agent.name], name)
        ]
    return tuple(lines)


def _field(agent: AgentEntry, name: str) -> object:
    return (agent.model or agent.name) if name == "model" else getattr(agent, name)


def _shown(value: object) -> str:
    text = str(value)
    return text if len(text) <= SHOWN_VALUE else f"{text[:SHOWN_VALUE]}..."
