"""Endpoints that refuse every request by a status such as 400, as LiteLLM's proxy does, and contexts that end."""

import json
import re
from pathlib import Path

import pytest

from tests.e2e.proctor import Server, exits, rows
from tests.e2e.scripted import GOOD, ScriptedEndpoint, reply, write_plan

WRONG_MODEL = "/chat/completions: Invalid model name passed in model=modle. Call `/v1/models` to view the models."
WRONG_KEY = "No connected db."
OTHER = "The text was flagged."
TOO_LONG = "litellm.ContextWindowExceededError: litellm.BadRequestError: SomeException - too much. Fallbacks=None"


def refusal(message: str, status: int = 400) -> bytes:
    """A reply as LiteLLM's proxy makes it."""
    return reply(
        status, json.dumps({"error": {"message": message, "type": None, "param": None, "code": "400"}}).encode()
    )


@pytest.mark.parametrize(("message", "most"), [(WRONG_MODEL, 2), (WRONG_KEY, 2), (OTHER, 9)])
def test_an_agent_whose_calls_are_all_refused_is_stopped_and_a_resume_plays_the_rest(
    message: str, most: int, tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always = refusal(message)
    write_plan(tmp_path, worker, endpoint.url, max_tries=2)
    refused = exits(2, "run", "plan.yaml", "--name", "r", cwd=tmp_path)
    last = refused.stderr.strip().splitlines()[-1]
    assert last.startswith(
        "nothing was scored: agent model stopped, its trials of db-own stay pending: model model at "
    )
    assert message.split(".", maxsplit=1)[0] in last
    assert "(variable SCRIPTED_KEY is unset)" in last
    assert ("like 8 calls in a row" in last) == (message == OTHER)
    assert most - 1 <= len(endpoint.requests) <= most
    kept = rows("r", tmp_path)
    assert len([row for row in kept if row["reason"] is None]) >= 20 - most
    assert [row["score"] for row in kept] == [None] * 20

    endpoint.always = False
    exits(0, "resume", "r", cwd=tmp_path)
    assert [row["reason"] for row in rows("r", tmp_path)] == ["completed"] * 20


@pytest.mark.parametrize("message", [WRONG_MODEL, WRONG_KEY, OTHER])
@pytest.mark.parametrize("status", [400, 401, 404, 500])
def test_a_short_run_that_scores_nothing_ends_with_its_one_cause_and_the_fix(
    status: int, message: str, tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    counted = iter(range(100, 999))
    endpoint.rule = lambda _request: refusal(f"{message} (request req_{next(counted)})", status)
    write_plan(tmp_path, worker, endpoint.url, max_tries=2)
    settings = "--limit=2", "--set=endpoints.scripted.patience_s=8"
    refused = exits(2, "run", "plan.yaml", "--name", "r", *settings, cwd=tmp_path)
    last = refused.stderr.strip().splitlines()[-1]
    assert last.startswith("nothing was scored: ")
    assert message.split(".", maxsplit=1)[0] in last
    assert "(variable SCRIPTED_KEY is unset)" in last
    assert "other causes" not in last
    assert re.search("check|doctor", last)


def test_calls_rejected_alike_stop_the_agent_and_others_are_their_trials(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    alike = [refusal(OTHER)] * 7
    endpoint.bad = [reply(200, GOOD), *alike, reply(200, GOOD), *alike, refusal("Another."), *alike]
    write_plan(tmp_path, worker, endpoint.url, max_tries=2)
    exits(1, "run", "plan.yaml", "--name", "r", "--set", "agents.model.concurrency=1", cwd=tmp_path)
    assert [row["reason"] for row in rows("r", tmp_path)].count("agent_error") == 18

    endpoint.bad = [refusal(OTHER)] * 8
    stopped = exits(2, "resume", "r", "--set", "agents.model.concurrency=1", cwd=tmp_path)
    assert "like 8 calls in a row" in " ".join(stopped.stderr.split())


def test_a_context_that_a_proxy_names_exceeded_ends_trials_with_a_score_whatever_its_text(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always = refusal(TOO_LONG)
    write_plan(tmp_path, worker, endpoint.url, max_tries=2)
    exits(0, "run", "plan.yaml", "--name", "r", cwd=tmp_path)
    assert [row["reason"] for row in rows("r", tmp_path)] == ["context_limit"] * 20
