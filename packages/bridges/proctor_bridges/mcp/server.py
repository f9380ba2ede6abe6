"""Episodes at `/mcp/<task>/<episode>` on a loopback port of this process; the episode is a random secret."""

import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Scope

from proctor.http.auth import Access, AccessGuard
from proctor.http.server import BodyError, add_route, http_app, listen, read_body, url_of
from proctor.http.serving import embedded, uvicorn_config
from proctor_bridges.mcp.episode import CalledEpisode
from proctor_bridges.mcp.frames import McpFrameError, answer, call_answer, read_call, read_frame

HOST = "127.0.0.1"
KEEP_ALIVE_S = 65
KEPT_OVER = 1000
"""So many of the episodes that are over still say so; those before are unknown."""
LAST_REPLIES_S = 2
MAX_BODY_BYTES = 1 << 20

Handler = Callable[[CalledEpisode, Request], Awaitable[Response]]


class McpEpisodes:
    """The episodes of this process, by path."""

    def __init__(self) -> None:
        self.base_url = ""
        """The server's URL, once it listens."""
        self._episodes: dict[str, CalledEpisode] = {}

    def add(self, task: str, episode: CalledEpisode) -> str:
        """Serve an episode from now on; its URL, which is the secret that gives access to it."""
        path = f"/mcp/{quote(task, safe='')}/{secrets.token_hex(16)}"
        over = [of for of, each in self._episodes.items() if each.over]
        for of in over[:-KEPT_OVER]:
            del self._episodes[of]
        self._episodes[path] = episode
        return self.base_url + path

    def get(self, path: str) -> CalledEpisode | None:
        """The episode of a path."""
        return self._episodes.get(path)

    def knows(self, _method: str, path: str, _authorization: bytes) -> bool:
        """Whether a path is that of an episode."""
        return path in self._episodes


@contextlib.asynccontextmanager
async def mcp_server() -> AsyncIterator[McpEpisodes]:
    """Serve episodes while inside. Those that are under way must be ended before."""
    episodes = McpEpisodes()
    listener = listen(HOST, 0)
    episodes.base_url = url_of(HOST, listener)
    config = uvicorn_config(
        episodes_app(episodes), keep_alive_s=KEEP_ALIVE_S, last_replies_s=LAST_REPLIES_S, knows=episodes.knows
    )
    async with embedded(config, listener):
        yield episodes


def episodes_app(episodes: McpEpisodes) -> ASGIApp:
    """The application; it serves what is added to the episodes later too."""
    app = FastAPI(**http_app("Proctor MCP server"), openapi_url=None)
    add_routes(app.router, episodes)
    return AccessGuard(app, Access(), _page_refused)


def add_routes(routes: APIRouter, episodes: McpEpisodes) -> None:
    """Add the routes of an episode, whose path is the secret that gives access to it."""
    handlers: dict[str, Handler] = {"POST": _message, "DELETE": _session_end, "GET": _stream}
    for method, handler in handlers.items():
        add_route(routes, method, "/mcp/{task}/{episode}", _of_episode(episodes, handler))


def _of_episode(episodes: McpEpisodes, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    """The handler with the episode of a request's path; 404 where there is none."""

    async def answer(request: Request) -> Response:
        episode = episodes.get(request.scope["raw_path"].decode("latin-1"))
        if episode is None:
            return PlainTextResponse("there is no such episode\n", 404)
        return await handler(episode, request)

    answer.__doc__ = handler.__doc__
    return answer


async def _message(episode: CalledEpisode, request: Request) -> Response:
    """One JSON-RPC message of MCP, and its answer."""
    try:
        return await _answered(episode, await read_body(request.receive, MAX_BODY_BYTES), request)
    except BodyError as error:
        text = f"a request has at most {MAX_BODY_BYTES} bytes" if error.status == 413 else str(error)
        return PlainTextResponse(f"{text}\n", error.status)
    except McpFrameError as error:
        return JSONResponse(error.answer(), error.status)


async def _session_end(_episode: CalledEpisode, _request: Request) -> Response:
    """Accepted for clients that send it; does nothing, since there are no sessions."""
    return JSONResponse({})


async def _stream(_episode: CalledEpisode, _request: Request) -> Response:
    """Refused with 405: there are no event streams."""
    return PlainTextResponse("there are no event streams; send a POST\n", 405, {"Allow": "POST, DELETE"})


async def _answered(episode: CalledEpisode, body: bytes, request: Request) -> Response:
    """The answer to a frame. Raises McpFrameError."""
    frame = read_frame(body, request.headers)
    episode.reached = True
    if frame.is_notification:
        return Response(status_code=202)
    if frame.method == "tools/call":
        key = (request.headers.get("mcp-session-id"), frame.id, body)
        return JSONResponse(call_answer(frame, await episode.call(read_call(frame), key)))
    session = {"mcp-session-id": secrets.token_hex(16)} if frame.method == "initialize" else None
    return JSONResponse(answer(frame, await episode.offer()), headers=session)


def _page_refused(_scope: Scope, status: int, cause: str) -> Response:
    return PlainTextResponse(f"{cause}\n", status)
