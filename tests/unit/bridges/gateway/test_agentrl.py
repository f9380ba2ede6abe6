"""The wire of AgentRL, held to the requests and replies that were captured from its client and its worker."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.support import SHARED_DATA
from tests.unit.bridges.gateway.twins import Fresh, Say, Sums
from tests.unit.bridges.gateway.world import ForeignWorld, lines, playing

CAPTURE = SHARED_DATA / "interop" / "agentrl" / "toy.jsonl"


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ForeignWorld]:
    tasks: Any = {"toy-std": (Say, 2, {}), "sums": (Sums, 2, {}), "fresh": (Fresh, 1, {})}
    async with playing(monkeypatch, "agentrl", **tasks) as world:
        yield world


class Client:
    """A session of AgentRL's client."""

    def __init__(self, world: ForeignWorld, prefix: str = "api") -> None:
        self.world, self.prefix, self.session = world, prefix, ""

    async def post(self, path: str, body: object) -> httpx.Response:
        headers = {"session_id": self.session} if self.session else {}
        reply = await self.world.http.post(f"{self.prefix}/{path}", json=body, headers=headers)
        self.session = reply.headers.get("session_id", self.session)
        return reply

    async def start(self, task: str, index: object) -> Any:
        return (await self.post("start_sample", {"name": task, "index": index, "custom_task": None})).json()

    async def says(self, content: str) -> Any:
        return (await self.post("interact", {"messages": [{"role": "assistant", "content": content}]})).json()


@pytest.mark.shared
async def test_the_captured_requests_get_the_captured_keys_and_statuses(world: ForeignWorld) -> None:
    """Line 4."""
    ids: dict[str, str] = {}
    for line in lines(CAPTURE):
        if not line["hop"].startswith("client->controller"):
            continue
        named = line["headers"].get("session_id")
        headers = {"session_id": ids[named]} if named else {}
        reply = await world.http.request(line["method"], line["path"][1:], json=line["request"], headers=headers)
        wanted, given = line["response"], reply.json()
        assert reply.status_code == line["status"]
        assert set(line["response_headers"]) <= set(reply.headers)
        if not isinstance(wanted, dict):
            assert given == wanted
            continue
        ids[line["response_headers"]["session_id"]] = reply.headers["session_id"]
        assert set(wanted) <= set(given)
        if "status" in wanted:
            assert {key: given[key] for key in ("status", "finish", "reward")} == {
                key: wanted[key] for key in ("status", "finish", "reward")
            }
            if not wanted["finish"]:
                assert (given["messages"], given["tools"]) == (wanted["messages"], wanted["tools"])
            elif "score" in wanted["metrics"]:
                assert given["metrics"] == wanted["metrics"]
    assert len(ids) == 4
    await world.free(5)


async def test_a_start_whose_client_has_gone_holds_no_slot(world: ForeignWorld) -> None:
    await world.lost("api/start_sample", {"name": "toy-std", "index": 1})
    await world.free(5)


@pytest.mark.parametrize("session", ["", "1", "x", "-1", "9" * 20, "9" * 5000])
async def test_an_id_that_names_no_session_is_refused(world: ForeignWorld, session: str) -> None:
    for path, body in (("cancel", None), ("interact", {"messages": []})):
        reply = await world.http.post(f"api/{path}", json=body, headers={"session_id": session})
        assert (reply.status_code, list(reply.json())) == (400, ["detail"])


async def test_a_fault_has_a_status_and_a_cause_and_no_score(world: ForeignWorld) -> None:
    stands = await Client(world).start("toy-std", 2)
    assert (stands["status"], stands["finish"], stands["reward"]) == ("task error", True, 0)
    assert (stands["metric"], stands["metrics"], stands["result"]) == ({}, {}, "ValueError: broken sample")


@pytest.mark.parametrize("count", [0, 2])
async def test_one_message_answers_a_turn(world: ForeignWorld, count: int) -> None:
    """Line 5."""
    client = Client(world)
    await client.start("toy-std", 0)
    refused = await client.post("interact", {"messages": [{"role": "assistant", "content": "x"}] * count})
    assert (refused.status_code, refused.json()["detail"]) == (
        400,
        f"Error: send one assistant message for each turn, not {count}",
    )


async def test_after_a_lost_answer_it_is_given_again(world: ForeignWorld) -> None:
    """Line 6."""
    client = Client(world)
    await client.start("sums", 2)
    body = {"messages": [{"role": "assistant", "content": "Answer: 2"}]}
    await world.lost("api/interact", body, {"session_id": client.session})
    again = (await client.post("interact", body)).json()
    assert (again["status"], again["reward"], again["metrics"]) == ("completed", 1.0, {"score": 1.0})


@pytest.mark.parametrize(
    ("given", "told"), [(None, ["call00001", "call00002"]), ("", ["call00001", "call00002"]), ("one", ["one", "one"])]
)
async def test_calls_have_ids_of_their_own_and_are_answered_by_the_ids_that_the_client_gave(
    world: ForeignWorld, given: str | None, told: list[str]
) -> None:
    """Also where the client asks again for an answer that was lost."""
    client = Client(world)
    await client.start("toy-std", 0)
    call = {"function": {"name": "say", "arguments": '{"n": "9"}'}, **({} if given is None else {"id": given})}
    body = {"messages": [{"role": "assistant", "content": None, "tool_calls": [call]}]}
    came = [(await client.post("interact", body)).json()["messages"]]
    await world.lost("api/interact", body, {"session_id": client.session})
    came.append((await client.post("interact", body)).json()["messages"])
    assert [message["tool_call_id"] for (message,) in came] == told
    assert (await client.post("interact", body)).json()["status"] == "task limit reached", "the third turn is the last"


@pytest.mark.parametrize(
    "call", [{"id": None, "function": {"name": "say", "arguments": None}}, {"id": 7}, {"function": {"name": None}}]
)
async def test_odd_calls_are_answers(world: ForeignWorld, call: object) -> None:
    client = Client(world)
    await client.start("toy-std", 0)
    said = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert (await client.post("interact", {"messages": [said]})).status_code == 200


async def test_a_text_task_offers_no_functions(world: ForeignWorld) -> None:
    client = Client(world)
    stands = await client.start("sums", "four")
    assert stands["tools"] is None
    assert [message["role"] for message in stands["messages"]] == ["user", "assistant", "user"]


async def test_an_empty_message_is_an_answer_unless_the_client_renews(world: ForeignWorld) -> None:
    answers, renews = Client(world), Client(world, "renew/api")
    opened = [await client.start("sums", 2) for client in (answers, renews)]
    assert (await answers.says(""))["messages"] != opened[0]["messages"]
    assert (await renews.says(""))["messages"] == opened[1]["messages"]
    assert (await renews.says("Answer: 2"))["finish"]


async def test_a_history_that_begins_anew_begins_with_a_system_message(world: ForeignWorld) -> None:
    client = Client(world)
    told = [await client.start("fresh", "a"), *[await client.says(str(n)) for n in range(4)]]
    system = {"role": "system", "content": ""}
    assert [[(each["role"], each["content"]) for each in stands["messages"]] for stands in told] == [
        [("user", "one")],
        [tuple(system.values()), ("user", "two")],
        [tuple(system.values()), ("user", "three")],
        [tuple(system.values()), ("user", "two"), ("assistant", "1"), ("user", "four")],
        [],
    ]
    assert told[-1]["status"] == "task limit reached"  # the client of AgentRL knows no context limit


async def test_a_start_waits_for_a_slot(world: ForeignWorld) -> None:
    first, second, third = (Client(world) for _ in range(3))
    await first.start("sums", 0)
    await second.start("sums", 0)
    waiting = asyncio.create_task(third.start("sums", 1))
    await first.post("cancel", None)
    assert (await waiting)["status"] == "running"


async def test_what_can_not_be_started_is_refused(world: ForeignWorld) -> None:
    client = Client(world)
    for body in (
        {"name": "nope", "index": 0, "custom_task": None},
        {"name": "sums", "index": 99, "custom_task": None},
        {"name": "sums", "index": -1, "custom_task": {"x": 1}},
    ):
        assert (await client.post("start_sample", body)).status_code == 400
    assert (await world.http.get("api/get_indices", params={"name": "nope"})).status_code == 400
