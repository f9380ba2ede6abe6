"""Whether a score may stand beside published ones: the task's word, and what the agent's requests had."""

import re
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import JsonValue

from eval_client.cli.doctor.tasks import data_findings
from eval_client.plan.plan import Plan
from eval_client.report.report import report
from eval_client.run.preflight import new_run
from eval_client.store.connection import connect, sqlite_url
from eval_client.store.records import Manifest, TaskRecord, Trial
from eval_client.store.store import Store
from task_server.wire.messages import SampleList
from task_server.worker.hosted_task import read_samples
from tests.toy_environment import Bare

PLAN: dict[str, object] = {
    "agents": [{"name": "a", "endpoint": "http://127.0.0.1:1/v1"}],
    "tasks": [{"name": "t", "environment": "simulbench"}],
}
PUBLISHED: dict[str, object] = {"temperature": 0, "max_tokens": 1024}


class Rounds(Bare):
    """Five turns."""

    max_turns: ClassVar[int | None] = 5


class Own(Rounds):
    """Its samples are not the published ones."""

    def not_comparable_because(self) -> str:
        return "own samples"


def said(folder: Path, agent: dict[str, object], **task: object) -> str | None:
    """What a report says of an agent on a task."""
    folder.mkdir(exist_ok=True)
    store = Store(connect(sqlite_url(folder)), "r")
    plan = {"agents": [{"name": "a", **agent}], "tasks": [{"name": "t", "environment": "simulbench"}]}
    record = {"environment": "simulbench", "digest": "d", "samples": 1, "published_sampling": PUBLISHED, **task}
    manifest = {"version": "1", "plan_path": "p", "plan": plan, "identity": {}, "tasks": {"t": record}}
    trial = Trial(id=0, agent="a", task="t", sample="s", epoch=0)
    store.create(Manifest.model_validate(manifest), [trial])
    (pair,) = report(store).pairs
    assert pair.metrics == {}, "nothing is scored"
    return pair.comparable


@pytest.mark.parametrize(
    ("sampling", "missing"),
    [
        ({"temperature": 0, "max_tokens": 1024}, None),
        ({"temperature": 0.0, "max_completion_tokens": 1024}, None),
        ({"temperature": False, "max_tokens": 1024}, "temperature: 0"),
        ({"temperature": 0, "max_tokens": 5}, "max_tokens: 1024"),
        ({"max_tokens": 1024}, "temperature: 0"),
        ({"temperature": 1}, "temperature: 0, max_tokens: 1024"),
        ({}, "temperature: 0, max_tokens: 1024"),
    ],
)
def test_an_agent_must_be_asked_as_the_published_ones_were(
    sampling: dict[str, object], missing: str | None, tmp_path: Path
) -> None:
    agent: dict[str, object] = {"endpoint": "http://127.0.0.1:1/v1", "sampling": sampling}
    why = f"the published agents had {missing}; set it in the `sampling` of a"
    assert said(tmp_path, agent) == (why if missing else None)


@pytest.mark.parametrize(
    "change",
    [
        *({"sampling": {"temperature": 0, "max_tokens": 1024, name: 1}} for name in ("top_p", "seed", "stop", "x")),
        {"sampling": {"temperature": 0, "max_tokens": 1024, "max_completion_tokens": 1024}},
        {"sampling": {"temperature": 0.001, "max_tokens": 1024}},
        {"sampling": {"temperature": "0", "max_tokens": 1024}},
        {"sampling": {"temperature": 0, "max_tokens": 1025}},
        {"sampling": {"temperature": 0, "max_tokens": None}},
        {"sampling": {"temperature": 0, "max_tokens": 1024}, "system_role": "user"},
        {"sampling": {"temperature": 0, "max_tokens": 1024}, "reasoning": "never"},
    ],
)
def test_nothing_beside_the_published_requests_is_let_by(change: dict[str, object], tmp_path: Path) -> None:
    why = said(tmp_path, {"endpoint": "http://127.0.0.1:1/v1", **change})
    assert why is not None
    assert re.search(r"the published agents had .* of (the `sampling` of )?a$", why)


def test_what_the_task_says_comes_first_and_built_in_agents_ask_nobody(tmp_path: Path) -> None:
    assert said(tmp_path / "a", {"endpoint": "http://127.0.0.1:1/v1"}, comparable="own samples") == "own samples"
    assert said(tmp_path / "b", {"builtin": "reference"}) is None
    assert "how the function a asks a model" in str(said(tmp_path / "f", {"builtin": "function"}))
    assert said(tmp_path / "c", {"endpoint": "http://127.0.0.1:1/v1"}, published_sampling={}) is None


def test_a_run_over_some_samples_stands_beside_no_published_score() -> None:
    plan = Plan.model_validate(PLAN)

    def not_comparable_because(limit: int | None, why: str | None = None) -> str | None:
        listed = SampleList(task="t", environment="simulbench", samples=("1", "2", "3"), digest="d", comparable=why)
        return new_run(plan, "p", (), limit, {"t": listed})[0].tasks["t"].comparable

    assert not_comparable_because(2) == "only 2 of 3 samples are played; leave --limit out"
    assert (not_comparable_because(3), not_comparable_because(None), not_comparable_because(1, "own samples")) == (
        None,
        None,
        "own samples",
    )


@pytest.mark.parametrize(
    ("limits", "rounds", "why"),
    [
        ({}, 8, None),
        ({"turns": 8}, 8, None),
        ({"turns": 100}, 8, None),
        ({"turns": 7}, 8, "limits.trial.turns is 7; published trials had 8 turns; leave it out"),
        ({"turns": 100}, None, "limits.trial.turns is 100; leave it out"),
        (
            {"tokens": 1_000_000},
            8,
            "limits.trial.tokens is 1000000, and published trials had no such limit; leave it out",
        ),
        ({"seconds": 60}, 8, "limits.trial.seconds is 60.0, and published trials had no such limit; leave it out"),
    ],
)
def test_limits_below_the_published_ones_take_the_claim_back(
    limits: dict[str, float], rounds: int | None, why: str | None
) -> None:
    plan = Plan.model_validate({**PLAN, "limits": {"trial": limits}})
    listed = SampleList(task="t", environment="simulbench", samples=("1",), digest="d", published_rounds=rounds)
    assert new_run(plan, "p", (), None, {"t": listed})[0].tasks["t"].comparable == why
    assert doctor_says(plan, {}, rounds) == why


def test_doctor_names_the_agent_that_is_asked_otherwise() -> None:
    why = "the published agents had temperature: 0; set it in the `sampling` of a"
    assert doctor_says(Plan.model_validate(PLAN), {"temperature": 0}, None) == why


def doctor_says(plan: Plan, sampling: dict[str, JsonValue], rounds: int | None) -> str | None:
    """Why a task can't be compared whose published agents had this sampling and so many turns."""

    class Played(Bare):
        max_turns: ClassVar[int | None] = rounds

        def published_sampling(self) -> dict[str, JsonValue]:
            return sampling

    found = [each.what for each in data_findings(Played(), "t", plan, "d") if each.id == "not-comparable"]
    return found[0].removeprefix("task t: ") if found else None


def test_a_worker_tells_the_published_rounds_only_where_scores_can_be_compared() -> None:
    assert [read_samples("t", "e", environment()).published_rounds for environment in (Rounds, Own)] == [5, None]


def test_a_task_record_of_an_earlier_version_says_nothing_of_agents() -> None:
    assert TaskRecord.model_validate({"environment": "e", "digest": "d", "samples": 1}).published_sampling == {}
