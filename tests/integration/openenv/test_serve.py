"""`--openenv`: episodes by WebSocket, faults, slots, access. Numbers in names are those of the specification."""

import asyncio
import json
import logging
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosedError, InvalidStatus

from proctor import registry
from proctor.config.task import TaskDefinition
from proctor.http import bounded_protocol
from proctor.http.tls import ServerTls
from proctor.session.play import play_to_finish
from proctor_bridges.gateway import openenv_client, openenv_routes
from proctor_bridges.gateway.gateway import Gateway
from proctor_bridges.gateway.openenv import RESET_FIRST
from proctor_bridges.worlds.openenv.environment import OpenEnv
from tests.integration.openenv.served import Digits, Player, Served, served
from tests.integration.openenv.test_environment import Saying
from tests.integration.openenv.test_toy_server import captured, exchanges
from tests.integration.openenv.toy_server import keys
from tests.pace import in_time
from tests.tools_environment import Doors, behind

WORLDS: dict[str, Any] = {"digits": Digits, "doors": Doors}
TOY = TaskDefinition(name="toy", environment="digits", capacity=2)


@pytest.fixture(autouse=True)
def _worlds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "load", WORLDS.__getitem__)
    monkeypatch.setattr(openenv_client, "PATIENCE_S", 0.2)
    monkeypatch.setattr(Digits, "live", 0)


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    async with served(TOY) as running:
        yield running


def error(answer: dict[str, Any]) -> tuple[str, str]:
    assert answer["type"] == "error", answer
    return answer["data"]["code"], answer["data"]["message"]


async def test_an_episode_from_reset_to_score(server: Served) -> None:
    player = await server.connect()
    first = await player.reset(index=3, episode_id="e1", level=9)
    assert first["data"]["metadata"] == {"task": "toy", "sample": "3"}
    assert first["data"]["observation"] == {
        "messages": [{"role": "user", "content": "guess a digit"}],
        "text": "guess a digit",
        "tools": [],
        "conversation": "main",
        "fresh": False,
        "turn": 0,
        "sample": "3",
        "finish": None,
    }
    assert (await player.step(content="1"))["data"]["observation"]["text"] == "wrong: 1"
    last = await player.step(content="3")
    assert (last["data"]["reward"], last["data"]["done"]) == (1.0, True)
    finish = {"reason": "completed", "score": 1.0, "metrics": {"guessed": 1.0}}
    assert last["data"]["observation"]["finish"] == finish
    state = await player.say({"type": "state"})
    assert state["data"] == {"episode_id": "e1", "step_count": 2, "task": "toy", "sample": "3", "score": 1.0}


async def test_2_an_object_without_content_is_the_reply_itself(server: Served) -> None:
    player = await server.connect()
    await player.reset(sample="0")
    answer = await player.step(pick_fish=1, action="normal", metadata={})
    assert answer["data"]["observation"]["text"] == 'wrong: {"pick_fish":1,"action":"normal"}'


@pytest.mark.parametrize(("last", "score"), [("3", 1.0), ("half", 0.5)])
async def test_2_the_sum_of_rewards_is_the_score(server: Served, last: str, score: float) -> None:
    player = await server.connect()
    answers = [await player.reset(sample="3")]
    answers += [await player.step(content=guess) for guess in ("1", last, last, last)]
    assert sum(each["data"]["reward"] or 0.0 for each in answers) == score
    assert [each["data"]["done"] for each in answers] == [False, False, True, True, True]


async def test_2_a_fault_is_an_error_without_a_reward_and_ends_the_episode(server: Served) -> None:
    player = await server.connect()
    await player.reset(sample="3")
    code, message = error(await player.step(content="boom"))
    assert (code, "the toy broke" in message) == ("EXECUTION_ERROR", True)
    assert error(await player.step(content="3"))[0] == "EXECUTION_ERROR"
    assert (await player.say({"type": "state"}))["data"]["score"] is None
    assert (await player.reset(sample="3"))["type"] == "observation"
    assert (await player.step(content="3"))["data"]["reward"] == 1.0


async def test_3_a_slot_that_is_taken_is_told_and_free_after_a_close(server: Served) -> None:
    players = [await server.connect() for _ in range(3)]
    assert [(await player.reset())["type"] for player in players[:2]] == ["observation", "observation"]
    refused = await players[2].reset()
    assert error(refused)[0] == "CAPACITY_REACHED"
    assert (refused["data"]["active_sessions"], refused["data"]["max_sessions"]) == (2, 2)
    await players[0].close()
    await in_time(lambda: Digits.live == 1)
    assert (await players[2].reset())["type"] == "observation"


async def test_4_a_broken_connection_frees_its_slot_even_within_a_step(server: Served) -> None:
    idle, busy = await server.connect(), await server.connect()
    for player in (idle, busy):
        await player.reset(sample="1")
    await busy.socket.send(json.dumps({"type": "step", "data": {"content": "hang"}}))
    assert Digits.live == 2
    for player in (idle, busy):
        player.socket.transport.abort()
    await in_time(lambda: Digits.live == 0)


@pytest.mark.parametrize("then", [["close"], ["state"] * 3, ["state"] * (openenv_routes.MOST_WAITING - 1) + ["close"]])
async def test_4_so_does_one_that_sends_more_frames_within_a_step(server: Served, then: list[str]) -> None:
    player = await server.connect()
    await player.reset(sample="1")
    for frame in ({"type": "step", "data": {"content": "hang"}}, *({"type": each} for each in then)):
        await player.socket.send(json.dumps(frame))
    if "close" not in then:
        player.socket.transport.abort()
    await in_time(lambda: Digits.live == 0)


async def test_frames_that_are_sent_ahead_are_answered_in_turn(server: Served) -> None:
    player = await server.connect()
    await player.reset(sample="3")
    guesses = [str(number) for number in range(10, 40)]
    for guess in guesses:
        await player.socket.send(json.dumps({"type": "step", "data": {"content": guess}}))
    answers = [json.loads(await player.socket.recv()) for _ in guesses]
    assert [each["data"]["observation"]["text"] for each in answers] == [f"wrong: {guess}" for guess in guesses]


@pytest.mark.shared
async def test_5_captured_frames_get_answers_of_their_shape(server: Served) -> None:
    """But for a step with other fields, which is a reply in JSON here, and for what follows a fault: a reset."""
    player, answered = await server.connect(), 0
    for asked, expected in exchanges():
        if expected is None:
            await player.close()
            player = await server.connect()
            continue
        if expected["data"].get("code") == "CAPACITY_REACHED":
            others = [await server.connect() for _ in range(2)]
            await others[0].reset()
            got = await others[1].say(asked)
            await others[0].close()
        elif asked == {"type": "step", "data": {"nope": 1}}:
            got = await player.say({"type": "step", "data": {"content": "1", "nope": 1}})
        else:
            got = await player.say(asked)
        assert got["type"] == expected["type"], asked
        assert got["data"].get("code") == expected["data"].get("code")
        shapes = [dict(each["data"]) for each in (got, expected)]
        for shape in shapes:
            shape["observation"] = {}
            shape["metadata"] = {} if "metadata" in shape else None
            shape["errors"] = keys(shape.get("errors", [])[:1])
        if got["type"] == "state":
            assert shapes[1].keys() <= shapes[0].keys()
        elif expected["data"].get("code") == "VALIDATION_ERROR":
            assert shapes[0].keys() == shapes[1].keys()
            assert {"type", "loc", "msg", "input", "url"} == got["data"]["errors"][0].keys()
        else:
            assert keys(shapes[0]) == keys(shapes[1])
        if got["data"].get("code") == "EXECUTION_ERROR":
            await player.reset(seed=13)
        answered += 1
    assert answered == 12


@pytest.mark.shared
async def test_5_captured_requests_get_answers_of_their_shape(server: Served) -> None:
    asked = [each for each in captured() if each["dir"] == "http" and each["path"] != "/openapi.json"]
    for each in asked:
        status, body = await server.ask(each["method"], f"toy{each['path']}", each["request"])
        if each["path"] == "/step":
            assert status == 409
            continue
        assert status == each["status"], each["path"]
        assert body.keys() == each["response"].keys() | body.keys()
        if each["path"] == "/mcp":
            assert keys(body) == keys(each["response"])
    assert len(asked) == 8


async def test_6_reset_twice_begins_anew_and_holds_one_slot(server: Served) -> None:
    player = await server.connect()
    samples = [(await player.reset())["data"]["observation"]["sample"] for _ in range(3)]
    assert samples == ["0", "1", "2"]
    await in_time(lambda: Digits.live == 1)
    assert [(await player.reset(seed=seed))["data"]["observation"]["sample"] for seed in (13, 7)] == ["3", "7"]


@pytest.mark.parametrize(
    ("data", "code", "message"),
    [
        ({"index": 10}, "VALIDATION_ERROR", "index: the task has samples 0 to 9"),
        ({"index": -1}, "VALIDATION_ERROR", "index: the task has samples 0 to 9"),
        ({"split": "train"}, "VALIDATION_ERROR", "split: there is only 'toy'"),
        ({"sample": "x"}, "EXECUTION_ERROR", "task 'toy' has no sample 'x'"),
        ({"seed": -1}, "VALIDATION_ERROR", "Invalid message"),
    ],
)
async def test_a_wrong_reset_says_what_is_wrong(server: Served, data: Any, code: str, message: str) -> None:
    assert error(await (await server.connect()).reset(**data)) == (code, message)


async def test_a_reset_by_http_tells_mistakes_from_a_want_of_slots(server: Served) -> None:
    assert (await server.ask("POST", "toy/reset"))[0] == 200
    mistakes: list[Any] = [{"index": 99}, {"index": "x"}, {"sample": "x"}, {"split": "train"}, {"seed": -1}, []]
    assert {(await server.ask("POST", "toy/reset", asked))[0] for asked in mistakes} == {422}
    await in_time(lambda: Digits.live == 0)
    for player in [await server.connect() for _ in range(2)]:
        await player.reset()
    status, body = await server.ask("POST", "toy/reset", {})
    assert (status, body["detail"]["code"]) == (503, "CAPACITY_REACHED")


async def test_a_step_without_an_episode_says_what_to_do(server: Served) -> None:
    assert error(await (await server.connect()).step(content="1")) == (
        "EXECUTION_ERROR",
        RESET_FIRST,
    )
    status, body = await server.ask("POST", "toy/step", {"action": {"content": "1"}})
    assert (status, body["code"]) == (409, "EXECUTION_ERROR")


@pytest.mark.parametrize("frame", ["[]", "3", '"x"', "{}", '{"type": []}', '{"type": "step", "data": 3}', "[" * 9999])
async def test_no_frame_breaks_the_connection(server: Served, frame: str) -> None:
    player = await server.connect()
    assert error(await player.say(frame))[0] in ("INVALID_JSON", "UNKNOWN_TYPE", "VALIDATION_ERROR")
    assert (await player.reset())["type"] == "observation"


@pytest.mark.parametrize(
    "action",
    [
        {"tool_calls": [1] * 100_000},
        {"content": 3, "x" * 100_000: "y" * 100_000},
        {"content": "", **{f"x{number}": number for number in range(10_000)}},
        {"tool_calls": [{"name": "look", "arguments": [0] * 100_000}] * 20},
    ],
)
async def test_the_errors_of_a_large_frame_are_short(server: Served, action: dict[str, Any]) -> None:
    player = await server.connect()
    await player.reset()
    answer = await player.step(**action)
    assert error(answer)[0] == "VALIDATION_ERROR"
    status, body = await server.ask("POST", "toy/step", {"action": action})
    assert (status, len(json.dumps(answer)) < 10_000, len(json.dumps(body)) < 10_000) == (422, True, True)


async def test_an_action_has_at_most_32_calls(server: Served) -> None:
    status, body = await server.ask("POST", "toy/step", {"action": {"tool_calls": [{"name": "look"}] * 33}})
    assert (status, body["detail"][0]["type"]) == (422, "too_long")


async def test_tasks_are_listed(server: Served) -> None:
    assert await server.ask("GET", "toy/list_environments") == (200, ["toy"])
    assert await server.ask("GET", "toy/toy/splits") == (200, [{"name": "toy", "type": "test"}])
    assert await server.ask("POST", "toy/toy/num_tasks", {"split": "toy"}) == (200, {"num_tasks": 10})
    third = {"id": "2", "index": 2, "split": "toy"}
    assert await server.ask("POST", "toy/toy/task", {"split": "toy", "index": 2}) == (200, {"task": third})
    some = {"split": "toy", "start": 2, "stop": 3}
    assert await server.ask("POST", "toy/toy/task_range", some) == (200, {"tasks": [third]})
    status, listed = await server.ask("POST", "toy/toy/tasks", {"split": "toy"})
    assert (status, listed["env_name"], len(listed["tasks"])) == (200, "toy", 10)
    assert (await server.ask("POST", "toy/toy/num_tasks", {"split": "x"}))[0] == 422
    assert (await server.ask("POST", "toy/toy/task", {"split": "toy", "index": 10}))[0] == 400
    assert (await server.ask("GET", "nothing/health"))[0] == 404


async def test_an_unknown_task_is_told_and_the_connection_closed(server: Served) -> None:
    player = await server.connect("nothing")
    assert error(json.loads(await player.socket.recv()))[0] == "SESSION_ERROR"
    await player.socket.wait_closed()


async def test_an_idle_connection_is_closed(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openenv_routes, "IDLE_S", 0.1)
    player = await server.connect()
    await player.socket.wait_closed()
    assert player.socket.close_code == 1000


async def test_our_own_client_plays_it(server: Served) -> None:
    fields = {"url": f"{server.url}/openenv/toy", "text": "text", "samples": "tasks"}
    world = OpenEnv.model_validate(fields)
    assert len(await asyncio.to_thread(world.samples)) == 10
    finish = await play_to_finish(world, "4", Saying("1", "4"))
    assert (finish.score, finish.metrics["steps"]) == (1.0, 2)
    faulty = await play_to_finish(world, "4", Saying("boom"))
    assert faulty.score is None
    await in_time(lambda: Digits.live == 0)


async def rpc(player: Player, method: str, **params: object) -> dict[str, Any]:
    answer = await player.say({"type": "mcp", "data": {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}})
    assert (answer["type"], answer["data"]["id"]) == ("mcp", 1)
    data: dict[str, Any] = answer["data"]
    return data


async def test_8_a_tools_task_is_played_by_calls_to_its_end() -> None:
    async with served(TaskDefinition(name="doors", environment="doors", parameters={"turns": 2})) as server:
        player = await server.connect("doors")
        assert (await rpc(player, "tools/list"))["error"]["message"] == RESET_FIRST
        first = await player.reset(index=0)
        assert [tool["function"]["name"] for tool in first["data"]["observation"]["tools"]] == ["open_door", "leave"]
        listed = (await rpc(player, "tools/list"))["result"]["tools"]
        assert [(tool["name"], tool["inputSchema"]["type"]) for tool in listed] == [
            ("open_door", "object"),
            ("leave", "object"),
        ]
        door = behind("s0")
        one = (await rpc(player, "tools/call", name="open_door", arguments={"door": door}))["result"]
        assert one["content"] == [{"type": "text", "text": f"Behind it is {behind(door)}."}]
        assert one["structuredContent"] == {"reward": None, "done": False}
        two = (await rpc(player, "tools/call", name="open_door", arguments={"door": behind(door)}))["result"]
        assert two["structuredContent"] == {"reward": 1.0, "done": True}
        assert "error" in await rpc(player, "tools/call", name="open_door", arguments={})
        await player.reset(index=0)
        wrong = [await rpc(player, "tools/call"), await rpc(player, "tools/call", name="leave", arguments=[1])]
        assert [each["error"]["message"].partition(": Input")[0] for each in wrong] == [
            "Invalid params: name",
            "Invalid params: arguments",
        ]
        assert {each["error"]["code"] for each in wrong} == {-32602}
        assert (await rpc(player, "nothing"))["error"]["code"] == -32601


async def test_8_calls_in_a_step_are_calls_and_the_result_answers_them() -> None:
    async with served(TaskDefinition(name="doors", environment="doors", parameters={"turns": 2})) as server:
        player = await server.connect("doors")
        await player.reset(index=0)
        call = {"name": "open_door", "arguments": {"door": behind("s0")}}
        plain = await player.step(content="", tool_calls=[call])
        message = plain["data"]["observation"]["messages"][0]
        assert (message["role"], message["tool_call_id"]) == ("tool", "call00001")
        told = message["content"].rstrip(".").split()[-1]
        nested = {
            "id": "x",
            "type": "function",
            "function": {"name": "open_door", "arguments": json.dumps({"door": told})},
        }
        assert (await player.step(tool_calls=[nested]))["data"]["reward"] == 1.0


async def test_8_a_session_by_http_is_shared_with_its_websocket() -> None:
    async with served(TaskDefinition(name="doors", environment="doors", parameters={"turns": 1})) as server:

        async def post(method: str, **params: object) -> dict[str, Any]:
            asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            status, body = await server.ask("POST", "doors/mcp", asked)
            assert status == 200
            answer: dict[str, Any] = body
            return answer

        made = (await post("openenv/session/create"))["result"]["session_id"]
        player = await server.connect("doors", query=f"?session_id={made}")
        await player.reset(index=0)
        assert len((await post("tools/list", session_id=made))["result"]["tools"]) == 2
        call = {"name": "open_door", "arguments": {"door": behind("s0")}}
        done = (await post("tools/call", session_id=made, **call))["result"]
        assert done["structuredContent"] == {"reward": 1.0, "done": True}
        assert "error" in await post("tools/list", session_id="other")
        assert (await post("openenv/session/close", session_id=made))["result"]["closed"]


async def test_a_session_of_one_task_is_none_of_another() -> None:
    async with served(TOY, TaskDefinition(name="doors", environment="doors")) as server:

        async def post(task: str, method: str, **params: object) -> Any:
            asked = {"jsonrpc": "2.0", "id": 1, "method": f"openenv/session/{method}", "params": params}
            return (await server.ask("POST", f"{task}/mcp", asked))[1]["result"]

        made = (await post("doors", "create"))["session_id"]
        player = await server.connect("toy", query=f"?session_id={made}")
        assert (await player.reset())["data"]["metadata"]["task"] == "toy"
        await player.close()
        assert not (await post("toy", "close", session_id=made))["closed"]
        assert (await post("doors", "close", session_id=made))["closed"]


async def test_nothing_is_kept_of_an_unknown_task(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []

    class Kept(openenv_client.EpisodeClient):
        def __init__(self, gateway: Gateway, task: str, turns: Iterator[int]) -> None:
            super().__init__(gateway, task, turns)
            made.append(task)

    monkeypatch.setattr(openenv_routes, "EpisodeClient", Kept)
    for task in ("nothing", "toy"):
        await (await server.connect(task)).say({"type": "state"})
    assert made == ["toy"]


async def test_10_a_frame_over_8_mib_ends_its_connection_alone(server: Served) -> None:
    other, player = await server.connect(), await server.connect()
    await other.reset(sample="1")
    with pytest.raises(ConnectionClosedError, match="message too big"):
        await player.step(content="x" * (8 << 20))
    assert (await other.step(content="1"))["data"]["reward"] == 1.0


async def test_10_without_the_token_the_handshake_is_refused_and_no_log_has_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    async with served(TOY, token="canary-token") as server:
        assert (await (await server.connect()).reset())["type"] == "observation"
        prefixed = await Served(f"{server.url}/t/canary-token", stack=server.stack).connect()
        assert (await prefixed.reset())["type"] == "observation"
        for path in ("/openenv/toy/ws", "/t/wrong/openenv/toy/ws"):
            with pytest.raises(InvalidStatus) as refused:
                await connect(server.url.replace("http", "ws") + path)
            assert refused.value.response.status_code == 401
        assert (await Served(server.url).ask("GET", "toy/health"))[0] == 401
    assert "canary-token" not in caplog.text


async def test_10_a_web_page_of_another_site_gets_no_websocket(server: Served) -> None:
    with pytest.raises(InvalidStatus) as refused:
        await server.connect(additional_headers={"Origin": "http://evil.example"})
    assert refused.value.response.status_code == 403


@pytest.fixture
def tls(tmp_path: Path) -> ServerTls:
    """A certificate for 127.0.0.1."""
    make = "openssl req -x509 -newkey ed25519 -subj /CN=one -keyout one.key -out one.pem -days 1 -noenc -addext"
    subprocess.run([*make.split(), "subjectAltName=IP:127.0.0.1"], cwd=tmp_path, check=True, capture_output=True)
    return ServerTls(cert=tmp_path / "one.pem", key=tmp_path / "one.key")


async def test_10_over_tls_a_websocket_works_and_needs_the_token(tls: ServerTls) -> None:
    trusting = ssl.create_default_context(cafile=tls.cert)
    async with served(TOY, token="canary-token", tls=tls) as server:
        assert server.url.startswith("https://")
        player = await server.connect(ssl=trusting)
        await player.reset(sample="1")
        assert (await player.step(content="1"))["data"]["reward"] == 1.0
        with pytest.raises(InvalidStatus):
            await connect(f"{server.url.replace('http', 'ws')}/openenv/toy/ws", ssl=trusting)


async def test_10_connections_without_a_token_push_no_websocket_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_protocol, "MAX_UNAUTHORIZED", 1)
    async with served(TOY, token="canary-token") as server:
        player = await server.connect()
        await player.reset(sample="1")
        idle = [await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2])) for _ in range(3)]
        assert await idle[0][0].read() == b""  # this one was pushed out
        assert (await player.step(content="1"))["data"]["reward"] == 1.0
        for _, writer in idle:
            writer.close()
