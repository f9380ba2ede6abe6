"""A real agent server on loopback serves the official OpenAI client, and ends in order."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import httpx
import pytest

from tests.pace import slowly
from tests.support import ROOT
from tests.toy_environment import write_distribution

if TYPE_CHECKING:  # half a second of CPU, which each process of the tests would need to collect this file
    import openai
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam

TOKEN = "canary-token"
MESSAGES: "list[ChatCompletionMessageParam]" = [{"role": "user", "content": "Which letter?"}]
METADATA = {"task": "toy", "sample": "b", "seed": "3", "conversation": "main", "epoch": "1", "turn": "1"}
SCRIPT = """
import sys
from agent_server.config import AgentServerConfig
from agent_server.serve import serve
serve(AgentServerConfig.model_validate_json(sys.argv[1]), lambda url: print(url, file=sys.stderr, flush=True))
"""


class Running(NamedTuple):
    process: subprocess.Popen[str]
    url: str


@contextmanager
def running(config: Mapping[str, object], folder: Path) -> Iterator[Running]:
    """An agent server in its own process."""
    packages = folder / "packages"
    packages.mkdir()
    write_distribution(packages)
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SCRIPT, json.dumps(config)],
        env={**os.environ, "PYTHONPATH": f"{packages}:{ROOT}", "PROCTOR_TOKEN": "", "PROCTOR_TEST_TOKEN": TOKEN},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        yield Running(process, process.stderr.readline().strip())
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    config = {
        "token_env": "PROCTOR_TEST_TOKEN",
        "tasks": [{"name": "toy", "environment": "toy-letters"}],
        "agents": [
            {"kind": "reference", "name": "ref"},
            {"kind": "random", "name": "short", "context_chars": 3},
        ],
    }
    with running(config, tmp_path_factory.mktemp("server")) as server:
        yield server.url


@pytest.fixture
def client(base_url: str) -> "Iterator[openai.OpenAI]":
    import openai

    with openai.OpenAI(base_url=base_url, api_key=TOKEN, max_retries=0) as client:
        yield client


@pytest.mark.smoke
def test_the_official_client_gets_an_answer(client: "openai.OpenAI") -> None:
    done = client.chat.completions.create(model="ref", messages=MESSAGES, metadata=METADATA)
    assert (done.model, done.choices[0].message.content, done.choices[0].finish_reason) == ("ref", "b3", "stop")
    assert done.usage is not None
    assert done.usage.total_tokens == 0


def test_the_official_client_gets_tool_calls(client: "openai.OpenAI") -> None:
    metadata = {**METADATA, "conversation": "tools"}
    tools: list[ChatCompletionToolUnionParam] = [{"type": "function", "function": {"name": "say"}}]
    done = client.chat.completions.create(model="ref", messages=MESSAGES, metadata=metadata, tools=tools)
    choice, message = done.choices[0], done.choices[0].message
    assert choice.finish_reason == "tool_calls"
    assert message.content is None
    assert message.tool_calls is not None
    assert message.tool_calls[0].type == "function"
    assert message.tool_calls[0].function.arguments == '{"x": "b"}'


def test_the_official_client_can_stream(client: "openai.OpenAI") -> None:
    stream = client.chat.completions.create(
        model="ref", messages=MESSAGES, metadata=METADATA, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == "b3"
    assert chunks[-1].usage is not None


def test_the_official_clients_stream_helper_assembles_tool_calls(client: "openai.OpenAI") -> None:
    metadata = {**METADATA, "conversation": "tools"}
    with client.chat.completions.stream(model="ref", messages=MESSAGES, metadata=metadata) as stream:
        message = stream.get_final_completion().choices[0].message
    assert message.tool_calls is not None
    assert message.tool_calls[0].function.name == "say"


def test_the_official_client_lists_the_agents(client: "openai.OpenAI") -> None:
    assert [model.id for model in client.models.list()] == ["ref", "short"]
    assert client.models.retrieve("ref").owned_by == "proctor"


def test_the_official_client_raises_its_own_errors(client: "openai.OpenAI") -> None:
    import openai

    with pytest.raises(openai.NotFoundError) as not_found:
        client.chat.completions.create(model="gpt-9", messages=MESSAGES)
    assert not_found.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as too_long:
        client.chat.completions.create(model="short", messages=MESSAGES, metadata=METADATA)
    assert too_long.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError, match="metadata: true"):
        client.chat.completions.create(model="ref", messages=MESSAGES, stream=True)
    with pytest.raises(openai.AuthenticationError) as unauthorized:
        client.with_options(api_key="wrong").models.list()
    assert unauthorized.value.code == "invalid_api_key"


def test_sigterm_lets_the_request_under_way_finish(tmp_path: Path) -> None:
    config = {
        "tasks": [{"name": "toy", "environment": "toy-letters"}],
        "agents": [{"kind": "reference", "name": "ref", "latency_s": 0.5}],
    }
    body = json.dumps({"model": "ref", "messages": MESSAGES, "metadata": METADATA})
    with running(config, tmp_path) as server, httpx.Client(trust_env=False) as client:

        def stop_once_sent() -> Iterator[bytes]:
            yield body.encode()
            httpx.get(f"{server.url}/models", trust_env=False, timeout=slowly(20))  # by then it reads the other request
            server.process.send_signal(signal.SIGTERM)

        reply = client.post(f"{server.url}/chat/completions", content=stop_once_sent())
        assert reply.json()["choices"][0]["message"]["content"] == "b3"
        assert server.process.wait(timeout=slowly(20)) == 0
        assert server.process.stderr is not None
        assert server.process.stderr.read() == ""
