"""LiteLLM's proxy between Proctor and a model, in each dialect: functions, texts, costs, errors."""

import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from proctor.environment import AgentRefused
from proctor.http.client import http_client
from proctor.llm.config import ChatConfig
from proctor.llm.dialects import PATHS, DialectName
from proctor.llm.model import ChatModel
from proctor.types import Message
from tests.e2e.proctor import proctor, rows, server
from tests.e2e.scripted import listening
from tests.e2e.servers.test_dialects import DoorsEndpoint
from tests.e2e.tools_endpoint import importable
from tests.interop.counterparts import environment, interpreter, run
from tests.pace import slowly, until
from tests.support import free_port

KEY = "sk-of-the-proxy-0123456789"
CONFIG = """\
model_list:
  - {{model_name: says, litellm_params: {{model: openai/gpt-4o, api_key: none, mock_response: "The answer is 42."}}}}
  - {{model_name: plain, litellm_params: {{model: hosted_vllm/plain, api_key: none, api_base: "{upstream}"}}}}
general_settings: {{master_key: {key}}}
"""
SAMPLES, TURNS = 2, 3
TASKS = f"""\
tasks:
  - {{name: doors, environment: doors, parameters: {{turns: {TURNS}, count: {SAMPLES}}}}}
  - {{name: plain-doors, environment: doors, parameters: {{turns: {TURNS}, count: {SAMPLES}, protocol: text}}}}
"""
PLAN = """\
name: proxied
controller: {worker}
endpoints: {endpoints}
agents: {agents}
tasks: [{{name: doors}}, {{name: plain-doors}}]
"""


@contextlib.contextmanager
def proxy(folder: Path, upstream: str) -> Iterator[str]:
    """The base URL of LiteLLM's proxy."""
    (folder / "proxy.yaml").write_text(CONFIG.format(upstream=upstream, key=KEY))
    port = free_port()
    command = [interpreter("litellm"), "-m", "litellm.proxy.proxy_cli", "--config=proxy.yaml", "--host=127.0.0.1"]
    extra = environment({"LITELLM_TELEMETRY": "False", "LITELLM_LOCAL_MODEL_COST_MAP": "True"})
    with (
        (folder / "proxy.log").open("w") as log,
        subprocess.Popen([*command, f"--port={port}"], cwd=folder, env=extra, stdout=log, stderr=log) as process,
    ):
        try:
            until(lambda: lives(f"http://127.0.0.1:{port}"), 120)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()


def lives(url: str) -> bool:
    """Whether the proxy answers."""
    try:
        return httpx.get(f"{url}/health/liveliness", timeout=slowly(5)).status_code == 200
    except httpx.HTTPError:
        return False


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, DoorsEndpoint]]:
    folder, scripted = tmp_path_factory.mktemp("litellm"), DoorsEndpoint()
    with listening(scripted), proxy(folder, scripted.url) as url:
        yield folder, url, scripted


def test_functions_and_texts_are_played_in_every_dialect(site: tuple[Path, str, DoorsEndpoint]) -> None:
    folder, url, scripted = site
    (folder / "tasks.yaml").write_text(TASKS)
    endpoints = [{"name": name, "dialect": name, "base_url": url, "api_key_env": "LITELLM_KEY"} for name in PATHS]
    agents = [{"name": f"by-{name}", "endpoint": name, "model": "plain"} for name in PATHS]
    with server("worker", "--tasks=tasks.yaml", cwd=folder, **importable(folder)) as worker:
        plan = PLAN.format(worker=worker.url, endpoints=json.dumps(endpoints), agents=json.dumps(agents))
        (folder / "plan.yaml").write_text(plan)
        ended = proctor("run", "plan.yaml", "--name", "r", "-q", cwd=folder, LITELLM_KEY=KEY)
    assert scripted.wrong == []
    assert ended.returncode == 0, ended.stderr
    played = rows("r", folder)
    assert {(row["agent"], row["task"], row["score"]) for row in played} == {
        (f"by-{name}", task, 1.0) for name in PATHS for task in ("doors", "plain-doors")
    }
    assert {(row["prompt_tokens"], row["completion_tokens"]) for row in played} == {(100 * TURNS, 7 * TURNS)}


@pytest.mark.parametrize("dialect", PATHS)
async def test_mock_replies_and_errors_are_read(
    dialect: DialectName, site: tuple[Path, str, DoorsEndpoint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITELLM_KEY", KEY)
    client, asked = http_client(), [Message(role="user", content="How many?")]

    def model(name: str, key: str = "LITELLM_KEY") -> ChatModel:
        return ChatModel(ChatConfig(model=name, base_url=site[1], dialect=dialect, api_key_env=key), client)

    completion = await model("says").complete(asked)
    assert (completion.action.content, completion.stop, completion.metered) == ("The answer is 42.", "stop", True)
    with pytest.raises(AgentRefused, match="Invalid model name"):
        await model("modle").complete(asked)
    monkeypatch.setenv("WRONG_KEY", "sk-wrong-0123456789")
    with pytest.raises(AgentRefused):
        await model("says", "WRONG_KEY").complete(asked)


VERSIONS = {
    "inspect": {"inspect-ai": "0.3.285"},
    "agentrl": {"agentrl-worker": "0.4.0", "agentrl-eval": "0.1.2"},
    "openenv": {"openenv": "0.10.0"},
    "harbor": {"harbor": "0.25.0"},
    "litellm": {"litellm": "1.108.7"},
}


@pytest.mark.parametrize("name", VERSIONS)
def test_a_counterpart_is_of_the_version_that_was_tried(name: str) -> None:
    wanted = VERSIONS[name]
    assert run(name, "versions.py", *wanted) == list(wanted.values())
