"""Line 10 of the viewer's list: what a page unfolds of a turn is what the model's endpoint received."""

import html
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent_server.agents.base import AgentReply
from agent_server.chat_completions import completion, parse_request
from eval_client.view.access import ViewAccess
from eval_client.view.app import build_app
from eval_client.view.runs import FolderRuns
from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.environment import Environment, Policy
from proctor.observability.redaction import visible
from tests.e2e.proctor import proctor
from tests.e2e.scripted import ScriptedEndpoint, listening, reply
from tests.tool_calls import ENGINES

SMALL: Mapping[str, dict[str, Any]] = {"webshop": {"goals": [0, 15]}, "mind2web": {"steps": 40}}
ONLY_TEXT = ("simulbench",)


def tasks() -> Iterator[TaskDefinition]:
    """Every environment of ours in each protocol that it has."""
    for name in registry.names():
        for protocol in ("text",) if name in ONLY_TEXT else ("text", "tools"):
            fields = {**ENGINES.get(name, {}), **SMALL.get(name, {}), "protocol": protocol}
            yield TaskDefinition(name=f"{name}-{protocol}", environment=name, parameters=fields)


class PlayingEndpoint(ScriptedEndpoint):
    """Answers by the environments' random policies, and keeps what it was sent."""

    def __init__(self, definitions: Mapping[str, TaskDefinition]) -> None:
        super().__init__()
        worlds: dict[str, Environment] = {name: each.build() for name, each in definitions.items()}

        @lru_cache
        def policy(task: str, sample: str, seed: int) -> Policy:
            found = worlds[task].random(sample, seed)
            assert found is not None
            return found

        self._policy = policy

    def _answer(self) -> bytes | None:
        request = parse_request(json.dumps(self.requests[-1]).encode()).agent_request()
        about = request.metadata
        policy = self._policy(about["task"], about["sample"], int(about["seed"]))
        action = policy(about["conversation"], request.messages)
        return reply(200, completion("random", AgentReply(action=action)))


def sent(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as an endpoint gets it, from one of the viewer."""
    shaped = {"role": message["role"], "content": message["content"]}
    if message["tool_calls"]:
        shaped["content"] = message["content"] or None
        shaped["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": {key: call[key] for key in ("name", "arguments")}}
            for call in message["tool_calls"]
        ]
    if message["tool_call_id"] is not None:
        shaped["tool_call_id"] = message["tool_call_id"]
    return shaped


def offered(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": dict(tool)}


def unfolded(page: str, turn: int) -> list[tuple[str, list[str]]]:
    """(role, texts) of the messages before the answer of a turn, as its page shows them."""
    section = page.partition(f'id="turn-{turn}"')[2].partition("</section>")[0]
    found = []
    for block in section.split('<div class="message ')[1:]:
        texts = [html.unescape(text) for text in re.findall(r'<pre class="words">(.*?)</pre>', block, re.DOTALL)]
        found.append((block.partition('"')[0].split()[0], texts))
    return found[: [role for role, _ in found].index("answer")]


def texts_of(message: Mapping[str, Any]) -> list[str]:
    calls = [visible(call["arguments"]) for call in message["tool_calls"]]
    return [visible(message["content"]), *calls] if message["content"] or not calls else calls


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """A folder with a run of all environments, and the requests that its endpoint got."""
    folder, definitions = tmp_path_factory.mktemp("shown"), {each.name: each for each in tasks()}
    endpoint = PlayingEndpoint(definitions)
    with listening(endpoint):
        plan = {
            "name": "shown",
            "agents": [{"name": "random", "builtin": "random", "endpoint": endpoint.url}],
            "tasks": [each.model_dump(mode="json", exclude_none=True) for each in definitions.values()],
        }
        (folder / "plan.yaml").write_text(json.dumps(plan))
        done = proctor("run", "plan.yaml", "--name", "all", "--limit", "1", "-q", cwd=folder, OPENAI_API_KEY="none")
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "runs", endpoint.requests


async def test_10_the_messages_and_functions_of_every_turn_are_those_that_the_endpoint_received(
    played: tuple[Path, list[dict[str, Any]]],
) -> None:
    runs, requests = played
    received = {(each["metadata"]["task"], int(each["metadata"]["turn"])): each for each in requests}
    compared, with_tools = set[tuple[str, int]](), 0
    app = build_app(FolderRuns(runs), ViewAccess())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:7400") as viewer:
        for trial in (await viewer.get("/api/v1/runs/all/trials")).json()["items"]:
            place = f"runs/all/trials/{trial['id']}"
            for turn in range(1, trial["turns"] + 1):
                answer = await viewer.get(f"/api/v1/{place}?size=1&after={turn - 1}&earlier={turn}")
                (item,) = answer.json()["turns"]["items"]
                request = received[trial["task"], item["turn"]]
                messages = [*item["earlier_messages"], *item["messages"]]
                asked = [{key: told for key, told in each.items() if key != "name"} for each in request["messages"]]
                assert [sent(message) for message in messages] == asked, (trial["task"], item["turn"])
                assert [offered(tool) for tool in item["tools"]] == request.get("tools", [])
                compared.add((trial["task"], item["turn"]))
                with_tools += bool(item["tools"])
            page = (await viewer.get(f"/{place}?earlier={turn}")).text
            assert unfolded(page, turn) == [(message["role"], texts_of(message)) for message in messages]
            names = {tool["name"] for tool in item["tools"]}
            assert names <= set(re.findall(r"[\w]+", page))
    assert compared == set(received)
    assert {task for task, _ in compared} == {each.name for each in tasks()}
    assert with_tools > 50
