"""What a client needs for a large run: memory and statements that do not grow with the trials."""

import asyncio
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import sqlalchemy as sa

from eval_client.core.capacity import CapacityLimits
from eval_client.core.events import TrialsTaken
from eval_client.core.progress import Progress
from eval_client.core.schedule import Schedule
from eval_client.core.spend import RunLimits, Spend
from eval_client.plan.plan import Plan
from eval_client.report.report import report
from eval_client.run.context import spent_so_far
from eval_client.run.runner import Runner
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.planned_trials import PlannedTrials
from eval_client.store.records import Manifest, TaskRecord
from eval_client.store.store import Store
from eval_client.trial.player import TrialPlayer

SMALL, LARGE = 20_000, 60_000
AGENTS, TASKS, EPOCHS = 2, 2, 5
"""So each pair has more trials than two statements write."""
BYTES = 16
"""What a trial more may add to the peak of memory."""


def plan() -> Plan:
    agents = [{"name": f"a{number}", "builtin": "naive"} for number in range(AGENTS)]
    tasks = [{"name": f"t{number}", "environment": "db"} for number in range(TASKS)]
    return Plan.model_validate({"agents": agents, "tasks": tasks, "epochs": EPOCHS})


def planned(trials: int) -> PlannedTrials:
    samples = {f"s{number}": f"s{number}" for number in range(trials // AGENTS // TASKS // EPOCHS)}
    return PlannedTrials(plan(), dict.fromkeys((task.name for task in plan().tasks), samples))


def create(store: Store, trials: PlannedTrials) -> None:
    record = TaskRecord(environment="db", digest="d", samples=1)
    tasks = {task.name: record for task in plan().tasks}
    manifest = Manifest(version="0", plan_path="p", plan=plan().model_dump(mode="json"), identity={}, tasks=tasks)
    store.create(manifest, trials)


def stored(folder: Path, trials: int) -> Store:
    (folder / str(trials)).mkdir()
    made = Store(connect(sqlite_url(folder / str(trials))), "r")
    create(made, planned(trials))
    return made


def runner(of: Plan) -> Runner:
    """No task has a slot, so nothing is played and there is no player."""
    limits = CapacityLimits(
        endpoint_of={agent.name: "e" for agent in of.agents},
        concurrency={agent.name: of.concurrency_of(agent) for agent in of.agents},
        pairs=of.pairs(),
        pooled=(),
    )
    schedule = Schedule(limits, Progress(planned={}, scored={}, score_sum={}), attempts=1)
    return Runner(schedule, cast(TrialPlayer, None), Spend(RunLimits(), {}), lambda: None)


@pytest.mark.thorough
def test_the_memory_of_a_start_does_not_grow_with_the_trials(tmp_path: Path) -> None:
    def started(trials: int) -> int:
        store = stored(tmp_path, trials)
        return peak(lambda: asyncio.run(begin(store)))

    async def begin(store: Store) -> None:
        runner(plan()).handle(TrialsTaken(store.pending()))

    started(SMALL // 10)  # what is compiled once is there
    small, large = started(SMALL), started(LARGE)
    assert large - small < BYTES * (LARGE - SMALL)


@pytest.mark.thorough
def test_the_memory_of_writing_a_new_run_does_not_grow_with_the_trials(tmp_path: Path) -> None:
    def written(trials: int) -> int:
        (tmp_path / str(trials)).mkdir()
        store = Store(connect(sqlite_url(tmp_path / str(trials))), "r")
        return peak(lambda: create(store, planned(trials)))

    written(SMALL // 10)  # what is compiled once is there
    small, large = written(SMALL), written(LARGE)
    assert large - small < BYTES * (LARGE - SMALL)


def test_a_report_needs_as_many_statements_for_many_trials_as_for_few(tmp_path: Path) -> None:
    def statements(trials: int) -> int:
        store, seen = stored(tmp_path, trials), list[str]()
        sa.event.listen(store.engine, "before_cursor_execute", lambda *told: seen.append(told[2]))
        spent_so_far(plan(), store, store.pair_totals())
        report(store)
        return len(seen)

    assert statements(SMALL) == statements(SMALL // 10)


def peak(work: Callable[[], object]) -> int:
    """The most memory that some work holds at once, in bytes of Python's own objects."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
