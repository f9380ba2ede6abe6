"""The wire of AgentBench v0.2, held to the requests and replies that were captured between the original programs."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from proctor.types import Message
from proctor_bridges.gateway.agentbench import history, index_of, sample_of
from tests.support import SHARED_DATA
from tests.unit.bridges.gateway.twins import Calls, Ids, Sums
from tests.unit.bridges.gateway.world import ForeignWorld, lines, playing

CAPTURES = SHARED_DATA / "interop" / "v02"


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ForeignWorld]:
    tasks: Any = {"toy-std": (Sums, 3, {}), "ids": (Ids, 1, {}), "calls": (Calls, 1, {})}
    async with playing(monkeypatch, "agentbench", **tasks) as world:
        yield world


async def get(world: ForeignWorld, path: str, **query: str) -> Any:
    reply = await world.http.get(path, params=query)
    assert reply.status_code == 200, reply.text
    return reply.json()


async def post(world: ForeignWorld, path: str, status: int = 200, **body: Any) -> Any:
    reply = await world.http.post(path, json=body)
    assert reply.status_code == status, reply.text
    return reply.json()


def normal(content: str) -> dict[str, str]:
    return {"status": "normal", "content": content}


@pytest.mark.shared
class TestCaptures:
    """Line 7. Session ids are mapped; what v0.2 leaves out of long histories is there."""

    async def test_the_run_of_the_assigner(self, monkeypatch: pytest.MonkeyPatch) -> None:
        captured = [line for line in lines(CAPTURES / "assigner_run.jsonl") if line["hop"] == "client->controller"]
        before, *rest = captured
        async with playing(monkeypatch, "agentbench") as none:
            await compare(none, before, {})  # no worker has come yet
        async with playing(monkeypatch, "agentbench", **{"toy-std": (Sums, 3, {})}) as world:
            ids: dict[int, int] = {}
            for line in rest:
                await compare(world, line, ids)
            await world.free(3)
        assert len(ids) == 6

    async def test_the_edges(self, monkeypatch: pytest.MonkeyPatch) -> None:
        captured = [line for line in lines(CAPTURES / "edges.jsonl") if line["hop"] == "client->controller"]
        async with playing(monkeypatch, "agentbench", **{"toy-std": (Sums, 3, {})}) as world:
            ids: dict[int, int] = {}
            for n, line in enumerate(captured):
                if line["request"] == {"name": "toy-std", "index": 2} or (
                    n > 10 and line["path"] == "/api/start_sample"
                ):
                    await fill(world)
                if line["path"] == "/api/list_sessions":
                    await hold(world, len(line["response"]))
                if line["path"] == "/api/cancel" and not ids:
                    ids[11] = await newest(world)
                await compare(world, line, ids)
                if line["request"] == {"name": "toy-std", "index": 2}:
                    await post(world, "cancel_all")
                    await world.free(3)


async def fill(world: ForeignWorld) -> None:
    while (await get(world, "list_workers"))["toy-std"]["workers"]["0"]["current"] < 3:
        await post(world, "start_sample", name="toy-std", index=0)


async def hold(world: ForeignWorld, sessions: int) -> None:
    while len(live := await get(world, "list_sessions")) > sessions:
        await post(world, "cancel", session_id=int(next(iter(live))))
    assert len(live) == sessions


async def newest(world: ForeignWorld) -> int:
    return max(map(int, await get(world, "list_sessions")), default=0)


async def compare(world: ForeignWorld, line: dict[str, Any], ids: dict[int, int]) -> None:
    """Send a captured request; status, keys, sample's status, roles and texts must be the captured ones."""
    path, wanted = line["path"].removeprefix("/api/"), line["response"]
    body = line["request"] and {**line["request"]}
    if body and "session_id" in body:
        body["session_id"] = ids.get(body["session_id"], body["session_id"])
    reply = await world.http.request(line["method"], path, params=line["query"], json=body)
    given = reply.json()
    if body == {"name": "toy-std", "index": 3}:  # here we depart: a fault at the start is an error, as in a later step
        assert (line["status"], reply.status_code) == (200, 501)
        given = given["detail"]
        given["output"]["history"] = wanted["output"]["history"]
    else:
        assert reply.status_code == line["status"], (line, reply.text)
    if path == "calculate_overall":
        assert wanted == {"n": 6, "mean": pytest.approx(4 / 6)}
        assert {name: given.pop(name) for name in ("stderr", "not_understood")}  # what every summary of ours has
        assert given == {"score": 0.8, "mean": 0.8, "n": 5, "coverage": pytest.approx(5 / 6)}  # no score for the fault
        return
    if path == "list_sessions":
        given, wanted = list(given.values()), list(wanted.values())
    assert shape(given) == shape(wanted)
    if isinstance(given, dict) and "output" in given:
        ids[wanted["session_id"]] = given["session_id"]
        assert given["output"]["status"] == wanted["output"]["status"]
        assert given["output"]["index"] == wanted["output"]["index"]
        assert texts(given["output"]["history"]) == texts(whole(wanted["output"]["history"]))
        if isinstance(wanted["output"]["result"], dict):
            assert given["output"]["result"]["score"] == wanted["output"]["result"]["score"]


def shape(value: Any) -> Any:
    """A reply without its values; results are the task's own."""
    if isinstance(value, dict):
        return {key: None if key == "result" else shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value[:1]]
    return None


def whole(turns: list[dict[str, str]]) -> list[dict[str, str]]:
    """A captured history with what v0.2 left out, or the capture shortened."""
    if turns[0]["content"].endswith("[NOTICE] 2 messages are omitted."):
        first = turns[0]["content"].partition("\n\n[NOTICE]")[0]
        return [
            {"role": "user", "content": first},
            {"role": "agent", "content": "OK"},
            {"role": "user", "content": "word [repeated] "},
        ]
    return turns


def texts(turns: list[dict[str, str]]) -> list[tuple[str, str]]:
    shortened = {"word " * 4000: "word [repeated] "}
    return [(turn["role"], shortened.get(turn["content"], turn["content"])) for turn in turns]


async def test_every_id_comes_back_to_its_sample(world: ForeignWorld) -> None:
    """Line 6: v0.2's clients turn what reads as an integer into one."""
    for index in await get(world, "get_indices", name="ids"):
        coerced = coerce(index)
        started = await post(world, "start_sample", name="ids", index=coerced)
        said = started["output"]["history"][0]["content"]
        sample = said.removeprefix("I am ")[1:-1]
        ended = await post(world, "interact", session_id=started["session_id"], agent_response=normal(sample))
        assert ended["output"]["result"]["score"] == 1.0
        assert (ended["output"]["index"], sample_of(coerced), index_of(sample)) == (index, sample, index)
        await world.free(5)
    assert {sample_of(coerce(index)) for index in await get(world, "get_indices", name="ids")} == set(Ids().ids)


def coerce(index: int | str) -> int | str:
    try:
        return int(index)
    except ValueError:
        return index


async def test_an_interact_that_comes_again_after_its_answer_was_lost_is_one_step(world: ForeignWorld) -> None:
    """Line 8."""
    started = await post(world, "start_sample", name="toy-std", index=2)
    body = {"session_id": started["session_id"], "agent_response": normal("Answer: 9")}
    await world.lost("interact", body)
    again = await post(world, "interact", **body)
    assert texts(again["output"]["history"])[2:] == [
        ("user", "What is 2+0?"),
        ("agent", "Answer: 9"),
        ("user", "Wrong, try again. Emoji ✓ é"),
    ]
    assert len((await post(world, "interact", **body))["output"]["history"]) == 7  # now it is the agent's next answer


async def test_an_interact_that_comes_again_before_its_answer_is_one_step(world: ForeignWorld) -> None:
    started = await post(world, "start_sample", name="toy-std", index=2)
    body = {"session_id": started["session_id"], "agent_response": normal("Answer: 9")}
    answers = await asyncio.gather(*(post(world, "interact", **body) for _ in range(3)))
    assert [len(each["output"]["history"]) for each in answers] == [5, 5, 5]


async def test_a_lost_end_is_told_again(world: ForeignWorld) -> None:
    started = await post(world, "start_sample", name="toy-std", index=2)
    body = {"session_id": started["session_id"], "agent_response": normal("Answer: 2")}
    await world.lost("interact", body)
    assert (await post(world, "interact", **body))["output"]["status"] == "completed"
    assert (await post(world, "interact", 400, **body))["detail"] == "Error: Session does not exist"


async def test_a_start_whose_client_has_gone_holds_no_slot(world: ForeignWorld) -> None:
    await world.lost("start_sample", {"name": "toy-std", "index": 2})
    assert await get(world, "list_sessions") == {}
    await world.free(5)


async def test_a_path_with_a_slash_at_its_end_is_not_redirected(world: ForeignWorld) -> None:
    """The redirection would lack the token that was in the path."""
    assert (await world.http.get("list_workers/")).status_code == 404


async def test_a_fault_is_an_error_and_no_result(world: ForeignWorld) -> None:
    started = await post(world, "start_sample", name="toy-std", index=2)
    ended = await post(world, "interact", 501, session_id=started["session_id"], agent_response=normal("boom"))
    output = ended["detail"]["output"]
    assert (output["index"], output["status"], output["result"]) == (2, "task error", "RuntimeError: boom")
    assert output["history"][-1] == {"role": "agent", "content": "boom"}
    await world.free(5)


@pytest.mark.parametrize(
    ("status", "wanted", "score"),
    [("agent context limit", "agent context limit", 0.0), ("cancelled", "cancelled", None)],
)
async def test_an_agent_that_stops(world: ForeignWorld, status: str, wanted: str, score: float | None) -> None:
    started = await post(world, "start_sample", name="toy-std", index=2)
    stops = {"status": status, "content": None}
    ended = (await post(world, "interact", session_id=started["session_id"], agent_response=stops))["output"]
    assert (ended["status"], ended["result"] and ended["result"]["score"]) == (wanted, score)
    await world.free(5)


async def test_a_task_by_function_calls_is_refused_with_the_reason(world: ForeignWorld) -> None:
    assert set(await get(world, "list_workers")) == {"toy-std", "ids"}
    for refused in (
        await world.http.get("get_indices", params={"name": "calls"}),
        await world.http.post("start_sample", json={"name": "calls", "index": "a"}),
    ):
        assert refused.status_code == 406
        assert "protocol: text" in refused.json()["detail"]


@pytest.mark.parametrize("body", [{}, {"session_id": "x"}, [], {"session_id": 1, "agent_response": {"status": "?"}}])
async def test_a_body_of_another_shape_is_told(world: ForeignWorld, body: object) -> None:
    reply = await world.http.post("interact", json=body)
    assert (reply.status_code, reply.json()["detail"][0]["loc"]) == (422, ["body"])


async def test_what_v02_only_does_for_its_workers_changes_nothing(world: ForeignWorld) -> None:
    for name in ("sync_all", "clean_worker", "clean_session"):
        assert await post(world, name) is None


async def test_results_without_a_score_count_in_coverage_alone(world: ForeignWorld) -> None:
    started = await post(world, "start_sample", name="toy-std", index=0)
    done = await post(world, "interact", session_id=started["session_id"], agent_response=normal("Answer: 0"))
    results = [done["output"], {"index": 3, "status": "task error", "result": "x", "history": []}]
    overall = await post(world, "calculate_overall", name="toy-std", results=results)
    assert (overall["score"], overall["coverage"]) == (1.0, 0.5)
    nothing = await post(world, "calculate_overall", name="ids", results=results[1:])
    assert (nothing["score"], nothing["coverage"], nothing["n"]) == (None, 0.0, 1)
    wrong = [{"index": 0, "status": "completed", "result": {"score": 7}, "history": []}]
    assert "score" in (await post(world, "calculate_overall", 400, name="toy-std", results=wrong))["detail"]


class Grouped(Sums):
    """All samples are one group."""

    def cluster(self, sample: str) -> str:
        return "all"


async def test_the_sample_0_has_its_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    async with playing(monkeypatch, "agentbench", **{"toy-std": (Grouped, 1, {})}) as world:
        overalls = [
            await post(
                world,
                "calculate_overall",
                name="toy-std",
                results=[
                    {"index": index, "status": "completed", "result": {"score": score}}
                    for index, score in zip(indices, (0.0, 1.0), strict=True)
                ],
            )
            for indices in ((1, 2), (0, 1))
        ]
    assert overalls[0] == overalls[1]


def test_histories_alternate_and_begin_with_the_user() -> None:
    def message(role: Any, content: str) -> Message:
        return Message(role=role, content=content)

    assert history([message("system", "a"), message("user", "b"), message("assistant", "c"), message("user", "d")]) == [
        {"role": "user", "content": "a\n\nb"},
        {"role": "agent", "content": "c"},
        {"role": "user", "content": "d"},
    ]
    assert [turn["role"] for turn in history([message("assistant", "c"), message("user", "d")])] == [
        "user",
        "agent",
        "user",
    ]


async def test_what_the_published_servers_refuse_is_refused_and_changes_no_session(world: ForeignWorld) -> None:
    session = (await post(world, "start_sample", name="toy-std", index=0))["session_id"]
    for said in ({}, {"status": "normal", "content": None}, {"status": "bored", "content": "1"}, None, "1"):
        await post(world, "interact", 422, session_id=session, agent_response=said)
    typed = await world.http.post("interact", content=b'{"session_id": 1}', headers={"content-type": "text/plain"})
    assert typed.status_code == 422
    await post(world, "calculate_overall", 422, name="toy-std", results=[{"index": 0, "status": "bored"}])
    assert (await post(world, "interact", session_id=session, agent_response=normal("1")))["session_id"] == session
