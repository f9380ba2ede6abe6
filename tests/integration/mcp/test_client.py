"""A real MCP client plays episodes over HTTP."""

import asyncio
import contextlib
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from proctor.environment import Environment
from proctor.session.play import play_to_finish
from proctor.types import Finish
from proctor_bridges.mcp.episode import CalledEpisode
from proctor_bridges.mcp.server import McpEpisodes, mcp_server
from tests.integration.mcp.clients import connected, text, walk
from tests.pace import slowly
from tests.tools_environment import Doors

MODES = ("auto", "legacy")


@dataclass(frozen=True)
class Playing:
    """An episode that is played."""

    url: str
    episode: CalledEpisode
    finish: asyncio.Task[Finish]


@contextlib.asynccontextmanager
async def playing(
    episodes: McpEpisodes, world: Environment, sample: str = "s0", repeated_s: float = 60
) -> AsyncIterator[Playing]:
    episode = CalledEpisode(repeated_s)

    async def played() -> Finish:
        try:
            return await play_to_finish(world, sample, episode)
        finally:
            episode.end()

    task = asyncio.create_task(played())
    try:
        yield Playing(episodes.add("doors", episode), episode, task)
    finally:
        task.cancel()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("protocol", ["text", "tools"])
async def test_a_client_lists_and_calls_to_the_end(mode: str, protocol: Literal["text", "tools"]) -> None:
    async with mcp_server() as episodes, playing(episodes, Doors(protocol=protocol)) as played:
        told = await walk(played.url, mode, protocol)
        finish = await played.finish
    assert told[0].startswith("[system]\nYou walk from door to door.\n\n[user]\nSample s0. The first door is ")
    assert (len(told), finish.score) == (5, 1.0)


async def test_two_episodes_at_once_do_not_mix() -> None:
    async with (
        mcp_server() as episodes,
        playing(episodes, Doors(), "s0") as one,
        playing(episodes, Doors(), "s1") as other,
    ):
        told = await asyncio.gather(walk(one.url, "auto", "tools"), walk(other.url, "legacy", "tools"))
        scores = [(await each.finish).score for each in (one, other)]
    assert scores == [1.0, 1.0]
    assert set(told[0]) & set(told[1]) == {"The episode is over."}


async def test_a_call_that_can_not_be_read_is_an_error_and_a_turn() -> None:
    async with mcp_server() as episodes, playing(episodes, Doors()) as played, connected(played.url) as client:
        results = [
            await client.call_tool("fly", {}),
            await client.call_tool("open_door", {}),
            await client.call_tool("open_door", {"door": "7"}),
        ]
    assert [result.is_error for result in results] == [True, True, False]
    assert played.episode.calls == 3


async def test_a_text_task_says_how_to_answer_and_plays_nothing() -> None:
    world = Doors(protocol="text")
    async with mcp_server() as episodes, playing(episodes, world) as played, connected(played.url) as client:
        results = [await client.call_tool("answer", {"text": "7"}), await client.call_tool("open_door", {})]
    assert {text(result) for result in results} == {'Nothing was played. Call answer with {"content": "your answer"}.'}
    assert [result.is_error for result in results] == [True, True]
    assert played.episode.calls == 0


async def test_a_finished_episode_says_so_and_an_unknown_one_is_404() -> None:
    async with mcp_server() as episodes, playing(episodes, Doors(turns=1)) as played:
        await walk(played.url, "auto", "tools")
        async with connected(played.url) as client:
            assert client.instructions == "The episode is over."
            result = await client.call_tool("open_door", {"door": "7"})
        assert (text(result), result.is_error, result.structured_content) == (
            "The episode is over.",
            False,
            {"done": True},
        )
        with pytest.raises(urllib.error.HTTPError, match="404"):
            await asyncio.to_thread(urllib.request.urlopen, f"{played.url[:-1]}x", b"{}")


def frame(number: int, told: str, url: str, session: str = "") -> Any:
    """The answer to a call of `open_door`."""
    params = {"name": "open_door", "arguments": {"door": told}}
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
    request = urllib.request.Request(url, body.encode(), {"mcp-session-id": session} if session else {})
    with urllib.request.urlopen(request, timeout=slowly(60)) as reply:
        return json.load(reply)


async def test_the_same_frame_again_is_the_same_call() -> None:
    async with mcp_server() as episodes, playing(episodes, Doors()) as played:
        same = (asyncio.to_thread(frame, 1, "7", played.url) for _ in range(3))
        first, *again = await asyncio.gather(*same)
        assert [first, first] == again
        assert played.episode.calls == 1
        assert await asyncio.to_thread(frame, 2, "7", played.url) != first
        await asyncio.to_thread(frame, 1, "7", played.url, "another-session")
        assert played.episode.calls == 3


async def test_the_same_frame_after_a_while_is_another_call() -> None:
    async with mcp_server() as episodes, playing(episodes, Doors(), repeated_s=0) as played:
        for _ in range(2):
            await asyncio.to_thread(frame, 1, "7", played.url)
    assert played.episode.calls == 2


async def test_calls_at_once_are_turns_one_after_the_other() -> None:
    async with mcp_server() as episodes, playing(episodes, Doors()) as played:
        async with connected(played.url) as client:
            results = await asyncio.gather(*(client.call_tool("open_door", {"door": "7"}) for _ in range(4)))
        finish = await played.finish
    assert len({text(result) for result in results}) == 4
    assert finish.score == 0.0
