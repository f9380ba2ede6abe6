"""Agent endpoints that misbehave: they are waited for, then the run stops with the cause; never a score."""

import json
import re
from pathlib import Path

import pytest

from tests.e2e.proctor import Server, exits, proctor, rows
from tests.e2e.scripted import GOOD, ScriptedEndpoint, reply, write_plan
from tests.pace import slowly
from tests.support import ROOT

KEY = "sk-canary-7f3a9c"
TOO_LARGE = reply(200, b'{"choices": "' + b"x" * 10_000_000 + b'"}')
MISBEHAVIOURS: dict[str, tuple[bytes | bool, str]] = {
    "429": (reply(429, b'{"error": {"message": "slow down"}}', "Retry-After: 0"), "429"),
    "500": (reply(500, b'{"error": {"message": "oops"}}'), "500"),
    "garbage JSON": (reply(200, b"{{{{ not json"), "not a chat completion"),
    "an empty choice": (reply(200, b'{"choices": []}'), "not a chat completion"),
    "ten megabytes": (TOO_LARGE, "larger than"),
    "never": (True, "no whole reply within"),
}


def plan(folder: Path, worker: Server, endpoint: ScriptedEndpoint) -> None:
    patience_s = slowly(3)
    fields = {"deadline_s": slowly(1), "patience_s": patience_s, "max_tries": 2}
    write_plan(folder, worker, endpoint.url, f"limits: {{patience_s: {patience_s}}}", **fields)


@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_an_endpoint_that_always_fails_stops_the_run_with_the_cause_and_nothing_used(
    name: str, tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always, cause = MISBEHAVIOURS[name]
    plan(tmp_path, worker, endpoint)
    ended = exits(2, "run", "plan.yaml", "--name", "r", "--limit", "2", cwd=tmp_path, SCRIPTED_KEY=KEY)
    assert [(row["score"], row["reason"]) for row in rows("r", tmp_path)] == [(None, None)] * 2
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("nothing was scored: ")
    assert cause in last
    assert "proctor resume" in ended.stderr
    assert len(endpoint.requests) >= 4
    assert all(KEY in head for head in endpoint.headers)

    endpoint.always = False
    resumed = exits(0, "resume", "r", cwd=tmp_path, SCRIPTED_KEY=KEY)
    assert [row["reason"] for row in rows("r", tmp_path)] == ["completed"] * 2
    everything = b"".join(path.read_bytes() for path in (tmp_path / "runs" / "r").rglob("*") if path.is_file())
    assert KEY.encode() not in everything
    assert KEY not in ended.stdout + ended.stderr + resumed.stdout + resumed.stderr


@pytest.mark.smoke
@pytest.mark.parametrize("name", MISBEHAVIOURS)
def test_an_endpoint_that_fails_once_costs_a_retry_and_no_score(
    name: str, tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    bad = MISBEHAVIOURS[name][0]
    endpoint.bad = [None if bad is True else bad]  # type: ignore[list-item]
    plan(tmp_path, worker, endpoint)
    exits(0, "run", "plan.yaml", "--name", "r", "--limit", "2", cwd=tmp_path, SCRIPTED_KEY=KEY)
    assert len(endpoint.requests) == 3


def test_a_budget_stops_the_run_and_a_higher_one_lets_it_go_on(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    plan(tmp_path, worker, endpoint)
    limits = ("--set", "limits.run.tokens=1500", "--set", "agents.model.sampling.max_tokens=10")
    stopped = exits(1, "run", "plan.yaml", "--name", "r", *limits, cwd=tmp_path)
    asked = len(endpoint.requests)
    assert 4 <= asked < 20
    told = (
        rf"limits.run.tokens: {110 * asked} of 1500 spent, {1500 - 110 * asked} left, the next call needs about \d+; "
    )
    told += "resume with --set limits.run.tokens=MORE"
    assert re.search(told, stopped.stderr), stopped.stderr
    status = json.loads(proctor("status", "r", "--json", cwd=tmp_path).stdout)
    assert (status["state"], status["pairs"][0]["unscored"]) == ("out_of_tokens", 0)
    assert (
        status["stopped"] == f"limits.run.tokens: {110 * asked} of 1500 spent; resume with --set limits.run.tokens=MORE"
    )
    assert status["spent"] == {"tokens": 110 * asked, "money": None}
    shown = proctor("status", "r", cwd=tmp_path).stdout
    assert f"  stopped: {status['stopped']}" in shown
    assert f"  spent: {110 * asked:,} tokens" in shown
    assert f"r: out_of_tokens, {asked}/20 trials scored" in proctor("ls", cwd=tmp_path).stdout
    exits(0, "resume", "r", "--set", "limits.run.tokens=1000000", cwd=tmp_path)
    assert len(endpoint.requests) == 20
    assert json.loads(proctor("status", "r", "--json", cwd=tmp_path).stdout)["state"] == "finished"


def test_an_endpoint_that_does_not_say_what_it_costs_is_told_with_the_limit_that_counts_estimates(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    unmetered = {name: value for name, value in json.loads(GOOD).items() if name != "usage"}
    endpoint.always = reply(200, json.dumps(unmetered).encode())
    plan(tmp_path, worker, endpoint)
    ended = exits(
        0, "run", "plan.yaml", "--limit", "2", "--set", "limits.run.tokens=5000", cwd=tmp_path, SCRIPTED_KEY=KEY
    )
    assert "tokens of model are estimated" in ended.stdout + ended.stderr
    assert "limits.run.tokens holds with the estimate" in ended.stdout + ended.stderr
    assert re.search(r"\n([\d,]+) of \1 tokens of model on db-own are estimated: no endpoint", ended.stderr)


def test_an_endpoint_that_reports_an_impossible_number_is_estimated_and_ends_no_run(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always = reply(200, GOOD.replace(b'"prompt_tokens": 100', b'"prompt_tokens": 1' + b"0" * 23))
    plan(tmp_path, worker, endpoint)
    ended = exits(0, "run", "plan.yaml", "--limit", "2", cwd=tmp_path, SCRIPTED_KEY=KEY)
    assert "tokens of model are estimated" in ended.stdout + ended.stderr
    assert len(endpoint.requests) == 2


UNWRITABLE = """\
from eval_client.store.journal import Journal

write = Journal.turn


async def turn(self, trial, journal, turn):
    await write(self, trial, journal, turn.model_copy(update={"prompt_tokens": 10**23}))


Journal.turn = turn
"""


def test_a_bug_in_the_journals_thread_ends_the_run_with_70(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    (tmp_path / "sitecustomize.py").write_text(UNWRITABLE)
    plan(tmp_path, worker, endpoint)
    ended = exits(70, "run", "plan.yaml", "--name", "r", cwd=tmp_path, PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert "OverflowError" in ended.stderr
    assert "while the journal of run 'r' wrote to its store" in ended.stderr
