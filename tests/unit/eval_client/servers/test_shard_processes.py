"""The other clients of `--shards`, and how their end is waited for."""

import asyncio
import sys
from pathlib import Path

import pytest

from eval_client.servers import shard_processes
from eval_client.servers.shard_processes import ShardProcesses
from tests.pace import slowly


async def client(code: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdin=asyncio.subprocess.PIPE)


async def test_a_crew_of_nobody_asks_nothing_of_the_store() -> None:
    async def over() -> None:
        pytest.fail("asked")

    assert await ShardProcesses().ended(over()) == []
    await asyncio.sleep(0)


async def test_clients_that_play_on_are_waited_for_where_nobody_knows_whether_the_run_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shard_processes, "ENDING_S", 0.0)

    asked = asyncio.Event()

    async def over() -> None:
        asked.set()
        raise RuntimeError("the run was deleted")

    others = ShardProcesses()
    process = await client("input()")
    others._clients.append((process, Path("log")))
    ending = asyncio.create_task(others.ended(over()))
    await asyncio.wait_for(asked.wait(), slowly(20))
    for _ in range(20):  # whatever follows from that but the end of the client
        await asyncio.sleep(0)
    assert not ending.done()
    assert process.stdin is not None
    process.stdin.write(b"\n")
    assert await asyncio.wait_for(ending, slowly(20)) == []


async def test_a_client_that_stands_still_after_the_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shard_processes, "ENDING_S", 0.0)

    async def over() -> None:
        pass

    others = ShardProcesses()
    others._clients.append((await client("input()"), Path("log")))
    (said,) = await others.ended(over())
    assert "hung and was killed" in said
    await others.kill_all()
