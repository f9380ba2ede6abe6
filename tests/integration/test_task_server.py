"""A worker and a controller in one process, over httpx.ASGITransport."""

import asyncio
import contextlib
import functools
import json
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Literal

import httpx
import pytest
from pydantic import ValidationError, model_validator
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as Message_

from proctor.config.task import TaskDefinition
from proctor.config.tokens import AccessTokens
from proctor.environment import Agent
from proctor.http.auth import Access
from proctor.retry import RetryPolicy
from proctor.session.play import PolicyAgent
from proctor.types import Action, Finish, FinishReason, Message, Observation, Summary, Value
from task_server.client.client import TaskClient
from task_server.controller.controller import Controller
from task_server.controller.publication import MAX_ANSWERS_PER_S, pause_before
from task_server.heartbeat import BATCH_S
from task_server.http.access import token_for, worker_access
from task_server.http.app import parsed
from task_server.http.transport import Caller
from task_server.wire.errors import (
    BadReply,
    BadRequest,
    DigestDiffers,
    Forbidden,
    InWork,
    NoCapacity,
    NotReady,
    ServerUnreachable,
    TurnConflict,
    Unauthorized,
    UnknownSample,
    UnknownSession,
    UnknownTask,
    WorkerLost,
)
from task_server.wire.messages import (
    SESSION_LEASE_S,
    VERSION,
    Act,
    Finished,
    Health,
    LeasesRenewed,
    Observed,
    SampleList,
    Sender,
    Started,
    StartSession,
    SummarizeRequest,
    TaskList,
)
from task_server.wire.worker_messages import TAKES_ALL, Heartbeat, WorkerList, WorkersQuery
from task_server.worker import sessions as sessions_module
from task_server.worker.sessions import TICK_S
from task_server.worker.worker import REFUSED_S, Worker
from tests.pace import in_time, slowly
from tests.support import via
from tests.task_server_world import Counting, anywhere, count, played

ONE, TWO, THREE = "1" * 32, "2" * 32, "3" * 32


class Network:
    """Hosts by name, each an app or nothing; what an `httpx.AsyncClient` sees of the world."""

    def __init__(self, called: bool) -> None:
        """`called`: clients call workers of this process, in place of posting to them."""
        self.called, self.services = called, dict[str, Worker]()
        self.hosts: dict[str, ASGIApp] = {}
        self.calls: list[tuple[str, str]] = []
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(self._app))

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        host = scope["server"][0]
        self.calls.append((host, f"{scope['method']} {scope['path']}"))
        if host not in self.hosts:
            raise httpx.ConnectError("refused") from ConnectionRefusedError()
        await self.hosts[host](scope, receive, send)

    def client(self, host: str = "w1", token: str | None = None, patience_s: float = 0.0) -> TaskClient:
        here = self.services.get(host) if self.called else None
        return TaskClient(f"http://{host}", via(self.http), token, patience_s=patience_s, here=here)


either_way = pytest.mark.parametrize("network", ["posted", "called"], indirect=True)
"""For tests of what a worker's clients see, however they reach it."""


@pytest.fixture
async def network(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> AsyncIterator[Network]:
    monkeypatch.setattr("proctor.registry.load", lambda name: Counting)
    network = Network(getattr(request, "param", "posted") == "called")
    async with network.http:
        yield network
    assert not (network.called and network.calls), "nothing is posted to a worker that is called"


@contextlib.asynccontextmanager
async def worker(
    network: Network,
    name: str = "w1",
    *,
    capacity: int = 2,
    controller: bool = False,
    token: str | None = None,
    **parameters: str | int,
) -> AsyncIterator[Worker]:
    """A running worker whose task "count" can take sessions."""
    task = TaskDefinition(name="count", environment="counting", capacity=capacity, parameters=dict(parameters))
    caller = Caller(via(network.http), token, home="http://c") if controller else None
    access = worker_access(f"http://{name}", AccessTokens.given(token))
    worker = Worker(name, f"http://{name}", [task], controller="http://c", caller=caller, access=access)
    network.hosts[name], network.services[name] = worker.app(), worker
    async with worker.running():
        await settled(network.client(name, token, patience_s=slowly(5.0)))
        yield worker
    network.hosts.pop(name, None)


@contextlib.asynccontextmanager
async def controller(
    network: Network,
    settle_s: float = 0.0,
    token: str | None = None,
    workers: str | None = None,
    now: Callable[[], float] = time.monotonic,
) -> AsyncIterator[Controller]:
    controller = Controller(
        "http://c",
        Caller(via(network.http), token),
        admit=anywhere,
        tokens=AccessTokens.given(token),
        access=Access(AccessTokens.given(token), only={("POST", "/workers"): AccessTokens.given(workers)}),
        settle_s=settle_s,
        now=now,
    )
    network.hosts["c"] = controller.app()
    async with controller.running():
        yield controller


async def settled(client: TaskClient, task: str = "count", free: int = 1) -> TaskList:
    """The task list once the task has that many free slots."""
    tasks = await client.tasks()
    while not any(standing.name == task and standing.free >= free for standing in tasks.tasks):
        tasks = await client.tasks(after=tasks.version, wait_s=2.0)
    return tasks


async def test_clients_that_wait_share_one_list_for_all_changes_of_a_moment(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded, encode = Counter[str](), TaskList.model_dump_json

    def counted(listed: TaskList) -> str:
        encoded.update([listed.version])
        return encode(listed)

    monkeypatch.setattr(TaskList, "model_dump_json", counted)
    task = {"name": "count", "environment": "counting", "total": 9, "waiting": None, "digest": "d"}
    beat = {"worker": "w1", "boot": "b", "url": "http://w1", "sessions": []}
    async with controller(network):
        version = (await network.client("c").tasks()).version
        waiting = [network.client("c", patience_s=slowly(5.0)).tasks(version, wait_s=20.0) for _ in range(50)]
        following = asyncio.gather(*waiting)
        await asyncio.sleep(0)
        encoded.clear()
        for sequence in range(1, 9):
            body = {**beat, "sequence": sequence, "tasks": [{**task, "free": sequence}]}
            assert (await network.http.post("http://c/workers", json=body)).status_code == 200
        answers = await following
        assert {(listed.version, listed.tasks[0].free) for listed in answers} == {(answers[0].version, 8)}
        assert encoded.total() == 1
        assert (await network.client("c").tasks()).version == answers[0].version, "nothing has changed since"


def test_the_more_clients_wait_the_rarer_are_answers_to_all_but_the_first_comes_soon() -> None:
    assert pause_before(1, passed_s=0.0) == pause_before(10, passed_s=0.0) == BATCH_S
    assert pause_before(50, passed_s=0.1) == pytest.approx(50 / MAX_ANSWERS_PER_S - 0.1)
    assert pause_before(50, passed_s=60.0) == BATCH_S


def say(content: object) -> Act:
    return Act(action=Action(content=str(content)))


class Spoken(Counting):
    """Takes calls of tools; two of its samples share a world."""

    protocol: Literal["text", "tools"] = "tools"

    def cluster(self, sample: str) -> str:
        return "broken" if sample == "fault" else "sound"


async def test_a_sample_list_tells_protocol_and_clusters_through_the_controller_too(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.registry.load", lambda name: Spoken)
    async with controller(network), worker(network, controller=True):
        await settled(network.client("c", patience_s=slowly(5.0)))
        for host in ("w1", "c"):
            listed = await network.client(host).samples("count")
            assert (listed.protocol, listed.clusters) == ("tools", ("sound", "sound", "broken"))
            assert listed.cluster_of() == {"plain": "sound", "other": "sound", "fault": "broken"}
            told = (await network.http.get(f"http://{host}/tasks/count/samples?digest=1")).json()
            assert "clusters" not in told, "an older client does not ask for them, and knows none"


async def test_a_sample_list_says_nothing_of_what_is_usual_to_older_clients(network: Network) -> None:
    async with worker(network):
        told = (await network.http.get("http://w1/tasks/count/samples")).json()
        assert not {"protocol", "clusters"} & told.keys()
        listed = await network.client().samples("count")
    assert (listed.protocol, listed.clusters) == ("text", ())
    assert listed.cluster_of() == {sample: sample for sample in listed.samples}


def test_a_sample_list_has_a_cluster_for_each_sample_or_none() -> None:
    fields = {"task": "t", "environment": "e", "samples": ("1", "2"), "digest": "d"}
    with pytest.raises(ValidationError, match="clusters: must be as many as samples, or none"):
        SampleList.model_validate({**fields, "clusters": ("1",)})
    with pytest.raises(ValidationError, match="at most 255 characters"):
        SampleList.model_validate({**fields, "clusters": ("1", "x" * 256)})


@either_way
async def test_an_agent_plays_a_remote_session_as_it_would_a_local_one(network: Network) -> None:
    local = await Counting().play("plain", PolicyAgent(count), seed=7)
    async with worker(network):
        assert await played(network.client(), "count", "plain", PolicyAgent(count), seed=7) == local


@either_way
async def test_every_request_may_be_repeated(network: Network) -> None:
    async with worker(network):
        client = network.client()
        started = await client.start(ONE, "count", "plain")
        assert await client.start(ONE, "count", "plain") == started
        second = await client.turn(started.url, ONE, 1, say(1))
        assert await client.turn(started.url, ONE, 1, say(1)) == second
        assert (await client.start(ONE, "count", "plain")).step == second
        with pytest.raises(TurnConflict, match="answered otherwise"):
            await client.turn(started.url, ONE, 1, say(2))
        with pytest.raises(TurnConflict, match="turn 2 is current"):
            await client.turn(started.url, ONE, 3, say(2))
        await client.end(ONE)
        await client.end(ONE)
        with pytest.raises(UnknownSession):
            await client.turn(started.url, ONE, 1, say(1))


@either_way
async def test_a_worker_refuses_what_it_can_not_start(network: Network) -> None:
    async with worker(network, capacity=1):
        client = network.client()
        with pytest.raises(UnknownTask, match="there are: count"):
            await client.start(ONE, "nothing", "plain")
        with pytest.raises(UnknownTask):
            await client.samples("nothing")
        with pytest.raises(UnknownSample):
            await client.start(ONE, "count", "nothing")
        await client.start(ONE, "count", "plain")
        with pytest.raises(NoCapacity):
            await client.start(TWO, "count", "plain")


@either_way
async def test_a_full_worker_takes_a_patient_client_when_a_slot_comes_free(network: Network) -> None:
    async with worker(network, capacity=1):
        client = network.client(patience_s=slowly(10.0))
        await client.start(ONE, "count", "plain")
        waiting = asyncio.create_task(client.start(TWO, "count", "plain"))
        await asyncio.sleep(0)
        await client.end(ONE)
        assert isinstance((await waiting).step, Observed)


@either_way
async def test_a_fault_of_the_environment_is_a_finish_without_a_score(network: Network) -> None:
    async with worker(network):
        client = network.client()
        started = await client.start(ONE, "count", "fault")
        step = await client.turn(started.url, ONE, 1, say(1))
        assert isinstance(step, Finished)
        assert (step.finish.reason, step.finish.score) == (FinishReason.TASK_ERROR, None)


async def test_a_task_that_can_not_start_says_why_and_takes_nothing(network: Network) -> None:
    task = TaskDefinition(name="count", environment="counting", parameters={"broken": "no Docker"})
    broken = Worker("w1", "http://w1", [task])
    network.hosts["w1"] = broken.app()
    async with broken.running():
        client = network.client()
        tasks = await client.tasks()
        while "no Docker" not in (tasks.tasks[0].waiting or ""):
            tasks = await client.tasks(after=tasks.version, wait_s=2.0)
        assert tasks.tasks[0].free == 0
        with pytest.raises(NotReady, match="no Docker"):
            await client.start(ONE, "count", "plain")
        assert (await network.http.get("http://w1/readyz")).status_code == 503
        assert (await client.samples("count")).samples


@either_way
async def test_sessions_and_what_they_share_are_freed_when_a_worker_stops(network: Network, tmp_path: Path) -> None:
    async with worker(network, folder=str(tmp_path)):
        await network.client().start(ONE, "count", "plain")
        assert len(list(tmp_path.iterdir())) == 2
    assert list(tmp_path.iterdir()) == []


async def test_a_step_in_work_is_said_to_be_so_and_the_client_asks_again(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = asyncio.Event()

    class Waiting(Counting):
        async def play(self, sample: str, agent: Agent, seed: int = 0) -> Finish:
            await agent.act(Observation(messages=(Message(role="user", content="?"),)))
            await go.wait()
            return Finish(reason=FinishReason.COMPLETED, score=1.0)

    monkeypatch.setattr("proctor.registry.load", lambda name: Waiting)
    monkeypatch.setattr(sessions_module, "STEP_WAIT_S", 0.001)
    async with worker(network):
        started = await network.client().start(ONE, "count", "plain")
        hurried = TaskClient("http://w1", via(network.http), step_s=0.0)
        with pytest.raises(InWork):
            await hurried.turn(started.url, ONE, 1, say(1))
        waiting = asyncio.create_task(network.client().turn(started.url, ONE, 1, say(1)))
        go.set()
        assert isinstance(await waiting, Finished)


@either_way
async def test_a_draining_worker_takes_nothing_new_and_lets_live_sessions_finish(network: Network) -> None:
    async with worker(network, turns=1) as draining:
        client = network.client()
        started = await client.start(ONE, "count", "plain")
        drained = asyncio.create_task(draining.drain(60.0))
        await asyncio.sleep(0)
        with pytest.raises(NotReady, match="draining"):
            await client.start(TWO, "count", "plain")
        assert (await client.tasks()).tasks[0].waiting == "draining"
        assert isinstance(await client.turn(started.url, ONE, 1, say(1)), Finished)
        await drained


async def test_a_second_drain_ends_the_first_at_once(network: Network) -> None:
    async with worker(network) as draining:
        await network.client().start(ONE, "count", "plain")
        patient = asyncio.create_task(draining.drain(3600.0))
        await asyncio.sleep(0)
        await draining.drain(0.0)
        await patient


async def test_a_controller_places_and_relays_as_a_worker_would(network: Network) -> None:
    async with controller(network), worker(network, "w1", controller=True), worker(network, "w2", controller=True):
        client = network.client("c")
        assert (await settled(client, free=4)).tasks[0].total == 4
        workers = set()
        for session in (ONE, TWO):
            started = await client.start(session, "count", "plain")
            assert await client.start(session, "count", "plain") == started
            workers.add(started.worker)
        listed = WorkerList.model_validate((await network.http.get("http://c/workers")).json()).workers
        assert [(each.worker, each.url, each.version) for each in listed] == [
            (name, f"http://{name}", VERSION) for name in sorted(workers)
        ]
        assert workers == {"w1", "w2"}
        relayed = await client.turn("http://c", TWO, 1, say(1))
        assert relayed == await client.turn(started.url, TWO, 1, say(1))
        assert await client.renew("http://c", [ONE, TWO, THREE]) == (THREE,)
        assert (await client.samples("count")).digest == "1"
        scored = Finish(reason=FinishReason.COMPLETED, score=0.5)
        summary = await client.summarize("count", [scored, Finish.fault(FinishReason.TASK_ERROR, "x")])
        assert summary.metrics == {"mean": 0.5, "n": 1, "not_understood": 0.0}
        await client.end(ONE, "http://c")
        await client.end(THREE, "http://c")
        assert await client.renew("http://c", [ONE, TWO]) == (ONE,)


async def test_turns_go_straight_to_the_worker_and_through_the_controller_where_it_can_not_be_reached(
    network: Network,
) -> None:
    async with controller(network), worker(network, "w1", controller=True):
        client = network.client("c")
        await settled(client)
        started = await client.start(ONE, "count", "plain")
        assert network.calls.index(("c", "GET /workers")) < network.calls.index(("w1", "GET /healthz"))
        network.calls.clear()
        await client.turn(started.url, ONE, 1, say(1))
        turn = f"POST /sessions/{ONE}/turns"
        assert [call for call in network.calls if "workers" not in call[1]] == [("w1", turn)]
        network.calls.clear()
        network.hosts["w1"] = without_health(network.hosts["w1"])
        other = network.client("c")
        for _ in range(3):
            await other.turn(started.url, ONE, 2, say(2))
        assert [call for call in network.calls if call[1] == turn] == [("c", turn), ("w1", turn)] * 3


async def test_a_worker_that_could_not_be_reached_is_probed_again(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("task_server.client.reachability.PROBES", RetryPolicy(base_s=0.0))
    async with controller(network), worker(network, "w1", controller=True):
        client = network.client("c")
        await settled(client)
        network.hosts["w1"], app = without_health(network.hosts["w1"]), network.hosts["w1"]
        started = await client.start(ONE, "count", "plain")
        network.hosts["w1"] = app
        turn = f"POST /sessions/{ONE}/turns"
        async with asyncio.timeout(slowly(20)):
            while ("c", turn) in network.calls or ("w1", turn) not in network.calls:
                network.calls.clear()
                await client.turn(started.url, ONE, 1, say(1))
                await asyncio.sleep(0)  # the calls of this network never wait


async def test_a_controller_that_is_away_for_ten_minutes_ends_no_session_and_no_worker(network: Network) -> None:
    ahead_s = 0.0
    task = TaskDefinition(name="count", environment="counting", capacity=2)
    async with controller(network):
        caller = Caller(via(network.http), None, home="http://c")
        away = Worker(
            "w1", "http://w1", [task], controller="http://c", caller=caller, now=lambda: time.monotonic() + ahead_s
        )
        network.hosts["w1"] = away.app()
        async with away.running():
            client = network.client("c", patience_s=slowly(10.0))
            await settled(client)
            await client.start(ONE, "count", "plain")
            app = network.hosts.pop("c")
            while ahead_s < 600.0:
                ahead_s += 0.9 * SESSION_LEASE_S
                await asyncio.sleep(1.2 * TICK_S)
                assert (await network.http.get("http://w1/healthz")).status_code == 200
            assert (await network.http.get("http://w1/readyz")).status_code == 503
            network.hosts["c"] = app
            assert isinstance(await client.turn("http://c", ONE, 1, say(1)), Observed)


async def test_a_worker_that_its_controller_refuses_says_each_reason_once_and_is_not_alive_after_a_minute(
    network: Network, caplog: pytest.LogCaptureFixture
) -> None:
    ahead_s, reason = 0.0, "elsewhere"

    async def admit(url: str, peer: str | None) -> bool:
        if reason:
            raise Forbidden(reason)
        return True

    async def status(path: str) -> int:
        return (await network.http.get(f"http://w1/{path}")).status_code

    async def said(text: str) -> None:
        await in_time(lambda: text in caplog.text)
        assert caplog.text.count(text) == 1

    caller = Caller(via(network.http), None, home="http://c")
    task = TaskDefinition(name="count", environment="counting", capacity=2)
    refused = Worker(
        "w1", "http://w1", [task], controller="http://c", caller=caller, now=lambda: time.monotonic() + ahead_s
    )
    placing = Controller("http://c", Caller(via(network.http), None), admit=admit, settle_s=0.0)
    network.hosts |= {"w1": refused.app(), "c": placing.app()}
    async with placing.running(), refused.running():
        await said("worker w1 is refused: elsewhere")
        await said("did not accept a heartbeat: Forbidden: elsewhere")
        reason = "banned"
        await said("worker w1 is refused: banned")
        await said("did not accept a heartbeat: Forbidden: banned")
        assert (await status("readyz"), await status("healthz")) == (503, 200)
        ahead_s += REFUSED_S
        assert await status("healthz") == 503
        started = await network.client("w1").start(ONE, "count", "plain")
        assert await status("healthz") == 200, "a session plays"
        await network.client("w1").end(ONE, started.url)
        assert await status("healthz") == 503
        app = network.hosts.pop("c")
        await said("did not accept a heartbeat: ServerUnreachable")
        ahead_s += 10 * REFUSED_S
        assert await status("healthz") == 200, "no controller answers"
        reason, network.hosts["c"] = "", app
        await said("worker w1 is back at http://w1; it was refused: banned")
        await said("the controller accepts heartbeats again")
        assert (await status("readyz"), await status("healthz")) == (200, 200)


async def silent(scope: Scope, receive: Receive, send: Send) -> None:
    raise httpx.ConnectTimeout("no answer")


def without_health(app: ASGIApp) -> ASGIApp:
    """The app, to whoever only asks whether it can be reached, gives no answer."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await (silent if scope["path"] == "/healthz" else app)(scope, receive, send)

    return answer


async def test_a_worker_sends_nobody_to_another_address(network: Network) -> None:
    def lying(app: ASGIApp) -> ASGIApp:
        async def changed(scope: Scope, receive: Receive, send: Send) -> None:
            async def altered(message: Message_) -> None:
                if message["type"] == "http.response.body":
                    message["body"] = message["body"].replace(b"http://w1", b"http://in")
                await send(message)

            await app(scope, receive, altered)

        return changed

    async with controller(network), worker(network, "w1", controller=True):
        client = network.client("c")
        await settled(client)
        network.hosts["w1"] = lying(network.hosts["w1"])
        network.hosts["in"] = network.hosts["w1"]
        assert (await client.start(ONE, "count", "plain")).url == "http://w1"
        network.calls.clear()
        for elsewhere in (client, network.client("w1")):
            assert isinstance(await elsewhere.turn("http://in", ONE, 1, say(1)), Observed)
            assert await elsewhere.renew("http://in", [ONE]) == ()
        assert (await network.client("w1").start(ONE, "count", "plain")).url == "http://in"
        await network.client("w1").end(ONE, "http://in")
        assert "in" not in {host for host, _ in network.calls}


@either_way
async def test_a_worker_starts_no_session_of_a_run_that_began_with_another_digest(network: Network) -> None:
    async with worker(network, version="2"):
        client = network.client()
        with pytest.raises(DigestDiffers, match="has digest 2 here, the run began with 1"):
            await client.start(ONE, "count", "plain", digest="1")
        with pytest.raises(DigestDiffers):
            await client.summarize("count", [], digest="1")
        started = await client.start(ONE, "count", "plain", digest="2")
        assert await client.start(ONE, "count", "plain") == started
    for unasked in (StartSession(session=ONE, task="count", sample="plain"), SummarizeRequest(finishes=())):
        assert "digest" not in unasked.model_dump_json(), "an older worker does not know it"


async def test_one_heartbeat_with_a_bogus_digest_keeps_nothing_from_a_run_under_way(network: Network) -> None:
    async with controller(network) as placing, worker(network, controller=True):
        client = network.client("c")
        await settled(client, free=2)
        true = (await client.tasks()).tasks[0]
        bogus = true.model_copy(update={"digest": "feed", "free": 99, "total": 99})
        beat = Heartbeat(worker="w9", boot="b", url="http://w9", sequence=1, tasks=(bogus,), sessions=())
        await placing.heartbeat(beat, "127.0.0.1")
        listed = await client.tasks()
        assert listed.find("count", "1") == true
        assert (await client.samples("count", "1")).digest == "1"
        assert (await client.summarize("count", [], digest="1")).primary == "mean"
        for session in (ONE, TWO):
            assert (await client.start(session, "count", "plain", digest="1")).worker == "w1"
        with pytest.raises(NoCapacity):
            await client.start(THREE, "count", "plain", digest="1")
        with pytest.raises(NotReady, match="feed: w9"):
            await client.start(THREE, "count", "plain")
        assert not [call for call in network.calls if call[0] == "w9"]


async def test_a_worker_replaced_since_its_last_heartbeat_is_passed_over(network: Network) -> None:
    async with controller(network) as placing, worker(network, "w1", version="2"), worker(network, "w2"):
        for name in ("w1", "w2"):
            (standing,) = (await network.client(name).tasks()).tasks
            known = standing.model_copy(update={"digest": "1"})
            beat = Heartbeat(worker=name, boot="b", url=f"http://{name}", sequence=1, tasks=(known,), sessions=())
            await placing.heartbeat(beat, "127.0.0.1")
        assert (await network.client("c").start(ONE, "count", "plain", digest="1")).worker == "w2"


async def test_a_worker_that_comes_back_ends_the_sessions_that_were_placed_elsewhere(network: Network) -> None:
    ahead_s = 0.0
    late = controller(network, now=lambda: time.monotonic() + ahead_s)
    async with late as placing, worker(network, controller=True):
        client = network.client("c")
        await settled(client, free=2)
        await client.start(ONE, "count", "plain")
        await client.start(TWO, "count", "plain")
        (standing,) = (await network.client("w1").tasks()).tasks
        network.hosts["c"], app = silent, network.hosts["c"]
        ahead_s = 1e12
        async with asyncio.timeout(slowly(20)):
            while (await placing.workers(WorkersQuery())).workers:  # noqa: ASYNC110 - no event tells that one is lost
                await asyncio.sleep(0.01)
        other = Heartbeat(worker="w2", boot="b", url="http://w2", sequence=1, tasks=(standing,), sessions=(ONE,))
        await placing.heartbeat(other, "127.0.0.1")
        network.hosts["c"] = app
        alone = network.client("w1")
        await settled(alone, free=1)
        with pytest.raises(UnknownSession):
            await alone.turn("http://w1", ONE, 1, say(1))
        assert isinstance(await alone.turn("http://w1", TWO, 1, say(1)), Observed)


async def test_a_start_that_may_have_succeeded_begins_the_session_at_no_other_worker(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("task_server.client.client.DOUBTFUL_S", 0.0)

    async def die_after_it(scope: Scope, receive: Receive, send: Send) -> None:
        await placing.app()(scope, receive, lambda message: asyncio.sleep(0))
        network.hosts["c"] = successor.app()
        raise httpx.ReadError("the connection was reset")

    async with worker(network), worker(network, "w2"), controller(network) as placing, controller(network) as successor:
        (standing,) = (await network.client("w1").tasks()).tasks
        for known_to, name in ((placing, "w1"), (successor, "w2")):
            beat = Heartbeat(worker=name, boot="b", url=f"http://{name}", sequence=1, tasks=(standing,), sessions=())
            await known_to.heartbeat(beat, "127.0.0.1")
        network.hosts["c"] = die_after_it
        client = network.client("c", patience_s=slowly(5.0))
        with pytest.raises(UnknownSession):
            await client.start(ONE, "count", "plain")
        with pytest.raises(UnknownSession):
            await client.start(TWO, "count", "plain", begun=True)
        assert [(await network.client(name).tasks()).tasks[0].free for name in ("w1", "w2")] == [1, 2]
        network.hosts["c"] = placing.app()
        assert (await client.start(ONE, "count", "plain", begun=True)).worker == "w1"
        assert (await client.start(THREE, "count", "plain")).worker == "w1"


async def test_a_worker_whose_name_another_has_taken_ends_all_its_sessions(network: Network) -> None:
    async with controller(network) as placing, worker(network, controller=True):
        client = network.client("c")
        await settled(client, free=2)
        await client.start(ONE, "count", "plain")
        beat = Heartbeat(worker="w1", boot="another", url="http://w9", sequence=1, tasks=(), sessions=())
        await placing.heartbeat(beat, "127.0.0.1")
        alone = network.client("w1")
        await settled(alone, free=2)
        with pytest.raises(UnknownSession):
            await alone.turn("http://w1", ONE, 1, say(1))


@pytest.mark.parametrize("kind", ["redirect", "wrong shape", "too large", "from something else"])
async def test_a_reply_of_no_use_from_a_worker_leaves_its_seat_in_doubt(
    network: Network, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    status, body = {
        "redirect": (302, b""),
        "wrong shape": (200, b'{"kind": "worker"}'),
        "too large": (200, b" " * 2000),
        "from something else": (404, b"not found"),
    }[kind]
    monkeypatch.setattr("task_server.http.transport.MAX_REPLY_BYTES", 1000)

    async def strange(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [(b"location", b"http://in")]})
        await send({"type": "http.response.body", "body": body})

    async with controller(network), worker(network, "w1", controller=True):
        client = network.client("c")
        await settled(client, free=2)
        started = await client.start(TWO, "count", "plain")
        network.hosts["w1"], app = strange, network.hosts["w1"]
        for asked in (
            client.start(ONE, "count", "plain"),
            client.turn("http://c", TWO, 1, say(1)),
            client.samples("count"),
            client.summarize("count", []),
        ):
            with pytest.raises(NotReady, match="worker w1 gave no usable answer"):
                await asked
        assert await client.renew("http://c", [ONE, TWO]) == ()  # neither is known to be lost
        network.hosts["w1"] = app
        assert (await client.start(ONE, "count", "plain")).url == started.url
        assert isinstance(await client.turn("http://c", TWO, 1, say(1)), Observed)
        assert "in" not in {host for host, _ in network.calls}


async def once(body: bytes) -> Message_:
    return {"type": "http.request", "body": body}


async def test_a_large_body_is_parsed_beside_what_is_under_way() -> None:
    parsed_in: list[int] = []

    class Noted(Value):
        text: str

        @model_validator(mode="after")
        def _note(self) -> "Noted":
            parsed_in.append(threading.get_ident())
            return self

    for size in (10, 1 << 21):
        body = f'{{"text": "{"x" * size}"}}'.encode()
        assert (await parsed(Noted, functools.partial(once, body))).text == "x" * size
    assert [thread == threading.get_ident() for thread in parsed_in] == [True, False]


async def test_a_full_worker_that_looked_free_is_passed_over(network: Network) -> None:
    async with controller(network) as placing, worker(network, "w1", capacity=1), worker(network, "w2", capacity=1):
        for name in ("w1", "w2"):
            standing = (await network.client(name).tasks()).tasks
            beat = Heartbeat(worker=name, boot="b", url=f"http://{name}", sequence=1, tasks=standing, sessions=())
            await placing.heartbeat(beat, "127.0.0.1")
        await network.client("w1").start(ONE, "count", "plain")
        client = network.client("c")
        assert (await client.start(TWO, "count", "plain")).worker == "w2"
        with pytest.raises(NoCapacity):
            await client.start(THREE, "count", "plain")


async def test_a_worker_that_refuses_connections_is_lost_at_once(network: Network) -> None:
    async with controller(network), worker(network, "w1", controller=True):
        client = network.client("c")
        await settled(client)
        started = await client.start(ONE, "count", "plain")
        app = network.hosts.pop("w1")
        with pytest.raises(WorkerLost):
            await client.turn(started.url, ONE, 1, say(1))
        assert (await client.tasks()).tasks[0].waiting == "no live worker holds it"
        network.hosts["w1"] = app


async def test_what_any_worker_can_say_is_asked_of_another_once_the_first_is_gone(network: Network) -> None:
    async with controller(network), worker(network, "w1", controller=True):
        client = network.client("c", patience_s=slowly(5.0))
        await settled(client)
        lone = network.hosts.pop("w1")
        with pytest.raises(NotReady, match="w1 is lost: http://w1 refuses connections"):
            await network.client("c").samples("count")
        with pytest.raises(NotReady, match="no live worker"):
            await network.client("c").summarize("count", [])
        network.hosts["w1"] = lone
        assert (await client.samples("count")).samples == ("plain", "other", "fault")


async def test_a_controller_that_just_started_says_so_instead_of_guessing(network: Network) -> None:
    async with controller(network, settle_s=3600.0):
        client = network.client("c")
        with pytest.raises(NotReady) as refusal:
            await client.start(ONE, "count", "plain")
        assert refusal.value.retry_after_s is not None
        with pytest.raises(NotReady):
            await client.turn("http://c", ONE, 1, say(1))
        assert (await network.http.get("http://c/readyz")).status_code == 503
        alive = Health.model_validate((await network.http.get("http://c/healthz")).json())
        assert (alive.role, alive.url, alive.version) == ("controller", "http://c", VERSION)
        assert alive.time == pytest.approx(time.time(), abs=slowly(5.0))


@pytest.mark.parametrize(
    ("url", "status"),
    [
        ("http://127.0.0.1:1", 200),
        ("http://[::1]:1/base", 200),
        ("http://192.0.2.1:80", 403),
        ("http://worker", 403),
        ("http://[:::]", 400),
        ("ftp://127.0.0.1", 400),
        ("http://user@127.0.0.1", 400),
        ("http://127.0.0.1?x=1", 400),
        ("", 400),
    ],
)
async def test_a_controller_without_a_token_takes_only_loopback_workers(
    network: Network, url: str, status: int
) -> None:
    network.hosts["c"] = Controller("http://c", Caller(via(network.http), None)).app()
    beat = {"worker": "w", "boot": "b", "url": url, "sequence": 1, "tasks": [], "sessions": []}
    assert (await network.http.post("http://c/workers", json=beat)).status_code == status


async def test_a_worker_that_knows_no_clients_token_is_told_its_own(network: Network) -> None:
    task = TaskDefinition(name="count", environment="counting", capacity=2, parameters={})
    access = Access()
    access.pending = True
    told = Worker(
        "w1",
        "http://w1",
        [task],
        controller="http://c",
        caller=Caller(via(network.http), "w", home="http://c"),
        access=access,
    )
    network.hosts["w1"] = told.app()
    assert (await network.http.get("http://w1/tasks")).status_code == 503
    async with controller(network, token="secret", workers="w"), told.running():
        client = network.client("c", token="secret", patience_s=slowly(5.0))
        await settled(client)
        await client.start(ONE, "count", "plain")
        step = await client.turn("http://w1", ONE, 1, Act(action=Action(content="1")))
        assert isinstance(step, Observed | Finished)
        assert ("w1", f"POST /sessions/{ONE}/turns") in network.calls
        for token in ("secret", "w", "", token_for("secret", "http://w2")):
            shown = {"authorization": f"Bearer {token}"}
            assert (await network.http.get("http://w1/tasks", headers=shown)).status_code == 401


async def test_the_whole_set_of_tokens_is_told_to_workers_that_know_the_field(network: Network, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("first\nann second\n")
    tokens = AccessTokens(source="HERE", file=tmp_path / "tokens")
    served = Controller("http://c", Caller(via(network.http), tokens), tokens=tokens, access=Access(tokens))
    network.hosts["c"] = served.app()
    beat = {"worker": "w", "boot": "b", "url": "http://127.0.0.1", "sequence": 1, "tasks": [], "sessions": []}
    shown = {"authorization": "Bearer second"}
    derived = [token_for(token, "http://127.0.0.1") for token in ("first", "second")]
    older = (await network.http.post("http://c/workers", json=beat, headers=shown)).json()
    assert older == {"lease_s": 10.0, "access": derived[0]}, "a worker of 0.2.0 refuses a field that it does not know"
    newer = (await network.http.post("http://c/workers", json=beat, headers={**shown, **TAKES_ALL})).json()
    assert newer == {**older, "accepted": derived}


async def test_a_session_is_its_tokens_users_whatever_its_client_says(network: Network, tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("ann weight=2 of-ann\nunnamed\n")
    tokens = AccessTokens(source="HERE", file=tmp_path / "tokens")
    task = TaskDefinition(name="count", environment="counting", capacity=4, parameters={})
    network.hosts["w1"] = (lone := Worker("w1", "http://w1", [task], access=worker_access("http://w1", tokens))).app()
    async with lone.running():
        for number, (token, says) in enumerate([("of-ann", "bob"), ("unnamed", "bob"), ("unnamed", "")]):
            client = network.client(token=token)
            client.play_for(Sender(run=f"{number:032x}", user=says))
            await settled(client)
            await client.start(f"{number:032x}", "count", "plain")
        held = (await network.http.get("http://w1/runs", headers={"authorization": "Bearer unnamed"})).json()["runs"]
        assert sorted(row["user"] for row in held) == sorted(["ann", "bob", f"{2:032x}"])


async def test_no_request_names_code_or_files(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    async with worker(network):
        monkeypatch.setattr("proctor.registry.load", loaded.append)
        start = {"session": ONE, "task": "count", "sample": "plain", "seed": 0, "lease_s": 60.0}
        for changes, status in [
            ({"task": "environments.database.environment:Database"}, 404),
            ({"task": "../../tasks.yaml"}, 404),
            ({"sample": "../plain"}, 404),
            ({"environment": "db"}, 400),
            ({"data": "/etc/passwd"}, 400),
            ({"session": "../" + ONE[3:]}, 400),
        ]:
            assert (await network.http.post("http://w1/sessions", json={**start, **changes})).status_code == status
        assert (await network.http.get("http://w1/tasks/db:Database/samples")).status_code == 404
    assert loaded == []


async def test_everything_but_health_needs_the_token(network: Network) -> None:
    async with worker(network, token="secret"):
        assert (await network.client(token="secret").tasks()).tasks
        for token in (None, "wrong", "secre", "secret2"):
            with pytest.raises(Unauthorized):
                await network.client(token=token).tasks()
        odd = await network.http.get("http://w1/tasks", headers={b"authorization": b"Bearer \xff"})
        assert odd.status_code == 401
        for path, status in [
            ("healthz", 200),
            ("readyz", 200),
            ("metrics", 401),
            ("nothing", 401),
            ("openapi.json", 401),
        ]:
            assert (await network.http.get(f"http://w1/{path}")).status_code == status


@pytest.mark.parametrize("host", ["c", "w1"])
@pytest.mark.parametrize(
    "headers",
    [{"Host": "rebound.example"}, {"Origin": "http://page.example"}, {"Sec-Fetch-Site": "cross-site"}],
    ids=lambda headers: next(iter(headers)),
)
async def test_a_web_page_elsewhere_is_refused_where_no_token_is_asked_for(
    network: Network, host: str, headers: dict[str, str]
) -> None:
    async with controller(network), worker(network):
        for method, path in (("GET", "tasks"), ("POST", "sessions"), ("GET", "healthz")):
            reply = await network.http.request(method, f"http://{host}/{path}", headers=headers)
            assert (reply.status_code, reply.json()["type"]) == (403, "forbidden")
            assert "set PROCTOR_TOKEN" in reply.json()["detail"]
        for own in (host, f"{host}:8000", "127.0.0.1:8000"):
            reply = await network.http.get(f"http://{host}/tasks", headers={"Host": own})
            assert reply.status_code == 200
    async with controller(network, token="secret"), worker(network, token="secret"):
        shown = {"Authorization": f"Bearer {token_for('secret', 'http://w1') if host == 'w1' else 'secret'}", **headers}
        assert (await network.http.get(f"http://{host}/tasks", headers=shown)).status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("GET", "/nothing", b"", (404, "bad_request")),
        ("PUT", "/tasks", b"", (405, "bad_request")),
        ("GET", "/tasks?wait_s=1e9", b"", (400, "bad_request")),
        ("GET", "/tasks?unknown=1", b"", (400, "bad_request")),
        ("POST", "/sessions", b"{", (400, "bad_request")),
        ("POST", "/sessions", b"\xff", (400, "bad_request")),
        ("POST", "/sessions", b'{"session":"x","task":"count","sample":"plain"}', (400, "bad_request")),
        (
            "POST",
            "/sessions/abc/turns",
            b'{"turn":1,"reply":{"kind":"stop","reason":"turn_limit"}}',
            (400, "bad_request"),
        ),
        ("POST", f"/sessions/{ONE}/turns", b"[" * 100_000, (400, "bad_request")),
        ("POST", "/leases", b" " * (8 << 20) + b"1", (413, "too_large")),
        ("POST", "/leases", json.dumps({"sessions": [ONE] * 10_001}).encode(), (400, "bad_request")),
        ("DELETE", "/sessions/abc", b"", (400, "bad_request")),
    ],
)
async def test_every_error_is_a_problem(
    network: Network, method: str, path: str, body: bytes, expected: tuple[int, str]
) -> None:
    async with worker(network):
        reply = await network.http.request(method, f"http://w1{path}", content=body)
    assert (reply.status_code, reply.json()["type"]) == expected
    assert reply.headers["content-type"] == "application/problem+json"


async def test_a_server_that_breaks_answers_a_problem_without_a_traceback(
    network: Network, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Counting):
        def summarize(self, finishes: object) -> Summary:
            raise RuntimeError("a secret of the server")

    monkeypatch.setattr("proctor.registry.load", lambda name: Broken)
    async with worker(network):
        reply = await network.http.post("http://w1/tasks/count/summary", content=b'{"finishes":[]}')
    assert (reply.status_code, reply.json()["type"]) == (500, "internal")
    assert "secret" not in reply.text
    assert "a secret of the server" in caplog.text


@pytest.mark.parametrize("twice", ['"score": 0.5, "score": 1.0', '"score": 1.0, "metrics": {"m": 0.5, "m": 1.0}'])
async def test_a_score_or_a_metric_that_is_there_twice_is_refused(network: Network, twice: str) -> None:
    finish = f'{{"reason": "completed", {twice}}}'

    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        body = f'{{"worker": "w", "url": "http://page", "step": {{"kind": "finish", "finish": {finish}}}}}'
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": body.encode()})

    network.hosts["page"] = page
    with pytest.raises(BadReply, match=r"the key '(score|m)' is there more than once"):
        await network.client("page").start(ONE, "count", "plain")


async def test_what_is_not_a_task_server_is_told_apart_from_one_that_is_down(network: Network) -> None:
    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        status = 502 if scope["path"] == "/tasks" else 200
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"<html>"})

    network.hosts["page"] = page
    with pytest.raises(BadReply, match="not a Started"):
        await network.client("page").start(ONE, "count", "plain")
    with pytest.raises(ServerUnreachable, match="502"):
        await network.client("page").tasks()
    with pytest.raises(ServerUnreachable):
        await network.client("nobody").tasks()


@either_way
async def test_a_session_that_nobody_asks_for_is_ended(network: Network, tmp_path: Path) -> None:
    async with worker(network, capacity=1, folder=str(tmp_path)):
        client = network.client(patience_s=slowly(10.0))
        await client.start(ONE, "count", "plain", lease_s=0.01)
        await settled(client)
        assert await client.renew("http://w1", [ONE]) == (ONE,)
        assert [file.name for file in tmp_path.iterdir()] == ["shared"]


async def test_the_metrics_count_what_happened(network: Network) -> None:
    async with controller(network), worker(network, "w1", controller=True, turns=1):
        client = network.client("c")
        await settled(client)
        started = await client.start(ONE, "count", "plain")
        await client.turn(started.url, ONE, 1, say(1))
        text = (await network.http.get("http://w1/metrics")).text
        assert 'proctor_slots{task="count"} 2.0' in text
        assert 'proctor_sessions_started_total{task="count"} 1.0' in text
        assert 'proctor_finishes_total{reason="completed",task="count"} 1.0' in text
        assert 'proctor_sessions_placed_total{task="count"} 1.0' in (await network.http.get("http://c/metrics")).text


async def test_the_openapi_document_describes_every_route(network: Network) -> None:
    async with controller(network):
        document = (await network.http.get("http://c/openapi.json")).json()
    operations = {(method, path) for path, methods in document["paths"].items() for method in methods}
    assert ("post", "/workers") in operations
    assert ("post", "/sessions/{session}/turns") in operations
    assert len(operations) == 13
    names = json.dumps(document).split('"#/components/schemas/')[1:]
    assert {name.split('"')[0] for name in names} <= document["components"]["schemas"].keys()


@either_way
async def test_a_start_repeats_are_safe_when_many_come_at_once(network: Network) -> None:
    async with worker(network, capacity=1):
        client = network.client()
        answers = await asyncio.gather(*(client.start(ONE, "count", "plain") for _ in range(20)))
        assert len({answer.model_dump_json() for answer in answers}) == 1
        assert isinstance(answers[0], Started)


async def test_a_server_that_does_not_know_a_field_is_told_to_be_older(network: Network) -> None:
    request = '{"sessions": [], "later": 1}'
    older = r"^later: unknown to the task server, which is older .* before clients$"
    async with worker(network):
        with pytest.raises(BadRequest, match=older):
            await Caller(via(network.http), None).call(
                "POST", "http://w1/leases", LeasesRenewed, request, deadline_s=5.0
            )
