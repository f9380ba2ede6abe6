"""The HTTP application that serves the episodes of this process."""

import secrets

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from eval_client.mcp.episode import CalledEpisode
from eval_client.mcp.frames import McpFrameError, answer, call_answer, read_call, read_frame
from eval_client.mcp.server import McpEpisodes
from proctor.http.auth import Access, AccessGuard
from proctor.http.body import BodyError, read_body

MAX_BODY_BYTES = 1 << 20


def episodes_app(episodes: McpEpisodes) -> ASGIApp:
    """The application; it serves what is added to the episodes later too."""

    async def received(request: Request) -> Response:
        episode = episodes.get(request.scope["raw_path"].decode("latin-1"))
        if episode is None:
            return PlainTextResponse("there is no such episode\n", 404)
        if request.method == "DELETE":
            return JSONResponse({})  # the end of a session, of which there are none
        if request.method != "POST":
            return PlainTextResponse("there are no event streams; send a POST\n", 405, {"Allow": "POST, DELETE"})
        try:
            return await _answered(episode, await read_body(request.receive, MAX_BODY_BYTES), request)
        except BodyError as error:
            text = f"a request has at most {MAX_BODY_BYTES} bytes" if error.status == 413 else str(error)
            return PlainTextResponse(f"{text}\n", error.status)
        except McpFrameError as error:
            return JSONResponse(error.answer(), error.status)

    route = Route("/mcp/{task}/{episode}", received, methods=["GET", "POST", "DELETE"])
    return AccessGuard(Starlette(routes=[route]), Access(), _page_refused)


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
