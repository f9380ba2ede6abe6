"""Text and tools are two tasks: a run keeps to the one it began with, and its report names it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import pytest

from eval_client.plan.load import with_overrides
from eval_client.plan.plan import Plan
from eval_client.report.report import report
from eval_client.report.run_tables import report_tables
from eval_client.run.preflight import PreflightError, check_plan, check_tasks, new_run
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.records import Manifest
from eval_client.store.store import Store
from proctor import registry
from proctor.environment import Agent, Environment
from proctor.tables.command import rendered
from proctor.types import Finish, TaskProtocol
from task_server.wire.messages import SampleList
from tests.support import unscored


class Spoken(Environment):
    """Has both protocols."""

    protocol: Literal["text", "tools"] = "text"

    def samples(self) -> Sequence[str]:
        return ("1", "2")

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        raise AssertionError("nothing is played")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load", lambda name: Spoken)


def plan() -> Plan:
    tasks = [
        {"name": "told", "environment": "spoken"},
        {"name": "called", "environment": "spoken", "parameters": {"protocol": "tools"}},
    ]
    return Plan.model_validate({"agents": [{"name": "a", "endpoint": "http://127.0.0.1:1/v1"}], "tasks": tasks})


def listed(called: TaskProtocol = "tools") -> dict[str, SampleList]:
    """The sample lists of both tasks; `called` is the protocol of the second."""
    return {
        name: SampleList(
            task=name, environment="spoken", samples=("1", "2"), digest="d", protocol=protocol, clusters=("w", "w")
        )
        for name, protocol in (("told", "text"), ("called", called))
    }


def begun(folder: Path) -> tuple[Store, Manifest]:
    store = Store(connect(sqlite_url(folder)), "r")
    manifest, trials = new_run(plan(), "p", (), 1, listed())
    store.create(manifest, trials)
    return store, manifest


def test_a_resume_with_another_protocol_is_refused_with_that_word(tmp_path: Path) -> None:
    _, manifest = begun(tmp_path)
    check_plan(manifest, plan())
    with pytest.raises(PreflightError, match=r"tasks\.told\.parameters\.protocol: None -> 'tools'"):
        check_plan(manifest, with_overrides(plan(), ["tasks.told.parameters.protocol=tools"]))
    with pytest.raises(PreflightError, match=r"tasks\.called\.parameters\.protocol: 'tools' -> 'text'"):
        check_plan(manifest, with_overrides(plan(), ["tasks.called.parameters.protocol=text"]))


def test_a_controller_that_serves_another_protocol_is_refused_with_that_word(tmp_path: Path) -> None:
    _, manifest = begun(tmp_path)
    check_tasks(manifest, listed())
    with pytest.raises(PreflightError, match=r"called: its protocol changed since the run began .tools -> text"):
        check_tasks(manifest, listed("text"))


def test_a_report_names_the_protocol_of_each_task_and_keeps_them_apart(tmp_path: Path) -> None:
    store, _ = begun(tmp_path)
    made = report(store)
    assert {(pair.task, pair.protocol) for pair in made.pairs} == {("told", "text"), ("called", "tools")}
    text = rendered(report_tables([made], full=True), "text", 120)
    assert "told (spoken)" in text
    assert "called (spoken, tools)" in text
    assert text.count("called (tools)") == 2, "in validity and costs"


def test_trials_have_the_clusters_of_the_sample_list(tmp_path: Path) -> None:
    store, _ = begun(tmp_path)
    assert [(row["sample"], row["cluster"]) for row in store.trial_rows()] == [("1", "w")] * 2
    assert {trial.cluster for trial in unscored(store)} == {"w"}
