"""docs/how-to/agentbench.md, word by word: whole runs of tasks that a worker of another program plays."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.proctor import TOKEN, begin, exits, rows, server
from tests.e2e.scripted import ScriptedEndpoint, listening, reply
from tests.e2e.servers.test_gateway import call
from tests.pace import slowly, until
from tests.support import ROOT, free_port
from tests.unit.bridges.worlds.served import in_thread
from tests.unit.bridges.worlds.test_agentbench_v02 import scripted
from tests.unit.bridges.worlds.v02_worker import V02Worker

PAGE = (ROOT / "docs" / "how-to" / "agentbench.md").read_text(encoding="utf-8")
PLANS = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
KEY = {"MODELS_KEY": "k"}


class Model(ScriptedEndpoint):
    """The agent of the captured run behind an endpoint."""

    def _good(self) -> bytes:
        from proctor.types import Message

        sent = self.requests[-1]["messages"]
        assert isinstance(sent, list)
        said = scripted("main", [Message(role=each["role"], content=each["content"]) for each in sent]).content
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
        usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        whole = {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}
        return reply(200, json.dumps(whole).encode())


@pytest.fixture
def model() -> Iterator[Model]:
    endpoint = Model()
    with listening(endpoint):
        yield endpoint


def plan_of(text: str, model: Model, worker: str) -> str:
    return text.replace("http://127.0.0.1:8000/v1", model.url).replace("http://127.0.0.1:5001/api", worker)


def test_the_plan_of_the_page_plays_a_worker_of_v02(tmp_path: Path, model: Model) -> None:
    with in_thread(V02Worker().app) as url:
        (tmp_path / "plan.yaml").write_text(plan_of(PLANS[0], model, f"{url}/api"))
        exits(1, "run", "plan.yaml", "--fail-on-error", "6", cwd=tmp_path, **KEY)
        told = {row["sample"]: (row["reason"], row["score"]) for row in rows("latest", tmp_path, **KEY)}
    assert told == {
        "0": ("completed", 1.0),
        "1": ("invalid_format", 0.0),
        "2": ("completed", 1.0),
        "3": ("task_error", None),
        "four": ("completed", 1.0),
        "5": ("completed", 1.0),
    }


def test_a_page_s_command_serves_the_assigner(tmp_path: Path) -> None:
    [command] = re.findall(r"^\$ proctor (serve --agentbench .*)$", PAGE, re.MULTILINE)
    (tmp_path / "tasks.yaml").write_text(PLANS[1])
    with server(*command.replace("--port 5000", "--port 0").split(), cwd=tmp_path) as gateway:
        [address] = re.findall(r'controller_address: "http://127.0.0.1:5000(.*)"', PAGE)
        listed = f"{gateway.url}/t/{TOKEN}{address}/list_workers"
        until(lambda: set(call(listed)) == {"db", "alfworld"}, 30.0)  # a task that loads is not offered yet


def test_a_worker_that_dies_owes_its_trials_to_a_resume(tmp_path: Path, model: Model) -> None:
    """Line 10."""
    double = V02Worker()
    port = free_port()
    with in_thread(double.app, port) as url:
        plan = plan_of(PLANS[0], model, f"{url}/api").replace("tasks:", "limits: {attempts: 1}\ntasks:")
        (tmp_path / "plan.yaml").write_text(plan + '    samples: {include: ["0", "2"]}\n')
        model.always = True  # no answer comes, so the sessions are under way
        running = begin("run", "plan.yaml", cwd=tmp_path, **KEY)
        until(lambda: len(double.live) == 2)
    model.hang_up()
    running.wait(timeout=slowly(120))
    with in_thread(V02Worker().app, port):
        exits(0, "resume", "latest", cwd=tmp_path, **KEY)
        assert {row["score"] for row in rows("latest", tmp_path, **KEY)} == {1.0}
