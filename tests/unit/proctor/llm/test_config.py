"""Valid and invalid settings of an endpoint."""

from typing import Any

import pytest
from pydantic import ValidationError

from proctor.llm.config import ChatConfig


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("api.openai.com/v1", "must begin with http"),
        ("ftp://host/v1", "must begin with http"),
        ("http:///v1", "must begin with http"),
        ("https://user:secret@host/v1", "must hold no user name"),
        ("https://host/v1?key=1", "must hold no user name"),
        ("http://[::1/v1", "not a URL"),
    ],
)
def test_a_base_url_that_cannot_work_is_refused(url: str, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        ChatConfig(model="m", base_url=url)


@pytest.mark.parametrize("name", ["messages", "model", "stream", "tools", "metadata", "n"])
def test_a_reserved_field_among_the_sampling_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="is set by Proctor; remove it") as refused:
        ChatConfig(model="m", sampling={"temperature": 0, name: 1})
    assert refused.value.errors()[0]["ctx"]["error"].location == (name,)


def test_a_key_in_the_place_of_a_variable_name_is_refused() -> None:
    with pytest.raises(ValidationError, match="api_key_env"):
        ChatConfig(model="m", api_key_env="sk-1234")


def test_the_endpoint_is_the_files_then_the_environments_then_openais(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert ChatConfig(model="m").endpoint() == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1/")
    assert ChatConfig(model="m").endpoint() == "http://127.0.0.1:8000/v1"
    assert ChatConfig(model="m", base_url="http://h/v1/").endpoint() == "http://h/v1"


def test_a_broken_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost:8000")
    with pytest.raises(ValueError, match="OPENAI_BASE_URL: must begin with http"):
        ChatConfig(model="m").endpoint()


@pytest.mark.parametrize("path", ["/chat/completions", "/responses", "/messages/"])
def test_a_base_url_with_the_path_of_a_dialect_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="which Proctor adds itself; end it with /v1"):
        ChatConfig(model="m", base_url=f"https://host/v1{path}")


def test_messages_have_anthropics_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://openai/v1")
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    config = ChatConfig(model="m", dialect="messages")
    assert (config.api_key_env, config.endpoint()) == ("ANTHROPIC_API_KEY", "https://api.anthropic.com/v1")
    for url in ("http://proxy", "http://proxy/v1/"):
        monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
        assert config.endpoint() == "http://proxy/v1"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "proxy")
    with pytest.raises(ValueError, match="ANTHROPIC_BASE_URL: must begin with http"):
        config.endpoint()
    assert ChatConfig(model="m", dialect="messages", api_key_env="MINE").api_key_env == "MINE"
    assert ChatConfig(model="m", dialect="responses").api_key_env == "OPENAI_API_KEY"


@pytest.mark.parametrize(
    ("dialect", "given", "field", "says"),
    [
        ("responses", {"sampling": {"stop": ["x"]}}, ("sampling", "stop"), "leave it out"),
        ("responses", {"sampling": {"temperature": 0, "seed": 1}}, ("sampling", "seed"), "use an endpoint of"),
        ("responses", {"sampling": {"max_output_tokens": 5}}, ("sampling", "max_output_tokens"), "write `max_tokens`"),
        ("responses", {"sampling": {"store": True}}, ("sampling", "store"), "Proctor sets it itself"),
        ("responses", {"metadata": True}, ("metadata",), "leave it out"),
        ("messages", {"sampling": {"reasoning_effort": "low"}}, ("sampling", "reasoning_effort"), "write `thinking`"),
        ("messages", {"sampling": {"presence_penalty": 1}}, ("sampling", "presence_penalty"), "leave it out"),
        ("messages", {"sampling": {"stop_sequences": ["x"]}}, ("sampling", "stop_sequences"), "write `stop`"),
        ("messages", {"max_tokens_field": "max_tokens"}, ("max_tokens_field",), "leave it out"),
        ("messages", {"system_role": "developer"}, ("system_role",), "leave it out"),
    ],
)
def test_what_a_dialect_lacks_is_refused(
    dialect: Any, given: dict[str, Any], field: tuple[str, ...], says: str
) -> None:
    with pytest.raises(ValidationError, match=says) as refused:
        ChatConfig(model="m", dialect=dialect, **given)
    assert refused.value.errors()[0]["ctx"]["error"].location == field
    assert ChatConfig(model="m", **given).dialect == "chat"


def test_what_a_dialect_has_under_another_name_is_taken() -> None:
    sampling: dict[str, Any] = {"max_tokens": 9, "temperature": 0, "top_p": 1, "tool_choice": "required"}
    ChatConfig(
        model="m", dialect="responses", sampling={**sampling, "reasoning_effort": "low"}, system_role="developer"
    )
    thinking = {"type": "enabled", "budget_tokens": 1024}
    ChatConfig(
        model="m", dialect="messages", sampling={**sampling, "stop": "x", "thinking": thinking}, system_role="user"
    )


def test_the_dialect_shapes_what_is_stored_only_where_it_is_another() -> None:
    assert {"dialect", "cache_prompt"}.isdisjoint(ChatConfig(model="m").model_dump())
    assert ChatConfig(model="m", dialect="messages", cache_prompt="never").model_dump()["dialect"] == "messages"
