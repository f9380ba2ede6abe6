"""Foreign sessions over a real worker in this process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.http.client import http_client
from proctor.types import Finish, FinishReason, Observation
from proctor_bridges.gateway import gateway as gateway_module
from proctor_bridges.gateway.foreign_session import (
    ForeignSession,
    NoSlot,
    NoSuchSample,
    NotOffered,
    SessionGone,
    StepUnderWay,
    act,
)
from proctor_bridges.gateway.gateway import Gateway
from proctor_bridges.gateway.serve import own_worker, tasks_tried
from task_server.client.client import TaskClient
from task_server.wire.messages import SampleList, Stop, TaskList
from task_server.worker import worker as worker_module
from task_server.worker.worker import Worker
from tests.pace import in_time, slowly
from tests.task_server_world import Counting
from tests.unit.bridges.gateway.world import client_of, listed


class Trusting(Counting):
    """For built-in agents alone."""

    def trusted_agents_only(self) -> bool:
        return True


class SlowToStart(Counting):
    """Starts after everything else that waits has had its turn."""

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        await asyncio.sleep(0.1)
        yield


async def test_tasks_of_its_own_are_waited_for_until_they_have_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a client that comes as soon as the address is said finds them."""
    monkeypatch.setattr(registry, "load", lambda name: SlowToStart)
    async with own_worker([TaskDefinition(name="slow", environment="slow")]) as (url, token), http_client() as http:
        client = TaskClient(url, http, token)
        await tasks_tried(client)
        (task,) = (await client.tasks()).tasks
    assert task.waiting is None


class Clock:
    def __init__(self) -> None:
        self.time = 1000.0

    def __call__(self) -> float:
        return self.time


class World:
    """A worker with two slots, and a gateway to it whose clocks are ours."""

    def __init__(self) -> None:
        self.clock = Clock()
        kinds = {"counting": Counting, "trusting": Trusting}
        tasks = [
            TaskDefinition(name="numbers", environment="counting", capacity=2),
            TaskDefinition(name="guarded", environment="trusting"),
        ]
        registry.load = lambda name: kinds[name]
        self.worker = Worker("w", "http://worker", tasks, now=self.clock)
        self.client = client_of(self.worker)
        self.gateway = Gateway(self.client, idle_s=240.0, now=self.clock)

    async def free(self, slots: int) -> None:
        """Return once so many slots of `numbers` are free."""
        await listed(self.client, lambda tasks: [task.free for task in tasks if task.name == "numbers"] == [slots])


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(registry, "load", registry.load)
    monkeypatch.setattr(gateway_module, "TICK_S", 3600.0)
    monkeypatch.setattr(worker_module, "TICK_S", 0.001)
    world = World()
    async with world.worker.running(), world.gateway.running():
        await offered(world, "numbers")
        yield world


def asked(session: ForeignSession) -> str:
    assert isinstance(session.state, Observation)
    return session.state.messages[-1].content


def ended(session: ForeignSession) -> Finish:
    assert isinstance(session.state, Finish)
    return session.state


async def test_a_lost_session_is_a_fault(world: World) -> None:
    session = await world.gateway.start("numbers", "plain")
    await world.client.end(session.server_id)
    await world.gateway.step(session, act("1"))
    assert ended(session).reason is FinishReason.TASK_ERROR


async def test_tasks_for_builtin_agents_alone_are_not_offered(world: World) -> None:
    offers = await world.gateway.offers()
    assert {name: (offer.total, offer.free) for name, offer in offers.items()} == {"numbers": (2, 2)}
    for task in ("guarded", "unknown"):
        with pytest.raises(NotOffered):
            await world.gateway.start(task, "plain")
    with pytest.raises(NoSuchSample):
        await world.gateway.start("numbers", "unknown")


class Watched:
    """Notes whose samples are asked for, and answers once `together` tasks are waited for at the same time."""

    def __init__(self, client: TaskClient, together: int) -> None:
        self._client, self._all = client, asyncio.Barrier(together)
        self.asked: list[str] = []
        self.digest: str | None = None
        """That all tasks have, instead of their own."""

    async def tasks(self) -> TaskList:
        listed = await self._client.tasks()
        if self.digest is None:
            return listed
        return TaskList(
            version="1", tasks=tuple(each.model_copy(update={"digest": self.digest}) for each in listed.tasks)
        )

    async def samples(self, task: str, digest: str | None) -> SampleList:
        self.asked.append(task)
        await self._all.wait()
        return await self._client.samples(task, digest)


async def test_one_task_is_looked_up_alone_and_all_tasks_at_the_same_time(world: World) -> None:
    await listed(world.client, lambda tasks: all(task.waiting is None for task in tasks))
    for task, together, asked in (("numbers", 1, ["numbers"]), (None, 2, ["guarded", "numbers"])):
        watched = Watched(world.client, together)
        gateway = Gateway(cast(TaskClient, watched), idle_s=240.0)
        if task is None:
            assert list(await gateway.offers()) == ["numbers"]
        else:
            assert "plain" in (await gateway.offer(task)).catalogue.samples
        assert sorted(watched.asked) == asked


async def test_the_samples_of_a_revision_that_is_gone_are_forgotten(world: World) -> None:
    watched = Watched(world.client, 1)
    gateway = Gateway(cast(TaskClient, watched), idle_s=240.0)
    for digest in ("a", "b", "b", "a"):
        watched.digest = digest
        await gateway.offer("numbers")
    assert watched.asked == ["numbers"] * 3


async def test_ids_are_numbers_unless_the_wire_chooses_them(world: World) -> None:
    first, second = [await world.gateway.start("numbers", "plain") for _ in range(2)]
    assert isinstance(first.id, int)
    assert second.id == first.id + 1
    await world.gateway.cancel(first)
    await world.free(1)
    named = await world.gateway.start("numbers", "plain", id="mine")
    assert world.gateway.find("mine") is named


@pytest.mark.parametrize("answers", [["1"], ["1", "2", "3"]], ids=["under way", "over"])
async def test_a_repetition_after_a_lost_answer_is_no_turn(world: World, answers: list[str]) -> None:
    session = await world.gateway.start("numbers", "plain")
    for answer in answers:
        await world.gateway.step(session, act(answer))
    state, session.answer_lost = session.state, True
    await world.gateway.step(session, act(answers[-1]))
    assert (session.turn, session.state) == (len(answers), state)


async def test_a_request_repeated_while_it_is_answered_is_no_turn(world: World) -> None:
    session = await world.gateway.start("numbers", "plain")
    await asyncio.gather(*(world.gateway.step(session, act("1")) for _ in range(3)))
    assert session.turn == 1
    with pytest.raises(StepUnderWay):
        await asyncio.gather(*(world.gateway.step(session, act(answer)) for answer in "23"))
    await in_time(lambda: session.turn == 2 and not session.lock.locked())


async def test_a_key_names_the_request(world: World) -> None:
    session = await world.gateway.start("numbers", "plain")
    for key in (1, 1, 2):
        await world.gateway.step(session, act("1"), key)
    assert session.turn == 2


async def test_what_is_idle_ends_and_what_is_not_keeps_its_lease(world: World) -> None:
    idle, used = [await world.gateway.start("numbers", "plain") for _ in range(2)]
    for _ in range(9):
        world.clock.time += 30.0
        await world.gateway.tend()
        world.gateway.find(used.id)
    await world.free(1)
    with pytest.raises(SessionGone):
        world.gateway.find(idle.id)
    await world.gateway.step(used, act("1"))
    assert asked(used) == "1"


async def test_a_session_that_the_server_lost_is_found_out(world: World) -> None:
    session = await world.gateway.start("numbers", "plain")
    await world.client.end(session.server_id)
    world.clock.time += 30.0
    await world.gateway.tend()
    assert ended(session).reason is FinishReason.TASK_ERROR


async def test_after_a_drain_nothing_starts(world: World) -> None:
    session = await world.gateway.start("numbers", "plain")
    draining = asyncio.create_task(world.gateway.drain(1000.0))
    await asyncio.sleep(0)
    with pytest.raises(NoSlot):
        await world.gateway.start("numbers", "plain")
    assert not draining.done()
    await world.gateway.step(session, Stop(reason=FinishReason.TURN_LIMIT))
    await draining


async def test_a_drain_ends_with_the_last_session_that_the_server_lost(world: World) -> None:
    session = await world.gateway.start("numbers", "plain")
    draining = asyncio.create_task(world.gateway.drain(1000.0))
    await asyncio.sleep(0)
    await world.client.end(session.server_id)
    world.clock.time += 30.0
    await world.gateway.tend()
    await in_time(draining.done)


async def test_the_gateway_ends_though_the_task_server_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def end(server_id: str, url: str) -> None:
        ends.append(server_id)
        await asyncio.Event().wait()

    ends: list[str] = []
    monkeypatch.setattr(registry, "load", registry.load)
    monkeypatch.setattr(gateway_module, "LAST_ENDS_S", 0.01)
    world = World()
    async with world.worker.running(), asyncio.timeout(slowly(30)), world.gateway.running():
        await offered(world, "numbers")
        session = await world.gateway.start("numbers", "plain")
        monkeypatch.setattr(world.client, "end", end)
    assert ends == [session.server_id]


async def test_all_sessions_end_with_the_gateway(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load", registry.load)
    world = World()
    async with world.worker.running():
        async with world.gateway.running():
            await offered(world, "numbers")
            await world.gateway.start("numbers", "plain")
        await world.free(2)


async def offered(world: World, task: str) -> None:
    async with asyncio.timeout(slowly(60)):
        while task not in await world.gateway.offers():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.001)
