"""Chosen trials are played again, and what they were before is kept."""

import json
from pathlib import Path
from typing import Any

import pytest

from eval_client.store.connection import connect, sqlite_url
from eval_client.store.store import Store
from tests.database_servers import postgresql
from tests.e2e.proctor import Server, exits, proctor
from tests.e2e.scripted import ScriptedEndpoint, reply
from tests.support import unscored

PLAN = """\
name: again
controller: {worker}
endpoints: [{{name: e, base_url: "{url}", max_tries: 1}}]
agents: [{{name: m, endpoint: e, concurrency: 1}}]
tasks: [{{name: db-own, samples: {{include: ["insert-*"]}}}}]
limits: {{attempts: 1}}
"""
BROKEN = reply(400, b"broken in this way")


@pytest.fixture
def folder(tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint) -> Path:
    """With a run `r` of four trials, two of them without a score."""
    (tmp_path / "plan.yaml").write_text(PLAN.format(worker=worker.url, url=endpoint.url))
    endpoint.bad = [BROKEN, BROKEN]
    assert proctor("run", "plan.yaml", "--name", "r", cwd=tmp_path).returncode == 1
    assert len(endpoint.requests) == 4
    return tmp_path


def trials(folder: Path, *options: str) -> list[dict[str, Any]]:
    assert proctor("export", "r", "--to", "r.jsonl", *options, cwd=folder).returncode == 0
    return [json.loads(line) for line in (folder / "r.jsonl").read_text().splitlines()]


def test_a_trial_with_a_score_gets_another_and_the_first_stays_as_an_attempt(
    folder: Path, endpoint: ScriptedEndpoint
) -> None:
    before = trials(folder)
    scored = [row["id"] for row in before if row["score"] is not None]
    assert len(scored) == 2
    ended = exits(1, "resume", "r", "--retry", str(scored[0]), cwd=folder)
    assert "to play again: 1 trial, 1 with a score" in ended.stderr
    assert len(endpoint.requests) == 5
    after = trials(folder)
    changed = [row["id"] for row, old in zip(after, before, strict=True) if row != old]
    assert changed == [scored[0]]
    again = after[scored[0]]
    assert (again["attempts"], again["turns"]) == (2, 1)
    assert again["prompt_tokens"] == 2 * before[scored[0]]["prompt_tokens"]
    shown = proctor("show", "r", str(scored[0]), cwd=folder).stdout
    assert "attempt 1: retried" in shown
    assert "its score was 0.000 (completed), by journal 0" in " ".join(shown.split())
    assert "turns of journal 1; others: 0" in shown
    (first, _) = json.loads(proctor("show", "r", str(scored[0]), "--json", cwd=folder).stdout)["attempts"]
    assert first["finish"] == before[scored[0]]["finish"]
    report = proctor("report", "r", cwd=folder).stdout
    assert "1 trial of m had a score and got another by `proctor resume --retry`" in report
    assert "2/4" in report


def test_only_trials_of_a_cause_are_played_again_and_the_others_wait_for_a_resume(
    folder: Path, endpoint: ScriptedEndpoint
) -> None:
    unscored = [row["id"] for row in trials(folder) if row["score"] is None]
    told = exits(0, "resume", "r", "--retry", "cause=Broken in THIS", "--dry-run", cwd=folder)
    assert [int(line.partition(":")[0]) for line in told.stdout.splitlines()] == unscored
    assert len(endpoint.requests) == 4
    sample = trials(folder)[unscored[0]]["sample"]
    exits(1, "resume", "r", "--retry", "cause=broken in this way", "--retry", f"sample=db-own/{sample}", cwd=folder)
    assert len(endpoint.requests) == 5
    assert [row["id"] for row in trials(folder) if row["score"] is None] == unscored[1:]
    assert proctor("resume", "r", cwd=folder).returncode == 0
    assert len(endpoint.requests) == 6
    assert "played again by `proctor resume --retry`" not in proctor("report", "r", cwd=folder).stdout


def test_a_retry_that_is_killed_is_finished_by_a_resume(folder: Path, endpoint: ScriptedEndpoint) -> None:
    assert proctor("resume", "r", cwd=folder).returncode == 0
    store = Store(connect(sqlite_url(folder / "runs" / "r")), "r")
    store.play_again([0, 3], store.take_over())
    assert [trial.id for trial in unscored(store)] == [0, 3]
    told = json.loads(proctor("report", "r", "--json", cwd=folder).stdout)
    assert [(pair["scored"], pair["planned"], pair["primary"]) for pair in told["pairs"]] == [(2, 4, "mean_score")]
    exits(0, "resume", "r", cwd=folder)
    assert all(row["score"] is not None for row in trials(folder))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--dry-run",), "--dry-run: name what to play again by --retry"),
        (("--retry", "9"), "--retry trial=9: no such trial; they are m@db-own/insert-00000"),
        (("--retry", "m@db-own/nothing"), "or numbers from 0 to 3"),
        (("--retry", "cause=rate limit"), "no trial is unscored for that; causes are: "),
        (("--retry", "sample=select-*"), "--retry sample=select-*: matches nothing; there are insert-00000"),
    ],
)
def test_what_is_not_there_is_not_played_again(folder: Path, options: tuple[str, ...], says: str) -> None:
    ended = exits(2, "resume", "r", *options, cwd=folder)
    assert says in ended.stderr


def test_what_a_refused_run_would_play_again_is_not_said(folder: Path, worker: Server) -> None:
    plan = (folder / "plan.yaml").read_text()
    (folder / "plan.yaml").write_text(plan.replace(worker.url, "http://127.0.0.1:9"))
    ended = exits(2, "resume", "r", "--retry", "0", cwd=folder)
    assert "to play again" not in ended.stderr


@pytest.mark.postgresql
def test_in_postgresql_too_only_the_chosen_trials_are_played(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    (tmp_path / "plan.yaml").write_text(PLAN.format(worker=worker.url, url=endpoint.url))
    with postgresql() as database:
        endpoint.bad = [BROKEN, BROKEN]
        assert proctor("run", "plan.yaml", "--name", "r", cwd=tmp_path, PROCTOR_STORE=database.url).returncode == 1
        store = Store(connect(database.url), "r")
        left = [trial.id for trial in unscored(store)]
        (scored, *_) = {0, 1, 2, 3} - {*left}
        chosen = ("--retry", str(left[0]), "--retry", str(scored))
        exits(1, "resume", "r", *chosen, cwd=tmp_path, PROCTOR_STORE=database.url)
        assert [trial.id for trial in unscored(store)] == left[1:]
        assert len(endpoint.requests) == 6
        store.engine.dispose()
