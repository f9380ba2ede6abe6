"""Endpoints that refuse every request by a status such as 400, as LiteLLM's proxy does, and contexts that end."""

import json
from pathlib import Path

import pytest

from tests.e2e.proctor import Server, proctor, rows
from tests.e2e.scripted import GOOD, ScriptedEndpoint, reply

PLAN = """\
name: refused
controller: {worker}
endpoints: [{{name: proxy, base_url: "{endpoint}", api_key_env: SCRIPTED_KEY, max_tries: 2}}]
agents: [{{name: model, endpoint: proxy, concurrency: 2}}]
tasks: [{{name: db-own}}]
"""
WRONG_MODEL = "/chat/completions: Invalid model name passed in model=modle. Call `/v1/models` to view the models."
WRONG_KEY = "No connected db."
OTHER = "The text was flagged."
TOO_LONG = "litellm.ContextWindowExceededError: litellm.BadRequestError: SomeException - too much. Fallbacks=None"


def refusal(message: str) -> bytes:
    """A reply as LiteLLM's proxy makes it."""
    return reply(400, json.dumps({"error": {"message": message, "type": None, "param": None, "code": "400"}}).encode())


def plan(folder: Path, worker: Server, endpoint: ScriptedEndpoint) -> None:
    (folder / "plan.yaml").write_text(PLAN.format(worker=worker.url, endpoint=endpoint.url))


@pytest.mark.parametrize("message", [WRONG_MODEL, WRONG_KEY])
def test_an_agent_whose_first_calls_are_all_refused_is_stopped_and_a_resume_plays_the_rest(
    message: str, tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always = refusal(message)
    plan(tmp_path, worker, endpoint)
    refused = proctor("run", "plan.yaml", "--name", "r", cwd=tmp_path)
    assert refused.returncode == 2, refused.stderr
    told = " ".join(refused.stderr.split())
    assert "agent model: its endpoint refuses every request of db-own: model model at " in told
    assert message.split(".", maxsplit=1)[0] in told
    assert "like each of its first 8 calls" in told
    assert 8 <= len(endpoint.requests) <= 9
    kept = rows("r", tmp_path)
    assert len([row for row in kept if row["reason"] is None]) >= 20 - 9
    assert [row["score"] for row in kept] == [None] * 20

    endpoint.always = False
    resumed = proctor("resume", "r", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    assert [row["reason"] for row in rows("r", tmp_path)] == ["completed"] * 20


def test_one_answered_call_makes_later_refusals_those_of_their_trials(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.bad = [reply(200, GOOD), *[refusal(OTHER)] * 19]
    plan(tmp_path, worker, endpoint)
    ended = proctor("run", "plan.yaml", "--name", "r", "--set", "agents.model.concurrency=1", cwd=tmp_path)
    assert ended.returncode == 1, ended.stderr
    assert [row["reason"] for row in rows("r", tmp_path)].count("agent_error") == 19
    assert len(endpoint.requests) == 20


def test_a_context_that_a_proxy_names_exceeded_ends_trials_with_a_score_whatever_its_text(
    tmp_path: Path, worker: Server, endpoint: ScriptedEndpoint
) -> None:
    endpoint.always = refusal(TOO_LONG)
    plan(tmp_path, worker, endpoint)
    ended = proctor("run", "plan.yaml", "--name", "r", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert [row["reason"] for row in rows("r", tmp_path)] == ["context_limit"] * 20
