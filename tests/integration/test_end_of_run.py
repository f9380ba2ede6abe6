"""The end of a run bears a database that is away for a moment: summaries are kept, and the report is shown."""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import sqlalchemy as sa

from eval_client.cli.play import error_console, show_result
from eval_client.core.progress import RunResult
from eval_client.plan.plan import Plan
from eval_client.report.report import report
from eval_client.run.execute import summarize
from eval_client.run.request import RunRequest
from eval_client.store.connection import connect, retry_until_available, sqlite_url
from eval_client.store.journal import Cost, Journal
from eval_client.store.records import Manifest, TaskRecord, Trial
from eval_client.store.store import Store
from proctor.types import Finish, FinishReason, Summary, Usage
from task_server.client.client import TaskClient

PLAN = {
    "agents": [{"name": "a", "endpoint": "http://127.0.0.1:1/v1", "model": "m"}],
    "tasks": [{"name": "t", "environment": "ltp"}],
}


class Summarizer(TaskClient):
    """A task server that counts."""

    def __init__(self) -> None:
        pass

    async def summarize(
        self, task: str, finishes: Sequence[Finish], *numbers: Sequence[int], digest: str | None = None
    ) -> Summary:
        assert digest == "d"
        return Summary(primary="count", metrics={"count": float(len(finishes))})


@pytest.fixture
async def played(tmp_path: Path) -> Store:
    """A run whose one trial is scored."""
    store = Store(connect(sqlite_url(tmp_path)), "r")
    trial = Trial(id=0, agent="a", task="t", sample="s", epoch=0)
    tasks = {"t": TaskRecord(environment="ltp", digest="d", samples=1)}
    store.create(Manifest(version="1", plan_path="p", plan=PLAN, identity={}, tasks=tasks), [trial])
    journal = Journal(store, store.take_over())
    await journal.begin(trial, 1, 0, "0" * 32)
    await journal.finish(trial, 1, "w", Finish(reason=FinishReason.COMPLETED, score=1.0), Cost(1, Usage(1, 1), 1.0))
    await journal.close()
    return store


@pytest.fixture
def away_for_a_moment(played: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """From now on every statement fails when it is first made; those that did so far."""
    failed: set[str] = set()

    def fail(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement not in failed:
            failed.add(statement)
            raise sa.exc.OperationalError(statement, {}, sqlite3.OperationalError("the database is starting up"))

    monkeypatch.setattr("eval_client.store.connection.AGAIN_S", 0.0)
    sa.event.listen(played.engine, "before_cursor_execute", fail)
    yield failed
    sa.event.remove(played.engine, "before_cursor_execute", fail)


async def test_summaries_are_kept(played: Store, away_for_a_moment: set[str]) -> None:
    await summarize(played, Summarizer(), {"t": "d"})
    assert len(away_for_a_moment) >= 4
    kept = await retry_until_available(played.summaries, aside=False)
    assert kept == {("a", "t"): (1, Summary(primary="count", metrics={"count": 1.0}))}


async def test_a_summary_without_its_primary_metric_is_not_kept_where_something_is_scored(played: Store) -> None:
    class Misnaming(Summarizer):
        async def summarize(
            self, task: str, finishes: Sequence[Finish], *numbers: Sequence[int], digest: str | None = None
        ) -> Summary:
            return Summary(primary="count", metrics={"counts": 1.0})

    await summarize(played, Misnaming(), {"t": "d"})
    assert played.summaries() == {}
    assert report(played).pairs[0].value == 1.0


def test_the_report_is_shown(
    played: Store, away_for_a_moment: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    order = RunRequest(Plan.model_validate(PLAN), "p", played, tmp_path, resume=False)
    assert show_result(order, RunResult(None, {}), error_console()) == 0
    assert len(away_for_a_moment) >= 4
    assert "mean_score" in capsys.readouterr().out
