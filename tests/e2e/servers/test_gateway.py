"""`proctor serve` as a process, played by a client of another wire."""

import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from proctor.config.task import load_tasks
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import AGENTBENCH_STATUS, Action, Message
from proctor_bridges.gateway.agentbench import history, sample_of
from tests.e2e.proctor import TOKEN, exits, server
from tests.pace import slowly, until

TASKS = """\
tasks:
  - {name: db, environment: db, parameters: {engine: sqlite}}
  - {name: alfworld, environment: alfworld}
  - {name: card_game, environment: card_game}
"""
Agent = Callable[[list[dict[str, str]]], str]


def answer(turns: list[dict[str, str]]) -> str:
    """A weak agent for all tasks: its answer depends on how much it has seen."""
    seen = sum(turn["role"] == "agent" for turn in turns)
    sql = "Action: Operation\n```sql\nSELECT 1;\n```\n"
    return f"{sql}ACTION: look" if seen % 3 else f"{sql}ACTION: inventory"


def policy(conversation: str, transcript: Sequence[Message]) -> Action:
    """The same agent for an environment in this process."""
    return Action(content=answer(history(transcript)))


def call(url: str, body: object = None, **headers: str) -> Any:
    data = json.dumps(body).encode() if body is not None else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=slowly(60)) as reply:
        return json.load(reply)


def refusal(url: str, body: object = None) -> tuple[int, str]:
    with pytest.raises(urllib.error.HTTPError) as refused:
        call(url, body)
    with refused.value as reply:
        return reply.code, reply.read().decode()


def play(base: str, task: str, index: Any, agent: Agent) -> dict[str, Any]:
    """A sample as v0.2's client plays it: the double of `run_sample`."""
    given = call(f"{base}/start_sample", {"name": task, "index": index})
    while given["output"]["status"] == "running":
        response = {"status": "normal", "content": agent(given["output"]["history"])}
        given = call(f"{base}/interact", {"session_id": given["session_id"], "agent_response": response})
    output: dict[str, Any] = given["output"]
    return output


async def test_a_client_of_v02_plays_three_tasks(tmp_path: Path) -> None:
    """Lines 1 and 2, with a double of v0.2's client: four samples of each task end as they do without a server."""
    (tmp_path / "tasks.yaml").write_text(TASKS)
    with server("serve", "--agentbench", "--tasks", "tasks.yaml", cwd=tmp_path) as gateway:
        base = f"{gateway.url}/t/{TOKEN}/agentbench/api"
        for task in load_tasks(tmp_path / "tasks.yaml"):
            environment = task.build()
            indices = call(f"{base}/get_indices?name={task.name}")[:4]
            played = [play(base, task.name, index, answer) for index in indices]
            async with environment.lifespan():
                alone = [await play_to_finish(environment, sample_of(each), PolicyAgent(policy)) for each in indices]
            assert Counter(each["status"] for each in played) == Counter(
                AGENTBENCH_STATUS[each.reason] for each in alone
            )
            assert [each["result"]["score"] for each in played] == [each.score for each in alone]
            overall = call(f"{base}/calculate_overall", {"name": task.name, "results": played})
            assert (overall["n"], overall["coverage"]) == (4, 1.0)
        free = {name: each["workers"]["0"]["current"] for name, each in call(f"{base}/list_workers").items()}
        assert free == {"db": 0, "alfworld": 0, "card_game": 0}


def test_over_a_controller_a_stopped_gateway_leaves_no_slot_taken(tmp_path: Path) -> None:
    """The end of the gateway ends its sessions at the worker."""
    (tmp_path / "tasks.yaml").write_text(TASKS)
    with (
        server("controller", "--settle=0", cwd=tmp_path) as controller,
        server("worker", "--tasks=tasks.yaml", f"--controller={controller.url}", cwd=tmp_path) as worker,
    ):
        with server("serve", "--agentbench", f"--controller={controller.url}", "--grace=0", cwd=tmp_path) as gateway:
            base = f"{gateway.url}/t/{TOKEN}/agentbench/api"
            until(lambda: "alfworld" in call(f"{base}/list_workers"))
            index = call(f"{base}/get_indices?name=alfworld")[0]
            call(f"{base}/start_sample", {"name": "alfworld", "index": index})
            assert gateway.metric("proctor_foreign_sessions_live") == 1
            assert worker.metric("proctor_sessions_live") == 1
        assert worker.metric("proctor_sessions_live") == 0


def test_without_the_token_nothing_is_answered_and_it_is_in_no_log(tmp_path: Path) -> None:
    """Line 12."""
    (tmp_path / "tasks.yaml").write_text(TASKS)
    debug = {"PROCTOR_LOG_LEVEL": "debug"}
    with server("serve", "--agentbench", "--tasks", "tasks.yaml", cwd=tmp_path, **debug) as gateway:
        for prefix in ("", "/t/wrong", f"/t/{TOKEN}x", f"/t/{TOKEN[:-1]}"):
            assert refusal(f"{gateway.url}{prefix}/agentbench/api/list_workers")[0] == 401
        call(f"{gateway.url}/agentbench/api/list_workers", Authorization=f"Bearer {TOKEN}")
        base = f"{gateway.url}/t/{TOKEN}/agentbench/api"
        call(f"{base}/list_workers")
        texts = [refusal(f"{base}/nowhere")[1], refusal(f"{base}/interact", {"no": "session"})[1]]
        assert not [text for text in texts if TOKEN in text]
    logs = "".join(path.read_text() for path in tmp_path.glob("*.log"))
    assert TOKEN not in logs


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--tasks=tasks.yaml"], "--agentbench"),
        (["--agentbench"], "--tasks FILE"),
        (["--agentbench", "--tasks=tasks.yaml", "--controller=http://127.0.0.1:1"], "--controller URL"),
        (["--agentbench", "--tasks=tasks.yaml", "--host=0.0.0.0"], "set a token"),
    ],
)
def test_options_that_make_no_server_are_refused(tmp_path: Path, arguments: list[str], why: str) -> None:
    (tmp_path / "tasks.yaml").write_text(TASKS)
    refused = exits(2, "serve", *arguments, cwd=tmp_path, PROCTOR_TOKEN="")
    assert why in refused.stderr
