"""One model behind several servers, by a simulated clock: who asks which, and where trials go on when one is down."""

import asyncio
import contextlib
import heapq
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from pydantic import JsonValue

from eval_client.core.limits.throttle import EndpointLimit
from eval_client.endpoints.bound_model import BoundModel
from eval_client.endpoints.replica_watch import ReplicaWatch
from eval_client.endpoints.replicas import Replica, ReplicaModel, Replicas
from eval_client.plan.entries import Endpoint
from proctor.environment import AgentRefused, AgentUnavailable
from proctor.llm.config import ReplicaEntry
from proctor.llm.endpoint import AgentUnauthorized
from proctor.llm.model import Completion
from proctor.llm.outage import EndpointDown, Failed, Waited, paid_by
from proctor.types import Action, Message, Tool, Usage
from tests.unit.eval_client.endpoints.simulated_loop import now, simulated

REFUSED = Failed("connection refused", sent=False)
LOST = Failed("connection reset")
BROKEN = Failed("status 500", status=500, judged=True)
BUSY = Failed("status 429", status=429, judged=True)
DENIED = "status 401"
HANGS = "hangs"
PAID = Usage(prompt_tokens=3, estimated_tokens=3)
QUESTION = (Message(role="user", content="?"),)


@dataclass
class Server:
    """A scripted server: an answer takes `answer_s`; `trouble` is how it fails, if it does."""

    url: str
    answer_s: float = 1.0
    trouble: Failed | str | None = None
    under_way: dict[str, asyncio.Future[None]] = field(default_factory=dict)
    most: int = 0
    answered: Counter[str] = field(default_factory=Counter)
    asked: list[tuple[float, str]] = field(default_factory=list)
    killed_by: str | None = None
    throttles: bool = False
    """Whether it answers 429 while it has something to do."""

    async def ask(self, trial: str) -> str | Failed:
        """The reply to one request; `trial` is `probe` for a request for one token."""
        self.asked.append((now(), trial))
        if self.trouble == HANGS:
            await asyncio.sleep(1e6)
        if isinstance(self.trouble, Failed):
            return self.trouble
        if self.throttles and trial == "probe" and self.under_way:
            return BUSY
        if self.trouble == DENIED:
            raise AgentUnauthorized(DENIED)
        dies = asyncio.get_running_loop().create_future()
        self.under_way[trial] = dies
        self.most = max(self.most, len(self.under_way))
        if trial == self.killed_by:
            asyncio.get_running_loop().call_later(self.answer_s / 2, self.die)
        try:
            await asyncio.wait({dies}, timeout=0.01 if trial == "probe" else self.answer_s)
        finally:
            del self.under_way[trial]
        if dies.done():
            return LOST
        self.answered[trial] += 1
        return "hello"

    def die(self, for_s: float = 60.0) -> None:
        """Lose all connections and refuse others for some time."""
        self.trouble = REFUSED
        for request in self.under_way.values():
            if not request.done():
                request.set_result(None)
        asyncio.get_running_loop().call_later(for_s, self.revive)

    def revive(self) -> None:
        self.trouble = None


class World:
    """Replicas with a scripted server each, and trials that ask them turn by turn."""

    def __init__(self, servers: Sequence[Server], *, concurrency: int = 16, **fields: object) -> None:
        urls = [server.url for server in servers]
        endpoint = Endpoint.model_validate({"name": "e", "base_url": urls, "concurrency": concurrency, **fields})
        self.servers = {server.url: server for server in servers}
        self.changes: list[int] = []
        self.all = Replicas(endpoint, self._model, lambda: self.changes.append(self.all.capacity), now)
        for url in urls:
            self._join(ReplicaEntry(base_url=url)).ready = True
        self.watch = ReplicaWatch(self.all, self._probe, self._look, self._join)
        self.problems: dict[str, str] = {}
        self.begun = 0
        """Trials that `play` has begun."""

    def _join(self, entry: ReplicaEntry) -> Replica:
        limit = EndpointLimit(self.all.endpoint.at(entry).concurrency)
        replica = self.all.add(entry.base_url, f"e at {entry.base_url}", limit, ready=False)
        replica.grant = limit.ceiling
        return replica

    async def _look(self, replica: Replica) -> str | None:
        return self.problems.get(replica.url)

    async def _probe(self, replica: Replica, agent: str | None) -> object:
        return await self.servers[replica.url].ask("probe")

    def _model(self, agent: str, replica: Replica) -> ReplicaModel:
        server = self.servers[replica.url]

        async def complete(
            messages: Sequence[Message],
            tools: Sequence[Tool],
            metadata: Mapping[str, str],
            sampling: Mapping[str, JsonValue] | None = None,
        ) -> Completion:
            trial = metadata["sample"]
            try:
                reply = await replica.outage.ask(lambda: server.ask(trial), lambda: server.ask("probe"), Waited())
            except asyncio.CancelledError as taken_back:
                vars(taken_back)["paid"] = PAID
                raise
            if isinstance(reply, Failed):
                raise AgentUnavailable(reply.cause)
            return Completion(action=Action(content=reply), usage=Usage(), model="m", stop="stop", seconds=1, tries=1)

        return complete

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        watching = asyncio.create_task(self.watch.run())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def trial(self, name: str, turns: int, agent: str = "a") -> list[str | None]:
        """Play a trial; the URL that answered each turn."""
        binding = BoundModel(self.all, agent)
        try:
            return [(await binding(QUESTION, (), {"sample": name})).replica for _ in range(turns)]
        finally:
            binding.leave()

    async def play(self, trials: int, at_once: int, turns: int | Callable[[int], int] = 3) -> list[list[str | None]]:
        """Play trials, so many at once as the flow would."""
        slots, played = asyncio.Semaphore(at_once), turns if callable(turns) else lambda _: turns

        async def one(number: int) -> list[str | None]:
            async with slots:
                self.begun += 1
                return await self.trial(f"t{number}", played(number))

        return await asyncio.gather(*map(one, range(trials)))


def servers(count: int, answer_s: float = 1.0) -> list[Server]:
    return [Server(f"http://h{number}/v1", answer_s) for number in range(count)]


def test_a_trial_stays_at_one_replica_and_the_load_is_equal() -> None:
    world = World(servers(8))

    async def run() -> list[list[str | None]]:
        counts: list[list[int]] = []

        async def look() -> None:
            await asyncio.sleep(0.1)
            while True:
                await asyncio.sleep(0.25)
                if world.begun < 400:
                    counts.append([len(replica.bound) for replica in world.all.all.values()])

        looking = asyncio.create_task(look())
        played = await world.play(400, 100, turns=lambda number: 1 + number * 7 % 13)
        looking.cancel()
        assert len(counts) > 50
        assert all(sum(each) == 100 and max(each) - min(each) <= 1 for each in counts)
        return played

    played = simulated(run())
    assert all(len(set(trial)) == 1 for trial in played)
    assert world.all.capacity == 128
    assert all(server.most <= 16 for server in world.servers.values())


def test_a_lost_server_loses_no_turn_and_comes_back() -> None:
    world = World(servers(8))

    async def run() -> list[list[str | None]]:
        async with world.watched():
            asyncio.get_running_loop().call_later(2.5, world.servers["http://h3/v1"].die, 12.0)
            return await world.play(400, 112, turns=10)

    played = simulated(run())
    moved = [trial for trial in played if len(set(trial)) > 1]
    assert 1 <= len(moved) <= 16
    assert all("http://h3/v1" in trial and len(set(trial)) == 2 for trial in moved)
    asked = [at for at, trial in world.servers["http://h3/v1"].asked if trial != "probe" and 2.5 < at < 14.5]
    assert len(asked) <= 16 + 5  # each call under way once, and one at a time until it counted as down
    assert (min(world.changes), world.changes[-1]) == (112, 128)
    assert any(trial[0] == "http://h3/v1" and trial[-1] == trial[0] for trial in played[200:])  # back


def test_a_trial_pays_for_calls_that_were_taken_back_from_lost_servers_however_the_last_one_ends() -> None:
    world = World(servers(2, 10.0))

    async def run(trouble: str | None) -> Usage | None:
        first, second = world.servers.values()
        first.trouble, second.trouble = HANGS, trouble
        bound = BoundModel(world.all, "a", first.url)
        asyncio.get_running_loop().call_later(1.0, lambda: world.all.all[first.url].outage.failed("hangs", surely=True))
        try:
            return (await bound(QUESTION, (), {"sample": "t"})).usage
        except AgentUnavailable as failed:
            return paid_by(failed)
        finally:
            bound.leave()
            world.all.all[first.url].outage.answered()

    assert simulated(run(None)) == PAID
    assert simulated(run(DENIED)) == PAID


def test_new_trials_wait_while_trials_of_a_lost_server_have_no_place() -> None:
    world = World(servers(2), concurrency=2)

    async def run() -> list[list[str | None]]:
        async with world.watched():
            asyncio.get_running_loop().call_later(0.5, world.servers["http://h0/v1"].die, 1e5)
            olds = [asyncio.create_task(world.trial(f"old{number}", 8)) for number in range(4)]
            await asyncio.sleep(1)
            new = asyncio.create_task(world.trial("new", 1))
            played = await asyncio.gather(*olds, new)
            assert [trial for _, trial in world.servers["http://h1/v1"].asked if trial != "probe"][-1] == "new"
            return played

    assert [len(trial) for trial in simulated(run())] == [8, 8, 8, 8, 1]


def test_all_lost_for_a_minute_is_one_outage_and_nobody_is_suspected() -> None:
    world = World(servers(4))

    async def run() -> tuple[list[list[str | None]], float]:
        async with world.watched():
            for server in world.servers.values():
                asyncio.get_running_loop().call_later(3.5, server.die, 60.0)
            begun = now()
            played = await world.play(64, 64, turns=6)
            assert world.all.whole.since is None
            return played, now() - begun

    played, took_s = simulated(run())
    assert all(len(trial) == 6 and None not in trial for trial in played)
    assert took_s < 60 + 6 + 35  # at most one longest wait between two probes
    requests = sum(len([1 for _, trial in server.asked if trial != "probe"]) for server in world.servers.values())
    assert requests <= 64 * 6 + 64 * 2 + 4 * 8


def test_servers_that_never_answer_end_the_agent_after_the_patience() -> None:
    for patience_s, expected_s in ((None, 60.0), (300.0, 300.0)):
        world = World(servers(3), patience_s=patience_s)
        for server in world.servers.values():
            server.trouble = REFUSED

        async def run(world: World = world) -> float:
            async with world.watched():
                with pytest.raises(AgentRefused, match="connection refused: no answer for"):
                    await world.trial("t", 1)
                return now()

        assert expected_s <= simulated(run()) <= expected_s + 30


def test_a_run_that_drains_does_not_wait_for_servers() -> None:
    world = World(servers(2))
    for server in world.servers.values():
        server.trouble = REFUSED

    async def run() -> None:
        async with world.watched():
            asyncio.get_running_loop().call_later(20, world.all.release)
            with pytest.raises(EndpointDown):
                await world.trial("t", 1)
            assert now() < 25

    simulated(run())


@pytest.mark.parametrize("answers", [True, False])
def test_a_replica_that_refuses_the_key_is_taken_out_and_the_agent_only_where_all_do(answers: bool) -> None:
    world = World(servers(3))
    for url, server in world.servers.items():
        server.trouble = DENIED if url == "http://h0/v1" or not answers else None

    async def run() -> None:
        async with world.watched():
            if not answers:
                with pytest.raises(AgentUnauthorized, match=DENIED):
                    await world.trial("t", 1)
                return
            played = await world.play(60, 40)
            assert all(set(trial) <= {"http://h1/v1", "http://h2/v1"} for trial in played)
            assert len([1 for _, trial in world.servers["http://h0/v1"].asked if trial != "probe"]) <= 16

    simulated(run())


def test_a_server_that_hangs_is_found_out_and_a_slow_one_is_left_alone() -> None:
    world = World([*servers(6), Server("http://slow/v1", answer_s=200.0), Server("http://hangs/v1", trouble=HANGS)])

    async def run() -> list[list[str | None]]:
        async with world.watched():
            return await world.play(300, 128, turns=20)

    played = simulated(run())
    assert {url for trial in played for url in trial if len(set(trial)) > 1} <= set(world.servers) - {"http://hangs/v1"}
    assert any(set(trial) == {"http://slow/v1"} for trial in played)
    hung = world.servers["http://hangs/v1"].asked
    assert len([1 for _, trial in hung if trial != "probe"]) == 16
    assert all(len(trial) == 20 for trial in played)


def test_a_server_that_is_slow_and_takes_no_more_requests_is_not_down() -> None:
    world = World([*servers(3), Server("http://slow/v1", answer_s=200.0, throttles=True)])

    async def run() -> None:
        async with world.watched():
            await world.play(64, 64, turns=2)

    simulated(run())
    assert world.servers["http://slow/v1"].answered.total() == 2 * 16


def test_a_server_that_hangs_is_found_out_when_nothing_else_is_left_to_play() -> None:
    world = World([*servers(3), Server("http://hangs/v1", trouble=HANGS)])

    async def run() -> float:
        async with world.watched():
            await world.play(64, 64, turns=2)
            return now()

    assert 120 <= simulated(run()) <= 130


def test_a_prompt_that_kills_its_server_goes_on_alone_with_its_tries_counted() -> None:
    world = World(servers(6), concurrency=4, max_tries=4)
    for server in world.servers.values():
        server.killed_by = "killer"

    async def run() -> list[list[str | None] | BaseException]:
        async with world.watched():
            killer = asyncio.create_task(world.trial("killer", 1))
            await asyncio.sleep(0)
            others = [asyncio.create_task(world.trial(f"t{number}", 40)) for number in range(12)]
            return await asyncio.gather(killer, *others, return_exceptions=True)

    killer, *others = simulated(run())
    assert isinstance(killer, AgentUnavailable)
    assert "servers went down with it" in str(killer)
    assert all(isinstance(trial, list) and len(trial) == 40 for trial in others)
    kills = sum(trial == "killer" for server in world.servers.values() for _, trial in server.asked)
    assert 4 <= kills <= 2 * 4  # some are sent again before their server counts as down


def test_a_429_halves_its_own_replica_alone() -> None:
    world = World(servers(4), concurrency=8)
    one = world.all.all["http://h1/v1"]
    one.limit.throttled(0.0, None)
    assert (one.room, world.all.capacity) == (4, 4 + 3 * 8)


def test_replicas_join_in_the_middle_and_a_trial_that_was_answered_before_goes_back() -> None:
    world = World(servers(2), concurrency=4)

    async def run() -> None:
        async with world.watched():
            playing = asyncio.create_task(world.play(60, 12, turns=5))
            await asyncio.sleep(7)
            for server in [Server("http://h8/v1"), Server("http://h9/v1")]:
                world.servers[server.url] = server
                world.problems = {"http://h9/v1": "it serves other, not m"}
                world._join(ReplicaEntry(base_url=server.url))
            played = await playing
            assert any(set(trial) == {"http://h8/v1"} for trial in played)
            assert not world.servers["http://h9/v1"].asked
            binding = BoundModel(world.all, "a", "http://h8/v1")
            assert (await binding(QUESTION, (), {"sample": "again"})).replica == "http://h8/v1"

    simulated(run())


@pytest.mark.thorough
@pytest.mark.parametrize("concurrency", [4, 16])
def test_400_trials_on_8_replicas_take_at_most_a_twentieth_longer_than_on_one_server_of_their_size(
    concurrency: int,
) -> None:
    """Trials of 20 to 60 turns of a second each; the ideal is one queue for all places."""
    world, chance = World(servers(8), concurrency=concurrency), random.Random(38)
    turns = [chance.randint(20, 60) for _ in range(400)]
    places = [0] * (8 * concurrency)
    for count in turns:
        heapq.heapreplace(places, places[0] + count)

    async def run() -> float:
        await world.play(400, 8 * concurrency, turns=lambda number: turns[number])
        return now()

    assert simulated(run()) <= 1.05 * max(places)
