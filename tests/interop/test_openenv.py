"""The package openenv: its clients play our tasks, we play its servers. Numbers are those of the specification."""

import contextlib
import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from proctor import registry
from proctor.environment import Policy
from proctor.session.play import play_to_finish
from proctor.types import FinishReason, Message
from proctor_bridges.worlds.openenv.environment import OpenEnv
from tests.e2e.proctor import TOKEN, Server, server
from tests.integration.openenv.test_environment import Calling, Saying
from tests.interop.counterparts import DRIVERS, environment, interpreter
from tests.pace import slowly
from tests.support import ROOT, finished

TASKS = """\
tasks:
  - {name: alfworld, environment: alfworld, capacity: 16}
  - {name: tables, environment: db, parameters: {engine: sqlite, protocol: tools}}
"""


class Driver:
    """The process of the clients."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def __call__(self, number: int, method: str, data: Any = None) -> Any:
        """What a client returns; raises RuntimeError where it raised."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([number, method, data]) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if isinstance(answer, dict) and "raised" in answer:
            raise RuntimeError(answer["raised"])
        return answer


@contextlib.contextmanager
def driver() -> Iterator[Driver]:
    command = [interpreter("openenv"), str(DRIVERS / "openenv_clients.py")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment({})) as process:
        try:
            yield Driver(process)
        finally:
            process.kill()


@pytest.fixture
def clients() -> Iterator[Driver]:
    with driver() as started:
        yield started


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Server]:
    interpreter("openenv")
    (tmp_path / "tasks.yaml").write_text(TASKS)
    with server("serve", "--openenv", "--tasks", "tasks.yaml", cwd=tmp_path) as running:
        yield running


def base(gateway: Server, task: str) -> dict[str, Any]:
    """The arguments of a client."""
    return {"base_url": f"{gateway.url}/openenv/{task}", "headers": {"Authorization": f"Bearer {TOKEN}"}}


def transcript(messages: list[Any]) -> list[Message]:
    return [Message(role=each["role"], content=each["content"] or "") for each in messages]


def reference(environment: str, sample: str) -> Policy:
    found = registry.load(environment)().reference(sample)
    assert found is not None
    return found


def test_1_an_episode_is_solved_by_the_reference_and_2_its_rewards_add_up(gateway: Server, clients: Driver) -> None:
    clients(0, "open", base(gateway, "alfworld"))
    result = clients(0, "reset", {"index": 0})
    history, rewards = transcript(result["observation"]["messages"]), [result["reward"]]
    policy = reference("alfworld", result["observation"]["sample"])
    while not result["done"]:
        action = policy("main", history)
        result = clients(0, "step", {"content": action.content})
        rewards.append(result["reward"])
        history += [action.message(), *transcript(result["observation"]["messages"])]
    assert result["observation"]["finish"]["reason"] == "completed"
    assert [reward for reward in rewards if reward is not None] == [1.0]
    assert clients(0, "state")["score"] == 1.0


def test_3_the_seventeenth_client_waits_for_a_slot(gateway: Server, clients: Driver) -> None:
    for number in range(17):
        clients(number, "open", base(gateway, "alfworld"))
    for number in range(16):
        assert clients(number, "reset", {})["done"] is False
    with pytest.raises(RuntimeError, match=r"16/16 sessions active.*\(code: CAPACITY_REACHED\)"):
        clients(16, "reset", {})
    clients(3, "close")
    assert clients(16, "reset", {})["done"] is False


def test_4_a_killed_client_frees_its_slots_within_5_seconds(gateway: Server, clients: Driver) -> None:
    for number in range(16):
        clients(number, "open", base(gateway, "alfworld"))
        clients(number, "reset", {})
    assert gateway.metric("proctor_foreign_sessions_live") == 16
    clients.process.kill()
    killed = time.monotonic()
    while gateway.metric("proctor_foreign_sessions_live"):
        assert time.monotonic() - killed < slowly(5)


def test_6_its_synchronous_face_works_and_resets_twice(gateway: Server, clients: Driver) -> None:
    assert clients(0, "sync", base(gateway, "alfworld")) == [True, False, 1]


def test_8_its_tool_client_plays_a_tools_task(gateway: Server, clients: Driver) -> None:
    clients(0, "mcp", base(gateway, "tables"))
    clients(0, "reset", {"index": 0})
    assert clients(0, "tools") == ["execute_sql", "commit_final_answer"]
    assert clients(0, "call", {"name": "execute_sql", "arguments": {"query": "SELECT 17"}}) == "[(17,)]"
    over = clients(0, "call", {"name": "commit_final_answer", "arguments": {"answers": ["none"]}})
    assert over == "The episode is over."
    assert clients(0, "state")["step_count"] == 2


def test_the_pages_programs_run_word_by_word(gateway: Server, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "how-to" / "openenv.md").read_text(encoding="utf-8")
    plain, house = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    use = """
house = House()
told = house.reset(index=0)
assert "AVAILABLE ACTIONS" in told
assert "nothing" in house.act("look"), told
assert reward([house]) == [0.0]
house.client.close()
try:
    house.act("look")
except Exception:
    assert reward([house]) == [None]
else:
    raise AssertionError("a step without an episode must fail")
"""
    for number, program in enumerate((plain, house + use)):
        script = tmp_path / f"{number}.py"
        script.write_text(program.replace("http://127.0.0.1:8100", f"{gateway.url}/t/{TOKEN}"))
        done = finished([interpreter("openenv"), str(script)], timeout=slowly(60), env=environment({}))
        assert done.returncode == 0, done.stderr[-2000:]
        if number == 0:
            assert FinishReason(done.stdout.split()[-1]).is_fault is False


def test_10_without_the_token_there_is_no_connection(gateway: Server, clients: Driver) -> None:
    with pytest.raises(RuntimeError, match="HTTP 401"):
        clients(0, "open", {"base_url": f"{gateway.url}/openenv/alfworld"})
    clients(1, "open", {"base_url": f"{gateway.url}/t/{TOKEN}/openenv/alfworld"})
    assert clients(1, "reset", {})["done"] is False


@contextlib.contextmanager
def original(kind: str, **fields: Any) -> Iterator[OpenEnv]:
    """The environment of a server that lives as long."""
    command = [interpreter("openenv"), str(DRIVERS / "openenv_server.py"), kind]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment({})) as process:
        assert process.stdout is not None
        try:
            port = int(process.stdout.readline())
            yield OpenEnv.model_validate({"url": f"http://127.0.0.1:{port}", **fields})
        finally:
            process.kill()


async def test_7_seeds_are_solved_a_raise_is_a_fault_and_too_many_steps_a_limit() -> None:
    with original("text", samples=10, max_steps=3) as world:
        assert len(world.digest()) == 32
        finishes = [await play_to_finish(world, sample, Saying("x", sample)) for sample in world.samples()]
        assert {(finish.reason, finish.score) for finish in finishes} == {(FinishReason.COMPLETED, 1.0)}
        fault = await play_to_finish(world, "1", Saying("boom"))
        assert (fault.reason, fault.score) == (FinishReason.TASK_ERROR, None)
        assert "EXECUTION_ERROR: it broke" in str(fault.detail["cause"])
        agent = Saying("x")
        assert (await play_to_finish(world, "1", agent)).reason is FinishReason.TURN_LIMIT
        assert agent.texts() == ["guess a digit", "wrong", "wrong"]


async def test_7_tasks_of_its_routes_are_played() -> None:
    with original("text") as world:
        assert world.samples() == ("0", "1", "2", "3")
        assert (await play_to_finish(world, "3", Saying("3"), seed=5)).score == 1.0


async def test_7_an_environment_of_tools_is_a_tools_task() -> None:
    agent = Calling("?", "1", "3")
    with original("tools", samples=10) as world:
        assert world.protocol == "tools"
        finish = await play_to_finish(world, "3", agent)
    assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 1.0), finish.detail
    assert [tool.name for tool in agent.told[0].tools] == ["guess"]
    assert agent.texts()[2:] == ["wrong"]
