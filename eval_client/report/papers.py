"""The papers' tables of runs, from their stores: AgentBench's, SimulBench's and STSS's."""

from collections.abc import Container, Iterator, Sequence

from eval_client.plan.entries import AgentEntry
from eval_client.plan.plan import Plan
from eval_client.report.agentbench import ENVIRONMENTS, TEXT_PROTOCOL, PlayedTask, agent_rows, agentbench_tables
from eval_client.report.configuration_tables import TaskShape, task_shapes, unlike_agents, unlike_tasks
from eval_client.report.pair_report import RunReport
from eval_client.report.report import report
from eval_client.report.scrub import model_name, publishable
from eval_client.store.connection import StoreError
from eval_client.store.records import Manifest
from eval_client.store.store import Store
from proctor.config.task import TaskDefinition
from proctor.plugins import FinishedTrial, RecordedPair
from proctor.registry import FORMS, entry_points
from proctor.tables.table import ResultTable

TITLES = {"simulbench": "SimulBench", "stss": "STSS"}
"""Environments whose papers have tables of their own, with the title of the section."""


def played_tasks(stores: Sequence[Store], named: Sequence[str]) -> list[PlayedTask]:
    """What each agent reached on AgentBench's tasks in the runs; `named` chooses among tasks of one environment.

    Raises StoreError where the choice is open, where runs are not alike, or where none has such a task.
    """
    manifests = {store.run: store.manifest() for store in stores}
    reports = [report(store) for store in stores]
    facts = [fact for run, manifest in manifests.items() for fact in task_shapes(run, manifest)]
    chosen = _chosen([fact for fact in facts if fact.environment in ENVIRONMENTS], named)
    plans = {run: manifest.read_plan() for run, manifest in manifests.items()}
    if unlike := [*unlike_agents(plans), *unlike_tasks(chosen, "environment")]:
        raise StoreError("these runs can't stand in one table:\n" + "\n".join(f"  {line}" for line in unlike))
    wanted = {(fact.run, fact.task) for fact in chosen}
    return [each for made in reports for each in _played(made, manifests[made.run], plans[made.run], wanted)]


def finished_trials(store: Store, tasks: Container[str]) -> Iterator[FinishedTrial]:
    """The trials of some tasks that have ended, in the run's order."""
    for pair in store.pair_totals():
        if pair.task in tasks:
            for sample, epoch, finish in store.finishes(pair.agent, pair.task):
                yield FinishedTrial(
                    run=store.run, agent=pair.agent, task=pair.task, sample=sample, epoch=epoch, finish=finish
                )


def paper_tables(form: str, stores: Sequence[Store], named: Sequence[str]) -> list[ResultTable]:
    """The tables of a paper over runs; `named` are the tasks to take, all where there are none.

    Raises StoreError where a task is unknown, or where no trial is of the paper's kind.
    """
    if form == "agentbench":
        return agentbench_tables(agent_rows(played_tasks(stores, named)))
    reports = [report(store) for store in stores]
    known = dict.fromkeys(pair.task for made in reports for pair in made.pairs)
    if unknown := [name for name in named if name not in known]:
        raise StoreError(f"--task {unknown[0]}: no such task; the runs have: {', '.join(known)}")
    tasks = set(named) or set(known)
    trials = [trial for store in stores for trial in finished_trials(store, tasks)]
    tables = made_tables(form, trials, [pair for made in reports for pair in recorded_pairs(made, tasks)])
    if not tables:
        raise StoreError(f"{', '.join(store.run for store in stores)}: no finished trial that --form {form} takes")
    return tables


def made_tables(form: str, trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> list[ResultTable]:
    """The tables of an environment's paper that have a row; its package is imported only here."""
    return [table for entry in entry_points(FORMS, form) for table in entry.load()(trials, pairs)]


def recorded_pairs(made: RunReport, tasks: Container[str]) -> list[RecordedPair]:
    """The pairs of some tasks, those without a finished trial too."""
    return [
        RecordedPair(run=made.run, agent=pair.agent, task=pair.task, planned=pair.planned, comparable=pair.comparable)
        for pair in made.pairs
        if pair.task in tasks
    ]


def _chosen(facts: Sequence[TaskShape], named: Sequence[str]) -> list[TaskShape]:
    """The facts of one task for each run and environment. Raises StoreError."""
    known = {fact.task: fact.environment for fact in facts}
    if not known:
        raise StoreError(f"no task of AgentBench in these runs; its environments are: {', '.join(ENVIRONMENTS)}")
    if unknown := [name for name in named if name not in known]:
        raise StoreError(f"--task {unknown[0]}: no such task of AgentBench; the runs have: {', '.join(known)}")
    settled = {known[name] for name in named}
    chosen = [fact for fact in facts if fact.task in named or fact.environment not in settled]
    first: dict[tuple[str, str], str] = {}
    for fact in chosen:
        other = first.setdefault((fact.run, fact.environment), fact.task)
        if other != fact.task:
            raise StoreError(
                f"run {fact.run} has two tasks of {fact.environment}: {other} and {fact.task}; choose one with --task"
            )
    return chosen


def _played(made: RunReport, manifest: Manifest, plan: Plan, wanted: set[tuple[str, str]]) -> Iterator[PlayedTask]:
    agents = {agent.name: agent for agent in plan.agents}
    parameters = {task.name: task.parameters for task in plan.tasks if isinstance(task, TaskDefinition)}
    for pair in made.pairs:
        if (made.run, pair.task) in wanted:
            yield PlayedTask(
                run=made.run,
                pair=pair,
                samples=manifest.tasks[pair.task].samples,
                model_version=_model_version(agents.get(pair.agent)),
                protocol=str(parameters.get(pair.task, {}).get("protocol", TEXT_PROTOCOL)),
            )


def _model_version(agent: AgentEntry | None) -> str | None:
    """The model that an agent's endpoint is asked for, without the agent's own name at its beginning."""
    if agent is None or agent.builtin is not None or agent.model in (None, agent.name):
        return None
    return str(agent.model).removeprefix(f"{agent.name}-")


def papers(store: Store, made: RunReport, *, large: bool) -> list[dict[str, object]]:
    """Each paper whose tables have a row for the run, for a page that others read.

    AgentBench's where a run has two of its tasks or more, and of a large run without its validity.
    """
    found: list[dict[str, object]] = []
    if len({pair.environment for pair in made.pairs} & set(ENVIRONMENTS)) > 1:
        paper: dict[str, object] = {"id": "agentbench", "title": "AgentBench", "tables": (), "problem": ""}
        try:
            tables = agentbench_tables(agent_rows(played_tasks([store], ())), validity=not large)
            found.append({**paper, "tables": list(map(_scrubbed, tables))})
        except StoreError as error:
            found.append({**paper, "problem": f"No table: {publishable(str(error))}."})
    for environment, title in TITLES.items():
        tasks = {pair.task for pair in made.pairs if pair.environment == environment}
        trials = list(finished_trials(store, tasks))
        tables = made_tables(environment, trials, recorded_pairs(made, tasks)) if tasks else []
        if tables:
            found.append({"id": environment, "title": title, "tables": list(map(_scrubbed, tables)), "problem": ""})
    return found


def _scrubbed(table: ResultTable) -> ResultTable:
    """The table with notes that name no address; cells of texts are names of agents and models."""
    rows = tuple(
        row._replace(
            cells=tuple(model_name(cell) if isinstance(cell, str) else cell for cell in row.cells),
            notes=tuple(map(publishable, row.notes)),
        )
        for row in table.rows
    )
    return table._replace(rows=rows, notes=tuple(map(publishable, table.notes)))
