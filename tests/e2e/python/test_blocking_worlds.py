"""Worlds of this process that block its event loop: the time that others lose by it counts in none of their limits."""

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from proctor import Agent, Environment, Finish, FinishReason, Message, Observation, Tool, evaluate
from proctor.config.task import TaskDefinition
from task_server.wire.messages import StartSession
from task_server.worker.worker import Worker
from tests.e2e.scripted import ScriptedEndpoint, reply
from tests.pace import slowly, until


def block(seconds: float) -> None:
    time.sleep(seconds)


class Pair(Environment):
    """Of two sessions `waits` asks its agent; `blocks` waits until that is under way, and blocks the loop."""

    seconds: float = 0.0

    def samples(self) -> Sequence[str]:
        return ["waits", "blocks"]

    async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
        if sample == "blocks":
            await asyncio.to_thread(until, self.asked)
            block(self.seconds)
            await asyncio.sleep(0.2)  # in which whoever was late is out of time
            OVER.set()
        else:
            await agent.act(Observation(messages=(Message(role="user", content="?"),)))
        return Finish(reason=FinishReason.COMPLETED, score=1.0)

    def asked(self) -> bool:
        return bool(CALLS)


CALLS = Counter[str]()
OVER = asyncio.Event()


async def waits(messages: Sequence[Message], tools: Sequence[Tool], sample: str) -> str:
    CALLS[sample] += 1
    await OVER.wait()
    return "answer"


def test_a_trial_beside_a_world_that_blocks_is_not_out_of_time_and_asks_once(tmp_path: Path) -> None:
    CALLS.clear()
    OVER.clear()
    limit_s = slowly(2)
    limits = {"limits.trial.seconds": limit_s, "limits.attempts": 1}
    run = evaluate(agents=waits, tasks=[Pair(seconds=limit_s + 2)], overrides=limits, folder=tmp_path)
    assert [(trial.sample, trial.score) for trial in run.trials()] == [("waits", 1.0), ("blocks", 1.0)]
    assert CALLS == {"waits": 1}


ENDPOINTS: list[ScriptedEndpoint] = []


class Tried(Pair):
    def asked(self) -> bool:
        return bool(ENDPOINTS[0].requests)


def test_an_endpoint_is_waited_for_by_the_time_in_which_it_could_be_asked(
    tmp_path: Path, endpoint: ScriptedEndpoint
) -> None:
    ENDPOINTS[:] = [endpoint]
    endpoint.bad = [reply(503, b"{}")]
    patience_s = slowly(3)
    served = {"name": "e", "base_url": endpoint.url, "patience_s": patience_s}
    plan = {"endpoints": [served], "agents": [{"name": "model", "endpoint": "e"}]}
    run = evaluate(plan, tasks=[Tried(seconds=patience_s + 2)], folder=tmp_path)
    assert [trial.score for trial in run.trials()] == [1.0, 1.0]
    assert len(endpoint.requests) == 2


async def test_a_lease_does_not_run_while_the_loop_is_blocked() -> None:
    task = TaskDefinition(name="pair", environment="pair", parameters={}, capacity=4)
    worker = Worker("w", "http://w", [task], worlds={"pair": Pair()})
    async with worker.running():
        await asyncio.to_thread(until, lambda: worker.capacities()[0].free > 0)
        lease_s = slowly(2)
        request = StartSession(session="f" * 32, task="pair", sample="waits", seed=0, lease_s=lease_s)
        started = await worker.start(request)
        block(lease_s + 2)
        for _ in range(20):  # in which the worker sees which leases are over
            await asyncio.sleep(0)
        assert (await worker.start(request)).step == started.step, "the session goes on"
