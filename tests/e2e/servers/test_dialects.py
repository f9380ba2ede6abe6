"""Whole runs at endpoints of each dialect, which hold every request to the makers' own types and rules."""

import json
import re
import signal
from pathlib import Path

import httpx
import pytest
from pydantic import ValidationError

from proctor.llm.dialects import PATHS
from proctor.types import Action, ToolCall
from tests.e2e.proctor import begin, proctor, rows, server
from tests.e2e.scripted import ScriptedEndpoint, listening, reply
from tests.e2e.tools_endpoint import importable
from tests.pace import slowly, until
from tests.unit.proctor.llm.dialects.endpoint import DialectEndpoint

SAMPLES, TURNS = 3, 4
TASKS = f"""\
tasks:
  - {{name: doors, environment: doors, parameters: {{turns: {TURNS}, count: {SAMPLES}}}}}
  - {{name: plain-doors, environment: doors, parameters: {{turns: {TURNS}, count: {SAMPLES}, protocol: text}}}}
"""
PLAN = """\
name: dialects
controller: {worker}
endpoints: {endpoints}
agents: {agents}
tasks: [{{name: doors}}, {{name: plain-doors}}]
"""
DOOR = re.compile(r" is (\w+)\.")


class DoorsEndpoint(ScriptedEndpoint):
    """Opens the door that was told last, in the dialect of each request."""

    def __init__(self) -> None:
        super().__init__()
        self.dialects = DialectEndpoint()
        self.wrong: list[str] = []
        self.left: int | None = None
        """So many requests are answered; those behind them never."""

    def _answer(self) -> bytes | None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                return None
        head, body = self.headers[-1], self.requests[-1]
        told = body.get("input") or body["messages"]
        door = DOOR.findall(json.dumps(told))[-1]
        call = ToolCall(id="", name="open_door", arguments=json.dumps({"door": door}))
        self.dialects.next = Action(content="", tool_calls=(call,)) if "tools" in body else Action(content=door)
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        request = httpx.Request("POST", f"http://host{head.split()[1]}", headers=headers, content=json.dumps(body))
        try:
            return reply(200, self.dialects(request).content)
        except (AssertionError, ValidationError) as wrong:
            self.wrong.append(str(wrong))
            return reply(400, b'{"error": {"message": "wrong"}}')


@pytest.mark.parametrize("protocol", ["doors", "plain-doors"])
def test_runs_and_resumes_in_every_dialect_send_what_its_maker_takes(tmp_path: Path, protocol: str) -> None:
    (tmp_path / "tasks.yaml").write_text(TASKS)
    scripted = DoorsEndpoint()
    with listening(scripted), server("worker", "--tasks=tasks.yaml", cwd=tmp_path, **importable(tmp_path)) as worker:
        endpoints = [{"name": name, "dialect": name, "base_url": scripted.url} for name in PATHS]
        agents = [{"name": f"by-{name}", "endpoint": name, "model": "m"} for name in PATHS]
        plan = PLAN.format(worker=worker.url, endpoints=json.dumps(endpoints), agents=json.dumps(agents))
        (tmp_path / "plan.yaml").write_text(plan)
        scripted.left = SAMPLES * TURNS * 2
        killed = begin("run", "plan.yaml", "--name", "r", "-q", "--task", protocol, cwd=tmp_path)
        until(lambda: scripted.left is not None and scripted.left < 0)
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=slowly(30))
        scripted.left = None
        ended = proctor("resume", "r", "-q", cwd=tmp_path)
    assert scripted.wrong == []
    assert ended.returncode == 0, ended.stderr
    played = rows("r", tmp_path)
    assert [row["score"] for row in played] == [1.0] * SAMPLES * len(PATHS)
    assert {row["agent"]: (row["prompt_tokens"], row["completion_tokens"], row["cached_tokens"]) for row in played} == {
        "by-chat": (100 * TURNS, 7 * TURNS, 0),
        "by-responses": (100 * TURNS, 7 * TURNS, 60 * TURNS),
        "by-messages": (100 * TURNS, 7 * TURNS, 60 * TURNS),
    }
