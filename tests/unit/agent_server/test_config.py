"""Valid and invalid configurations of an agent server."""

import pytest
from pydantic import ValidationError

from agent_server.config import AgentServerConfig
from proctor.config.yaml import FileError
from proctor.http import is_loopback

RECORDED = {"kind": "recorded", "name": "me", "path": "turns.jsonl"}
PROXIED = {"kind": "proxied", "name": "a"}


def config(**fields: object) -> AgentServerConfig:
    return AgentServerConfig.model_validate({"agents": [RECORDED], **fields})


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"agents": []}, "at least 1 item"),
        (
            {"agents": [{"kind": "magic", "name": "a"}]},
            "'reference', 'naive', 'random', 'recorded', 'function', 'proxied'",
        ),
        ({"agents": [{"kind": "reference", "name": "a"}]}, "tasks: agent 'a' of kind reference needs some"),
        ({"agents": [RECORDED, RECORDED]}, "the name 'me' is used twice"),
        ({"agents": [{**RECORDED, "name": "../x"}]}, "should match pattern"),
        ({"port": 70000}, "less than or equal to 65535"),
        ({"agents": [{**PROXIED, "chat": {"model": "m", "max_tries": 6}}]}, "asks once; set it at the endpoint in the"),
        (
            {"agents": [{**PROXIED, "chat": {"model": "m", "patience_s": 9}}]},
            "asks once; set it at the endpoint in the",
        ),
    ],
)
def test_what_cannot_be_served_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        config(**fields)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "::1", "localhost"])
def test_loopback_needs_no_token(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PROCTOR_TOKEN", raising=False)
    assert is_loopback(host)
    assert not config(host=host).access().closed


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "", "example.org", "localhost.example.org"])
def test_any_other_address_needs_one(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for unset in ("", " "):
        monkeypatch.setenv("PROCTOR_TEST_TOKEN", unset)
        with pytest.raises(FileError, match="a token is needed; set the variable PROCTOR_TEST_TOKEN"):
            config(host=host, token_env="PROCTOR_TEST_TOKEN").access()
    monkeypatch.setenv("PROCTOR_TEST_TOKEN", "secret")
    access = config(host=host, token_env="PROCTOR_TEST_TOKEN").access()
    assert [access.knows("GET", "/v1/models", b"Bearer " + token) for token in (b"secret", b"")] == [True, False]
