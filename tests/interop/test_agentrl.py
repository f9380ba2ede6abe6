"""AgentRL's own client against `proctor serve --agentrl`, and our client against AgentRL's own worker."""

import contextlib
import json
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor.config.task import TaskDefinition
from proctor.environment import Agent, policy_of
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, FinishReason, Message, Observation, ToolCall
from proctor_bridges.worlds.agentrl import AgentRL, assistant
from tests.e2e.proctor import TOKEN, server
from tests.interop.counterparts import DRIVERS, environment, interpreter, run
from tests.pace import slowly
from tests.support import SHARED_DATA, free_port

PARAMETERS: dict[str, Any] = {"engine": "sqlite", "protocol": "tools"}
TASKS = "tasks: [{name: db, environment: db, parameters: {engine: sqlite, protocol: tools}}]\n"
TOY = SHARED_DATA / "interop" / "agentrl" / "toy_task.py"


class Recorded(Agent):
    """Plays another agent, and keeps what it says."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.said: list[Action] = []

    async def act(self, observation: Observation) -> Action:
        self.said.append(await self._agent.act(observation))
        return self.said[-1]


async def test_its_client_plays_db_by_function_calls(tmp_path: Path) -> None:
    """Lines 1 and 2: reference answers are completed with reward and score 1, calls without end reach the limit."""
    db = TaskDefinition(name="db", environment="db", parameters=PARAMETERS).build()
    scripts: list[Any] = []
    for sample in db.samples()[:3]:
        policy = policy_of(db, "reference", sample)
        assert policy is not None
        agent = Recorded(PolicyAgent(policy))
        async with db.lifespan():
            assert (await play_to_finish(db, sample, agent)).score == 1.0
        scripts.append([sample, [assistant(action) for action in agent.said]])
    endless = Action(content="", tool_calls=(ToolCall(id="c", name="execute_sql", arguments='{"query": "SELECT 1"}'),))
    scripts.append([db.samples()[0], [assistant(endless)]])
    (tmp_path / "tasks.yaml").write_text(TASKS)
    with server("serve", "--agentrl", "--tasks", "tasks.yaml", cwd=tmp_path) as gateway:
        base = f"{gateway.url}/t/{TOKEN}/agentrl/api/"
        results = run("agentrl", "agentrl_eval.py", base, "db", json.dumps(scripts))
        assert gateway.metric("proctor_foreign_sessions_live") == 0
    told = [(each["status"], each["reward"], each["score"]) for each in results]
    assert told == [("completed", 1.0, 1.0)] * 3 + [("task limit reached", 0.0, 0.0)]


@contextlib.contextmanager
def toy_worker() -> Iterator[str]:
    """AgentRL's worker with the toy task of the captures; yields its address."""
    port = free_port()
    command = [interpreter("agentrl"), str(DRIVERS / "agentrl_worker.py"), str(TOY), str(port)]
    with subprocess.Popen(command, env=environment({}), stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(f"http://127.0.0.1:{port}/api/get_indices", process)
            yield f"http://127.0.0.1:{port}/api"
        finally:
            process.kill()


def wait_for(url: str, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + slowly(120)
    while time.monotonic() < until:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        try:
            urllib.request.urlopen(url, timeout=slowly(5)).close()
        except urllib.error.URLError:
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"nothing answers at {url}")


def says_the_number(conversation: str, transcript: Any) -> Action:
    opening: Message = transcript[1]
    call = ToolCall(id="call_0", name="say", arguments=json.dumps({"n": opening.content.removeprefix("Say ")}))
    return Action(content="", tool_calls=(call,))


@pytest.mark.shared
async def test_our_client_plays_its_worker() -> None:
    """Line 3: 1, 0, and a fault."""
    with toy_worker() as address:
        world = AgentRL(workers=(address,))
        assert list(world.samples()) == ["0", "1", "2"]
        silent = PolicyAgent(lambda conversation, transcript: Action(content="hm"))
        async with world.lifespan():
            ends = [
                await play_to_finish(world, "0", PolicyAgent(says_the_number)),
                await play_to_finish(world, "1", silent),
                await play_to_finish(world, "2", silent),
            ]
    assert [(end.reason, end.score) for end in ends] == [
        (FinishReason.COMPLETED, 1.0),
        (FinishReason.TURN_LIMIT, 0.0),
        (FinishReason.TASK_ERROR, None),
    ]
    assert ends[0].metrics == {"turns": 1.0}
