"""The papers' tables of a run: AgentBench's, SimulBench's and STSS's."""

from collections.abc import Sequence
from typing import NamedTuple

from eval_client.report.agentbench import ENVIRONMENTS, agent_rows, agentbench_tables
from eval_client.report.bench_runs import finished_trials, made_tables, played_tasks, recorded_pairs
from eval_client.report.pair_report import RunReport
from eval_client.report.published.scrub import model_name, publishable
from eval_client.store.connection import StoreError
from eval_client.store.store import Store
from proctor.tables.table import ResultTable

TITLES = {"simulbench": "SimulBench", "stss": "STSS"}
"""Environments whose papers have tables of their own, with the title of the section."""


class Paper(NamedTuple):
    """The tables of a paper."""

    id: str
    title: str
    tables: Sequence[ResultTable]
    problem: str = ""
    """Why there is none."""


def papers(store: Store, made: RunReport, *, large: bool) -> list[Paper]:
    """Each paper whose tables have a row for the run; of a large run without AgentBench's validity."""
    return [*_agentbench(store, made, large=large), *_worlds(store, made)]


def _agentbench(store: Store, made: RunReport, *, large: bool) -> list[Paper]:
    """AgentBench's tables, where a run has two of its tasks or more."""
    if len({pair.environment for pair in made.pairs} & set(ENVIRONMENTS)) < 2:
        return []
    try:
        rows = agent_rows(played_tasks([store], ()))
    except StoreError as error:
        return [Paper("agentbench", "AgentBench", (), f"No table: {publishable(str(error))}.")]
    return [_paper("agentbench", "AgentBench", agentbench_tables(rows, validity=not large))]


def _worlds(store: Store, made: RunReport) -> list[Paper]:
    """The tables that an environment's own command prints."""
    sections = []
    for environment, title in TITLES.items():
        tasks = {pair.task for pair in made.pairs if pair.environment == environment}
        if tasks:
            trials = list(finished_trials(store, tasks))
            tables = made_tables(environment, trials, recorded_pairs(made, tasks))
            sections += [_paper(environment, title, tables)] if tables else []
    return sections


def _paper(name: str, title: str, tables: Sequence[ResultTable]) -> Paper:
    return Paper(name, title, tuple(map(_scrubbed, tables)))


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
