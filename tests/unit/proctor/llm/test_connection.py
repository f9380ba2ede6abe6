"""How a model's endpoint is reached: headers, query, keys, proxies, streams, as the endpoint sees them."""

import asyncio
import contextlib
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from pydantic import JsonValue, ValidationError

from proctor.connection import keys
from proctor.connection.keys import AGAIN_S, KeySource, KeyUnavailable
from proctor.environment import AgentRefused, AgentUnavailable
from proctor.http.client import http_client
from proctor.llm.config import ChatConfig
from proctor.llm.model import ChatModel, Completion
from proctor.llm.outage import Outage
from proctor.llm.passed_on import BEHIND
from proctor.observability import logging
from proctor.observability.redaction import redacted
from proctor.types import Message
from tests.pace import slowly
from tests.support import via

ASKED = [Message(role="user", content="?")]
MESSAGE: dict[str, JsonValue] = {"role": "assistant", "content": "fine"}
GOOD = json.dumps({"choices": [{"message": MESSAGE, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}).encode()
DENIED = b'{"error": {"message": "invalid api key", "code": "invalid_api_key"}}'
FIRST, SECOND = "first-Key-0123456789abc", "second-Key-0123456789abc"


class Asked(NamedTuple):
    """A request as it came in."""

    target: str
    headers: Mapping[str, str]
    body: dict[str, Any]


Answer = Callable[[Asked], tuple[int, bytes]]


@contextlib.asynccontextmanager
async def endpoint(answer: Answer = lambda _: (200, GOOD)) -> AsyncIterator[tuple[str, list[Asked]]]:
    """An endpoint's base URL, and the requests that it gets; it may be asked as a proxy too."""
    came: list[Asked] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        headers = {name.lower(): text for name, _, text in (line.partition(": ") for line in lines)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        came.append(Asked(head.split()[1], headers, json.loads(body or b"{}")))
        status, told = answer(came[-1])
        writer.write(b"HTTP/1.1 %d X\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (status, len(told), told))
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", came


async def no_wait(_seconds: float) -> None:
    await asyncio.sleep(0)


async def completed(url: str, times: int = 1, **fields: Any) -> list[Completion]:
    """The answers of a model with these fields, asked one after the other."""
    given = {"model": "m", "api_key_env": "A_KEY", "max_tries": 2, "base_url": url, **fields}
    async with http_client() as client:
        model = ChatModel(ChatConfig.model_validate(given), client, sleep=no_wait)
        return [await model.complete(ASKED) for _ in range(times)]


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("A_KEY", FIRST)
    keys.shared_source.cache_clear()
    yield
    keys.shared_source.cache_clear()


@pytest.mark.parametrize(
    ("given", "dialect", "name", "text"),
    [
        (None, "chat", "authorization", f"Bearer {FIRST}"),
        ("authorization", "chat", "authorization", f"Bearer {FIRST}"),
        ("api-key", "chat", "api-key", FIRST),
        ("x-api-key", "chat", "x-api-key", FIRST),
        ("authorization", "messages", "authorization", f"Bearer {FIRST}"),
        (None, "messages", "x-api-key", FIRST),
    ],
)
async def test_the_key_goes_in_the_header_that_the_endpoint_wants(
    given: str | None, dialect: str, name: str, text: str
) -> None:
    async with endpoint(lambda _: (500, b"{}")) as (url, came):
        with pytest.raises(AgentUnavailable):
            await completed(url, dialect=dialect, api_key_header=given)
    sent = {header for header, value in came[0].headers.items() if FIRST in value}
    assert (sent, came[0].headers[name]) == ({name}, text)


async def test_headers_and_query_hold_what_their_variables_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENANT_KEY", "tenant-Key-42-of-ours")
    fields: dict[str, Any] = {
        "headers": {"X-Tenant": "of ${TENANT_KEY}!", "Anthropic-Beta": "a,b", "Authorization": "Basic ${TENANT_KEY}"},
        "query": {"api-version": "2024-10-21 preview", "code": "${TENANT_KEY}"},
    }
    async with endpoint() as (url, came):
        await completed(url, **fields)
    target, headers, _ = came[0]
    assert target == "/v1/chat/completions?api-version=2024-10-21+preview&code=tenant-Key-42-of-ours"
    assert headers["x-tenant"] == "of tenant-Key-42-of-ours!"
    assert headers["anthropic-beta"] == "a,b"
    assert headers["authorization"] == "Basic tenant-Key-42-of-ours"
    config = ChatConfig.model_validate({"model": "m", **fields})
    assert "tenant-Key" not in config.model_dump_json()
    assert "tenant-Key" not in redacted("it said tenant-Key-42-of-ours")


async def test_the_id_of_a_conversation_is_that_of_its_attempt() -> None:
    async def asked_in(**ids: str) -> None:
        logging.about(**ids)
        await completed(
            url, 2, headers={"X-Route": "to-{conversation}"}, sampling={"prompt_cache_key": "{conversation}"}
        )

    async with endpoint() as (url, came):
        for ids in ({"run": "r", "session": "1"}, {"run": "r", "session": "2"}, {"run": "s", "session": "1"}):
            await asyncio.create_task(asked_in(**ids))
    routes = [request.headers["x-route"].removeprefix("to-") for request in came]
    assert routes == [request.body["prompt_cache_key"] for request in came]
    assert (routes[0], routes[2], routes[4]) == (routes[1], routes[3], routes[5])
    assert len(set(routes)) == 3


UNSURE = {"tls": {"verify": False}}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"headers": {"X-Team": "sk-q7WbX2mTn9LkP4sVh6RzYc3D"}}, "may hold a key"),
        ({"headers": {"Authorization": "Basic abc"}}, "may hold a key"),
        ({"headers": {"X-Auth-Token": "hunter2"}}, "may hold a key"),
        ({"query": {"key": "hunter2"}}, "may hold a key"),
        ({"headers": {"Content-Type": "text/plain"}}, "is set by Proctor"),
        ({"headers": {"X Team": "a"}}, "no name of a header"),
        ({"headers": {"X-Team": "a\nb: c"}}, "can't be sent"),
        ({"headers": {"X-Team": "${1}"}}, "without the name of a variable"),
        ({"headers": {"X-Team": "a", "x-team": "b"}}, "stands here twice"),
        ({"proxy": "http://me:hunter2@proxy:3128"}, "no user name"),
        ({"proxy": "proxy:3128"}, "must be a URL"),
        ({"api_key_file": "a", "api_key_command": ["b"]}, "has a command too"),
        ({"api_key_command": ["print", "sk-q7WbX2mTn9LkP4sVh6RzYc3D"]}, "looks like a key"),
        ({**UNSURE, "base_url": "https://model.example/v1"}, "only for an endpoint of this machine"),
        ({**UNSURE, "base_url": ["http://127.0.0.1", "https://a.example"]}, "only for an endpoint of this machine"),
        ({**UNSURE, "replicas_file": "servers"}, "only for an endpoint of this machine"),
        ({"base_url": ["http://a/v1"], "replicas_file": "servers"}, "stands beside `base_url`"),
    ],
)
def test_what_may_not_be_written_is_said_without_showing_it(fields: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told) as refused:
        ChatConfig.model_validate({"model": "m", **fields})
    assert "hunter2" not in str([(each["loc"], each["msg"]) for each in refused.value.errors(include_input=False)])


@pytest.mark.parametrize(
    "field", [{"headers": {"X": "${NOT_SET}"}}, {"query": {"x": "${NOT_SET}"}}, {"proxy": "${NOT_SET}"}]
)
async def test_a_variable_that_is_unset_is_named(field: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="variable NOT_SET is unset"):
        await completed("http://127.0.0.1:1/v1", **field)


def printer(folder: Path, code: str) -> list[str]:
    """The words of a command that counts its calls in a file beside it and then runs this code."""
    script = folder / "key.py"
    script.write_text(f"import sys, time\nopen({str(folder / 'calls')!r}, 'a').write('x')\n{code}\n")
    return [sys.executable, str(script)]


def calls(folder: Path) -> int:
    return len((folder / "calls").read_text())


def accepts(current: list[str]) -> Answer:
    """An endpoint that takes the newest key alone."""
    return lambda asked: (200, GOOD) if asked.headers.get("authorization") == f"Bearer {current[-1]}" else (401, DENIED)


async def test_a_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{FIRST}\n")
    async with endpoint() as (url, came), http_client() as client:
        config = ChatConfig(model="m", base_url=url, api_key_file=file)
        model = ChatModel(config, client, sleep=no_wait)
        await model.complete(ASKED)
        file.write_text(SECOND)
        await model.complete(ASKED)
    assert [request.headers["authorization"] for request in came] == [f"Bearer {FIRST}", f"Bearer {SECOND}"]
    assert SECOND not in redacted(f"it was {SECOND}")


async def test_all_that_wait_for_a_key_share_one_call_of_the_command(tmp_path: Path) -> None:
    command = printer(tmp_path, f"time.sleep(0.2); print({FIRST!r})")
    async with endpoint() as (url, came), http_client() as client:
        configs = [ChatConfig(model=name, base_url=url, api_key_command=tuple(command)) for name in "abc"]
        models = [ChatModel(config, client) for config in configs for _ in range(4)]
        await asyncio.gather(*(model.complete(ASKED) for model in models))
    assert (len(came), calls(tmp_path)) == (12, 1)
    assert {request.headers["authorization"] for request in came} == {f"Bearer {FIRST}"}


async def test_a_key_that_expired_is_asked_for_once_by_all_whose_calls_are_refused(tmp_path: Path) -> None:
    current = [FIRST]
    (tmp_path / "now").write_text(FIRST)
    command = printer(tmp_path, f"print(open({str(tmp_path / 'now')!r}).read())")
    async with endpoint(accepts(current)) as (url, came), http_client() as client:
        model = ChatModel(ChatConfig(model="m", base_url=url, api_key_command=tuple(command)), client, sleep=no_wait)
        await model.complete(ASKED)
        current.append(SECOND)
        (tmp_path / "now").write_text(SECOND)
        await asyncio.gather(*(model.complete(ASKED) for _ in range(6)))
    assert calls(tmp_path) == 2
    assert len(came) == 1 + 2 * 6


async def test_a_key_that_stays_refused_is_unauthorized_after_one_more_question(tmp_path: Path) -> None:
    command = printer(tmp_path, f"print({FIRST!r})")
    async with endpoint(lambda _: (401, DENIED)) as (url, came):
        with pytest.raises(AgentRefused, match="holds the key that was sent"):
            await completed(url, api_key_command=command)
        with pytest.raises(AgentRefused):
            await completed(url, api_key_command=command)
    assert (len(came), calls(tmp_path)) == (2, 2)


async def test_a_key_that_was_refused_to_a_server_by_an_endpoint_behind_it_is_not_asked_for_again(
    tmp_path: Path,
) -> None:
    command = printer(tmp_path, f"print({FIRST!r})")
    refused = httpx.Response(401, headers={BEHIND: "model m at http://else (variable X is unset)"}, content=DENIED)
    client = httpx.AsyncClient(transport=httpx.MockTransport(lambda _: refused))
    model = ChatModel(ChatConfig(model="m", base_url="http://host/v1", api_key_command=tuple(command)), via(client))
    with pytest.raises(AgentRefused, match=r"http://else \(variable X is unset\) behind it: status 401"):
        await model.complete(ASKED)
    assert calls(tmp_path) == 1


async def test_a_key_is_asked_for_again_after_its_time(tmp_path: Path) -> None:
    now = [0.0]
    source = KeySource("A_KEY", None, tuple(printer(tmp_path, f"print({FIRST!r})")), 3000.0, lambda: now[0])
    for at in (0.0, 2999.0, 3001.0, 3002.0):
        now[0] = at
        assert await source.key() == FIRST
    assert calls(tmp_path) == 2


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("sys.exit('no ticket')", "exit code 1: no ticket"),
        (f"print({FIRST!r}); sys.exit(3)", "exit code 3"),
        ("print()", "it is empty"),
        ("print('two words')", "is no key"),
        ("print('x' * 100000)", "holds more than"),
    ],
)
async def test_a_command_that_fails_is_an_endpoint_that_is_down(tmp_path: Path, code: str, told: str) -> None:
    words = printer(tmp_path, f"{code} if len(open({str(tmp_path / 'calls')!r}).read()) < 3 else print({SECOND!r})")
    if ";" in code:
        words = printer(tmp_path, code)
    async with endpoint() as (url, came), http_client() as client:
        config = ChatConfig(model="m", base_url=url, api_key_command=tuple(words), max_tries=1)
        with pytest.raises(AgentUnavailable, match=told) as failed:
            await ChatModel(config, client).complete(ASKED)
        assert not isinstance(failed.value, AgentRefused)
        assert (FIRST in str(failed.value), came) == (False, [])
        if ";" not in code:
            await ChatModel(config, client, outage=Outage(slowly(60))).complete(ASKED)
            assert came[-1].headers["authorization"] == f"Bearer {SECOND}"


async def test_a_command_that_is_not_there_is_named() -> None:
    with pytest.raises(KeyUnavailable, match="command no-such-program gives no key: No such file"):
        await KeySource("A_KEY", None, ("no-such-program",)).key()


async def test_a_command_that_hangs_is_killed_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "COMMAND_S", slowly(1.0))
    code = "import subprocess; subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    with pytest.raises(KeyUnavailable, match="killed, as it took longer"):
        await KeySource("A_KEY", None, tuple(printer(tmp_path, code))).key()


async def test_a_file_that_is_missing_or_empty_is_an_endpoint_that_is_down(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text(" \n")
    for name, told in (("missing", "No such file"), ("empty", "it is empty")):
        with pytest.raises(AgentUnavailable, match=told) as failed:
            await completed("http://127.0.0.1:1/v1", api_key_file=tmp_path / name)
        assert not isinstance(failed.value, AgentRefused)


async def test_no_shell_reads_the_words_of_a_command(tmp_path: Path) -> None:
    script = printer(tmp_path, "print(sys.argv[1].encode().hex())")
    assert await KeySource("A_KEY", None, (*script, "$HOME; `ls` *")).key() == b"$HOME; `ls` *".hex()


@pytest.mark.parametrize("source", ["command", "file", "header"])
async def test_a_reply_that_repeats_the_key_of_any_source_is_not_played(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "key").write_text(SECOND)
    monkeypatch.setenv("OTHER", SECOND)
    given: dict[str, dict[str, Any]] = {
        "command": {"api_key_command": printer(tmp_path, f"print({SECOND!r})")},
        "file": {"api_key_file": tmp_path / "key"},
        "header": {"headers": {"x-gateway": "${OTHER}"}},
    }
    echo = json.dumps({"choices": [{"message": {**MESSAGE, "content": f"you sent {SECOND}"}}]}).encode()
    async with endpoint(lambda _: (200, echo)) as (url, came):
        with pytest.raises(AgentUnavailable, match="repeats the key") as failed:
            await completed(url, **given[source])
    assert SECOND not in str(failed.value)
    assert len(came) == 2


async def test_a_proxy_is_asked_for_the_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    async with endpoint() as (proxy, came):
        at = proxy.removesuffix("/v1")
        monkeypatch.setenv("A_PROXY", at.replace("://", "://user:hunter2-hunter3@"))
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, at)
        for given in (at, "${A_PROXY}", "env"):
            await completed("http://model.invalid/v1", proxy=given)
        with pytest.raises(AgentUnavailable):
            await completed("http://model.invalid/v1")
    assert [request.target for request in came] == ["http://model.invalid/v1/chat/completions"] * 3
    assert [bool(request.headers.get("proxy-authorization")) for request in came] == [False, True, False]


async def test_a_proxy_of_the_environment_leaves_out_what_no_proxy_names(monkeypatch: pytest.MonkeyPatch) -> None:
    async with endpoint() as (url, came):
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:1")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "127.0.0.1")
        await completed(url, proxy="env")
    assert len(came) == 1


@pytest.mark.parametrize(
    ("fields", "seeds"),
    [({}, [5, 6, 9]), ({"seed_per_epoch": False}, [5, 5, 5])],
)
async def test_each_epoch_has_a_seed_of_its_own_unless_the_plan_says_otherwise(
    fields: dict[str, object], seeds: list[int]
) -> None:
    async with endpoint() as (url, came), http_client() as client:
        config = ChatConfig.model_validate({"model": "m", "base_url": url, "sampling": {"seed": 5}, **fields})
        for epoch in ("0", "1", "4"):
            await ChatModel(config, client).complete(ASKED, metadata={"epoch": epoch})
        await ChatModel(config, client).complete(ASKED)
    assert [request.body["seed"] for request in came] == [*seeds, 5]
    assert "metadata" not in came[0].body


async def test_a_key_is_renewed_for_whoever_asks_at_any_moment(tmp_path: Path) -> None:
    (tmp_path / "now").write_text(FIRST)
    source = KeySource("A_KEY", None, tuple(printer(tmp_path, f"print(open({str(tmp_path / 'now')!r}).read())")))
    assert await source.key() == FIRST
    (tmp_path / "now").write_text(SECOND)
    first = asyncio.create_task(source.renewed(FIRST))
    asked: list[asyncio.Task[bool]] = []
    while not first.done():  # in every turn of the loop somebody else's call is refused
        asked.append(asyncio.create_task(source.renewed(FIRST)))
        await asyncio.sleep(0)
    assert all(await asyncio.gather(first, *asked))
    assert calls(tmp_path) == 2


async def test_a_command_that_fails_or_tells_the_refused_key_is_asked_again(tmp_path: Path) -> None:
    now, clock = tmp_path / "now", [0.0]
    now.write_text(FIRST)
    command = tuple(printer(tmp_path, f"print(open({str(now)!r}).read())"))
    source = KeySource("A_KEY", None, command, clock=lambda: clock[0])
    assert await source.key() == FIRST
    now.write_text("")  # as in the moment in which it is written anew
    with pytest.raises(KeyUnavailable, match="it is empty"):
        await source.renewed(FIRST)
    now.write_text(FIRST)
    assert not await source.renewed(FIRST)
    now.write_text(SECOND)
    assert not await source.renewed(FIRST), "it was asked a moment ago"
    clock[0] += AGAIN_S
    assert await source.renewed(FIRST)
    assert calls(tmp_path) == 4
