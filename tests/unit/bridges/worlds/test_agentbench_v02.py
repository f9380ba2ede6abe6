"""Tasks of AgentBench v0.2, played against a double of its worker that is held to the captures."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import httpx
import pytest
from pydantic import JsonValue, ValidationError
from starlette.responses import JSONResponse, Response

from proctor.environment import Agent, ContextLimitExceeded, EnvironmentFault
from proctor.session.play import PolicyAgent, play_to_finish
from proctor.types import Action, Finish, FinishReason, Message, Observation
from proctor_bridges.worlds import task
from proctor_bridges.worlds.agentbench_v02 import AgentBenchV02, HistoryTurn, observation
from proctor_bridges.worlds.calls import finish, score
from tests.pace import in_time
from tests.support import SHARED_DATA
from tests.unit.bridges.gateway.world import lines
from tests.unit.bridges.worlds.served import served
from tests.unit.bridges.worlds.v02_worker import INDICES, LONG, V02Worker

CAPTURES = SHARED_DATA / "interop" / "v02"


@pytest.mark.shared
async def test_the_double_answers_as_the_captured_worker() -> None:
    captured = [line for line in lines(CAPTURES / "assigner_run.jsonl") if line["hop"] == "controller->worker"]
    http = httpx.AsyncClient(transport=httpx.ASGITransport(V02Worker().app), base_url="http://worker")
    async with http:
        for line in captured:
            if line["path"] == "/api/calculate_overall":
                continue
            reply = await http.post(line["path"], json=line["request"])
            wanted, given = line["response"], reply.json()
            if wanted["output"]["status"] == "task error":
                assert given["output"].pop("result").splitlines()[-1] == wanted["output"].pop("result").splitlines()[-1]
            for turn in given["output"]["history"]:
                turn["content"] = turn["content"].replace(LONG, "word [repeated] ")
            assert (reply.status_code, given) == (line["status"], wanted)


def scripted(conversation: str, transcript: Sequence[Message]) -> Action:
    """The agent of the captured run."""
    asked = transcript[-1].content
    number = asked.split("+")[0].split()[-1] if "+" in asked else "x"
    known = {"0": "Answer: 0", "1": "I don't know", "2": "Answer: 9", "four": "Answer: four"}
    again = "Answer: 2" if "Wrong" in asked and len(transcript) > 5 else "Answer: 8"
    return Action(content=known.get(number, again))


def says(*answers: str) -> Agent:
    rest = list(answers)
    return PolicyAgent(lambda conversation, transcript: Action(content=rest.pop(0)))


@pytest.fixture
async def worker() -> AsyncIterator[tuple[V02Worker, str]]:
    worker = V02Worker()
    async with served(worker.app) as url:
        yield worker, f"{url}/api"


async def played(environment: AgentBenchV02, sample: str, agent: Agent) -> Finish:
    async with environment.lifespan():
        return await play_to_finish(environment, sample, agent)


@pytest.mark.parametrize("controller", [False, True])
async def test_six_samples_end_as_in_the_captured_run(controller: bool) -> None:
    """Line 9."""
    double = V02Worker(controller=controller)
    async with served(double.app) as url:
        where = {"url": f"{url}/api", "task": "toy-std"} if controller else {"workers": (f"{url}/api",)}
        environment = AgentBenchV02.model_validate(where)
        assert list(environment.samples()) == [str(index) for index in INDICES]
        async with environment.lifespan():
            finishes = {
                sample: await play_to_finish(environment, sample, PolicyAgent(scripted))
                for sample in environment.samples()
            }
    scores = {sample: each.score for sample, each in finishes.items()}
    assert scores == {"0": 1.0, "1": 0.0, "2": 1.0, "3": None, "four": 1.0, "5": 1.0}
    assert "the sample is broken" in str(finishes["3"].detail["cause"])
    assert double.live == {}


@pytest.mark.shared
async def test_reasons_are_those_of_the_captured_statuses(worker: tuple[V02Worker, str]) -> None:
    environment = AgentBenchV02(workers=(worker[1],))
    async with environment.lifespan():
        for line in lines(CAPTURES / "runs.jsonl"):
            finish = await play_to_finish(environment, str(line["index"]), PolicyAgent(scripted))
            if line["output"]["status"] != "task error":
                assert finish.detail == {key: line["output"][key] for key in ("status", "result")}


async def test_an_error_of_the_task_in_a_step_is_a_fault(worker: tuple[V02Worker, str]) -> None:
    """Line 9's last sentence."""
    finish = await played(AgentBenchV02(workers=(worker[1],)), "0", says("boom"))
    assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)
    assert "HTTP 501" in str(finish.detail["cause"])


async def test_the_context_limit_is_told_without_a_content(worker: tuple[V02Worker, str]) -> None:
    class Full(Agent):
        async def act(self, observation: Observation) -> Action:
            raise ContextLimitExceeded

    finish = await played(AgentBenchV02(workers=(worker[1],)), "0", Full())
    assert (finish.reason, finish.score) == (FinishReason.CONTEXT_LIMIT, 0.0)
    assert worker[0].requests[-1][1]["agent_response"] == {"status": "agent context limit", "content": None}


async def test_a_session_that_we_end_is_cancelled(worker: tuple[V02Worker, str]) -> None:
    waits = asyncio.Event()

    class Slow(Agent):
        async def act(self, observation: Observation) -> Action:
            waits.set()
            await asyncio.Event().wait()
            raise AssertionError

    environment = AgentBenchV02(workers=(worker[1],))
    async with environment.lifespan():
        playing = asyncio.create_task(environment.play("0", Slow()))
        await waits.wait()
        assert len(worker[0].live) == 1
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
    assert worker[0].live == {}


async def late() -> Response:
    await asyncio.sleep(3600)
    raise AssertionError


async def unreadable() -> Response:
    return JSONResponse({"session_id": "x"})


async def no_json() -> Response:
    return Response("<html>")


@pytest.mark.parametrize("garbled", [late, unreadable, no_json])
async def test_a_start_without_a_readable_answer_is_cancelled_by_the_id_that_we_chose(
    worker: tuple[V02Worker, str], garbled: Callable[[], Awaitable[Response]]
) -> None:
    worker[0].garbled = garbled
    finish = await played(AgentBenchV02(workers=(worker[1],), step_limit_s=0.5), "0", PolicyAgent(scripted))
    assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)
    (started, start), (cancelled, cancel) = worker[0].requests
    assert (started, cancelled, cancel) == ("start_sample", "cancel", {"session_id": start["session_id"]})
    assert worker[0].live == {}


async def test_a_start_that_we_end_is_cancelled(worker: tuple[V02Worker, str]) -> None:
    worker[0].garbled = late
    environment = AgentBenchV02(workers=(worker[1],))
    async with environment.lifespan():
        playing = asyncio.create_task(environment.play("0", PolicyAgent(scripted)))
        await in_time(lambda: len(worker[0].live) == 1)
        playing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await playing
    assert worker[0].live == {}


async def test_no_free_slot_is_waited_for(worker: tuple[V02Worker, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "SLOT_POLL_S", 0.001)
    worker[0].slots = 0
    environment = AgentBenchV02(workers=(worker[1],))
    async with environment.lifespan():
        playing = asyncio.create_task(environment.play("0", PolicyAgent(scripted)))
        await in_time(lambda: len(worker[0].requests) > 2)
        assert not playing.done()
        worker[0].slots = 1
        assert (await playing).score == 1.0


async def test_a_worker_that_is_gone_is_a_fault_and_plays_again_when_it_is_back() -> None:
    """Line 10, in one process: a session loses its worker; after a restart the sample is played."""
    double = V02Worker()
    async with served(double.app) as url:
        environment = AgentBenchV02(workers=(f"{url}/api",))
        environment.samples()
        port = int(url.rpartition(":")[2])

        class Killing(Agent):
            async def act(self, observation: Observation) -> Action:
                killed.set()
                await asyncio.sleep(0.05)
                await gone.wait()
                return Action(content="Answer: 0")

        killed, gone = asyncio.Event(), asyncio.Event()
        playing = asyncio.create_task(played(environment, "0", Killing()))
        await killed.wait()
    gone.set()
    finish = await playing
    assert (finish.score, finish.is_away) == (None, True)
    async with served(V02Worker().app, port):
        assert (await played(environment, "0", PolicyAgent(scripted))).score == 1.0


async def test_a_score_that_is_nowhere_is_a_fault_that_says_where(worker: tuple[V02Worker, str]) -> None:
    """Line 11."""
    finish = await played(AgentBenchV02(workers=(worker[1],), score="/no/where"), "0", PolicyAgent(scripted))
    assert (finish.reason, finish.score) == (FinishReason.TASK_ERROR, None)
    cause = str(finish.detail["cause"])
    assert "/no/where" in cause
    assert '{"score":1,"answer":"Answer: 0"}' in cause


async def test_the_digest_is_over_the_indices_and_the_score(worker: tuple[V02Worker, str]) -> None:
    straight = AgentBenchV02(workers=(worker[1],))
    elsewhere = AgentBenchV02(workers=(worker[1] + "/",), step_limit_s=1)
    assert straight.digest() == elsewhere.digest()
    assert straight.digest() != AgentBenchV02(workers=(worker[1],), score="/score").digest()
    assert straight.not_comparable_because() is not None


async def test_a_server_that_is_not_there_is_told_with_its_address() -> None:
    with pytest.raises(ValueError, match=r"127\.0\.0\.1:9/api/get_indices"):
        AgentBenchV02(workers=("http://127.0.0.1:9/api",)).samples()


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({}, "url"),
        ({"url": "http://a/api"}, "task"),
        ({"url": "http://a/api", "workers": ["http://b/api"], "task": "t"}, "url"),
        ({"workers": ["b"]}, "workers"),
        ({"workers": ["http://b/api"], "score": "score"}, "score"),
    ],
)
def test_wrong_fields_are_named(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        AgentBenchV02.model_validate(fields)


@pytest.mark.parametrize(
    ("result", "pointers", "wanted"),
    [
        (True, ("",), 1.0),
        (0.25, ("",), 0.25),
        ({"a": [{"b/c": 1}]}, ("/a/0/b~1c",), 1.0),
        ({"score": "7", "success": False}, ("/score", "/success"), 0.0),
        ({"score": 7, "success": False}, ("/score", "/success"), None),
        ({"score": 87.5, "success": True}, ("/score", "/success"), None),
        ({"score": "1"}, ("/score",), None),
        ({"score": float("nan")}, ("/score",), None),
        (None, ("", "/score"), None),
    ],
)
def test_scores_are_numbers_from_0_to_1(result: Any, pointers: tuple[str, ...], wanted: float | None) -> None:
    assert score(result, pointers) == wanted


def test_a_failed_agent_without_a_result_scores_0_and_all_other_ends_are_faults() -> None:
    assert finish("task limit reached", None, ("/score",)).score == 0.0
    ends: list[tuple[str, JsonValue]] = [
        ("completed", None),
        ("task limit reached", {"x": 1}),
        ("unknown", {"score": 1}),
        ("?", 1),
    ]
    for status, result in ends:
        with pytest.raises(EnvironmentFault):
            finish(status, result, ("/score",))


def test_only_what_is_new_is_observed() -> None:
    turns = [
        HistoryTurn(role="user", content="a"),
        HistoryTurn(role="agent", content="b"),
        HistoryTurn(role="user", content="c"),
    ]
    assert observation((), turns[:1]) == Observation(messages=(Message(role="user", content="a"),))
    assert observation(turns[:2], turns) == Observation(messages=(Message(role="user", content="c"),))
    other = observation([HistoryTurn(role="user", content="x"), turns[1]], turns)
    assert (len(other.messages), other.fresh) == (3, True)
