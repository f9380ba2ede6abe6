"""`environment: openenv` plays servers of the package openenv. Numbers are the specification's."""

import contextlib
import subprocess
from collections.abc import Iterator
from typing import Any

from proctor.session.play import play_to_finish
from proctor.types import FinishReason
from proctor_bridges.worlds.openenv.environment import OpenEnv
from tests.integration.openenv.test_environment import Calling, Saying
from tests.interop.counterparts import DRIVERS, environment, interpreter


@contextlib.contextmanager
def server(kind: str, **fields: Any) -> Iterator[OpenEnv]:
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
    with server("text", samples=10, max_steps=3) as world:
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
    with server("text") as world:
        assert world.samples() == ("0", "1", "2", "3")
        assert (await play_to_finish(world, "3", Saying("3"), seed=5)).score == 1.0


async def test_7_an_environment_of_tools_is_a_tools_task() -> None:
    agent = Calling("?", "1", "3")
    with server("tools", samples=10) as world:
        assert world.protocol == "tools"
        finish = await play_to_finish(world, "3", agent)
    assert (finish.reason, finish.score) == (FinishReason.COMPLETED, 1.0), finish.detail
    assert [tool.name for tool in agent.told[0].tools] == ["guess"]
    assert agent.texts()[2:] == ["wrong"]
