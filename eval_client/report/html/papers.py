"""The papers' tables of a run: AgentBench's, SimulBench's and STSS's."""

from collections.abc import Sequence

from eval_client.report.bench_runs import finished_trials, played_tasks, recorded_pairs
from eval_client.report.html.blocks import Section, TableBlock, TextBlock
from eval_client.report.html.scrub import model_name, publishable
from eval_client.report.report import RunReport
from eval_client.report.tables.agentbench import ENVIRONMENTS, agent_rows, agentbench_tables
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from proctor.plugins import FinishedTrial, RecordedPair
from proctor.tables.table import ResultTable

TITLES = {"simulbench": "SimulBench", "stss": "STSS"}
"""Environments whose papers have tables of their own, with the title of the section."""


def papers_sections(store: Store, made: RunReport, *, large: bool) -> list[Section]:
    """A section for each paper whose tables have a row for the run; of a large run without AgentBench's validity."""
    return [*_agentbench(store, made, large=large), *_worlds(store, made)]


def _agentbench(store: Store, made: RunReport, *, large: bool) -> list[Section]:
    """AgentBench's tables, where a run has two of its tasks or more."""
    if len({pair.environment for pair in made.pairs} & set(ENVIRONMENTS)) < 2:
        return []
    try:
        rows = agent_rows(played_tasks([store], ()))
    except StoreError as error:
        return [Section("agentbench", "AgentBench", (TextBlock((f"No table: {publishable(str(error))}.",)),))]
    return [_section("agentbench", "AgentBench", agentbench_tables(rows, validity=not large))]


def _worlds(store: Store, made: RunReport) -> list[Section]:
    """The tables that an environment's own command prints."""
    sections = []
    for environment, title in TITLES.items():
        tasks = {pair.task for pair in made.pairs if pair.environment == environment}
        if tasks:
            trials = list(finished_trials(store, tasks))
            tables = _tables(environment, trials, recorded_pairs(made, tasks))
            sections += [_section(environment, title, tables)] if tables else []
    return sections


def _tables(environment: str, trials: Sequence[FinishedTrial], pairs: Sequence[RecordedPair]) -> list[ResultTable]:
    """An environment's tables that have a row. Its package is imported only where a run has played it."""
    if environment == "simulbench":
        from environments.simulbench.tables.paper import ratings_table, verdicts_table

        makers = (ratings_table, verdicts_table)
    else:
        from environments.stss.tables import action_table, language_table

        makers = (language_table, action_table)
    return [table for table in (make(trials, pairs) for make in makers) if table.rows]


def _section(name: str, title: str, tables: Sequence[ResultTable]) -> Section:
    return Section(name, title, tuple(TableBlock(_scrubbed(table)) for table in tables))


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
