"""Which variables go to other machines: those the plan names, and no others."""

from pathlib import Path

import pytest

from eval_client.plan.entries import Endpoint
from eval_client.plan.plan import Plan
from eval_client.ray import variables
from proctor.config.task import TaskDefinition

PLAN = Plan.model_validate(
    {
        "endpoints": [{"name": "house", "base_url": "http://127.0.0.1:9/v1", "api_key_env": "HOUSE_KEY"}],
        "agents": [{"name": "a", "endpoint": "house"}, {"name": "b", "builtin": "naive"}],
        "tasks": [{"name": "cards", "environment": "card_game"}],
    }
)
JUDGED = TaskDefinition(
    name="s", environment="simulbench", parameters={"judge": {"model": "m", "api_key_env": "JUDGE_KEY"}}
)
SERVED = TaskDefinition(name="d", environment="db", parameters={"servers": [{"password_env": "DB_PASSWORD"}]})


def test_clients_get_the_keys_of_the_agents_endpoints() -> None:
    assert variables.of_clients(PLAN) == {"HOUSE_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"}
    claude = Endpoint(name="claude", dialect="messages")
    found = variables.of_clients(PLAN.model_copy(update={"endpoints": (claude,)}))
    assert found >= {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY"}


def test_workers_get_what_parameters_name_at_any_depth() -> None:
    assert variables.of_tasks([SERVED]) == {"DB_PASSWORD"}
    fields = {"judge": {"model": "m", "dialect": "messages"}}
    thinks = TaskDefinition(name="t", environment="simulbench", parameters=fields)
    assert variables.of_tasks([thinks]) == {"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"}
    assert variables.of_tasks([JUDGED, SERVED]) == {"DB_PASSWORD", "JUDGE_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL"}


def test_what_headers_query_and_proxy_name_goes_along() -> None:
    fields = {"headers": {"x-team": "of ${TEAM_KEY}"}, "query": {"code": "${CODE}"}, "proxy": "${PROXY}"}
    entry = Endpoint.model_validate({"name": "house", **fields})
    assert variables.of_clients(PLAN.model_copy(update={"endpoints": (entry,)})) >= {"TEAM_KEY", "CODE", "PROXY"}
    judged = TaskDefinition(name="s", environment="simulbench", parameters={"judge": {"model": "m", **fields}})
    assert variables.of_tasks([judged]) >= {"TEAM_KEY", "CODE", "PROXY"}


def test_tasks_without_a_model_need_no_key() -> None:
    assert variables.of_tasks(PLAN.definitions()) == frozenset()


def test_values_are_those_set_here_also_by_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text("from-a-file\n")
    monkeypatch.setenv("HOUSE_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.delenv("DB_PASSWORD", raising=False)
    found = variables.values(["DB_PASSWORD", "HOUSE_KEY", "OPENAI_BASE_URL"])
    assert found == {"HOUSE_KEY": "from-a-file", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
